package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/kubetest"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// fleet is the parts of the service in this process, on a clock of their own: an hour of the cloud takes a minute.
type fleet struct {
	t     *testing.T
	kube  *kubetest.Cluster
	admin dynamic.Interface
	sa    *rest.Config
	sim   *otcsim.Cloud
	now   func() time.Time
	ahead *atomic.Int64                                      // nanoseconds that were skipped
	fault *atomic.Pointer[func(*http.Request) *otcsim.Fault] // what goes wrong in the cloud; nil is nothing

	// public is the address that outlives a process, as an Ingress does.
	public  *httptest.Server
	receive atomic.Pointer[webhook.Receiver]
}

func newFleet(t *testing.T, settings otcsim.Settings) *fleet {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Kubernetes API")
	}
	begin, ahead := time.Now(), &atomic.Int64{}
	now := func() time.Time { return begin.Add(60*time.Since(begin) + time.Duration(ahead.Load())) }
	fault := &atomic.Pointer[func(*http.Request) *otcsim.Fault]{}
	sim, err := otcsim.Start(otcsim.Options{Now: now, Settings: settings, Fault: func(r *http.Request) *otcsim.Fault {
		if f := fault.Load(); f != nil {
			return (*f)(r)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	return (&fleet{t: t, sim: sim, now: now, ahead: ahead, fault: fault}).another()
}

// another is a cluster of its own in the same cloud, on the same clock.
func (f *fleet) another() *fleet {
	t := f.t
	t.Helper()
	ctx := t.Context()
	kube, err := kubetest.Start(ctx, kubetest.Options{CRDs: []string{
		"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kube.Stop() })
	if _, err := kube.Apply(ctx, kubetest.ApplyOptions{}, "../../deploy/namespace.yaml", "../../deploy/rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	sa, err := kube.ServiceAccountConfig(ctx, "rds-autopilot", "rds-autopilot")
	if err != nil {
		t.Fatal(err)
	}
	admin, err := dynamic.NewForConfig(kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	f = &fleet{t: t, kube: kube, admin: admin, sa: sa, sim: f.sim, now: f.now, ahead: f.ahead, fault: f.fault}
	f.public = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if receive := f.receive.Load(); receive != nil {
			receive.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(f.public.Close)
	return f
}

// skip lets time pass, without anything happening in it, until the next such weekday at that time of UTC.
func (f *fleet) skip(to time.Weekday, at time.Duration) {
	now := f.now().UTC()
	days := (int(to-now.Weekday()) + 7) % 7
	next := now.Truncate(24*time.Hour).AddDate(0, 0, days).Add(at)
	if next.Before(now) {
		next = next.AddDate(0, 0, 7)
	}
	f.ahead.Add(int64(next.Sub(now)))
}

// database makes an instance and its Rds, with status.id as the operator would set it.
func (f *fleet) database(namespace, name string, in otcsim.Instance) otcsim.Instance {
	f.t.Helper()
	in.Name = name
	in, err := f.sim.AddInstance(in)
	if err != nil {
		f.t.Fatal(err)
	}
	f.rds(namespace, name, map[string]any{
		"datastoretype": in.Engine, "datastoreversion": in.Version, "flavorref": in.Flavor, "volumesize": int64(in.VolumeGB),
		"volumetype": in.VolumeType, "autopilot": true,
	}, in.ID)
	return in
}

func (f *fleet) rds(namespace, name string, spec map[string]any, id string) {
	f.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "otc.mcsps.de/v1alpha1", "kind": "Rds", "metadata": map[string]any{"name": name}, "spec": spec, "status": map[string]any{"id": id},
	}}
	if _, err := f.admin.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(namespace).Create(f.t.Context(), object, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// service is one process's worth of parts.
type service struct {
	*fleet
	reg  *prometheus.Registry
	stop func()
}

// flags are what a process is started with; the zero values are for most tests.
type flags struct {
	sweep      time.Duration // on the wall clock; an hour if zero
	mode       v1alpha1.Mode // Auto if empty
	path       string        // of the public URL; /smn if empty
	namespaces []string      // all if empty
	rate       float64       // requests per second of the wall clock; 2000 if zero
}

// start runs the parts until stop.
func (f *fleet) start(o flags) *service {
	t := f.t
	t.Helper()
	o.sweep, o.mode, o.path, o.rate = cmp.Or(o.sweep, time.Hour), cmp.Or(o.mode, v1alpha1.ModeAuto), cmp.Or(o.path, "/smn"), cmp.Or(o.rate, 2000)
	ctx, cancel := context.WithCancel(t.Context())
	reg, log := prometheus.NewRegistry(), zap.NewNop()
	kube, err := k8s.Connect(ctx, f.sa, k8s.Options{Version: "test", Namespaces: o.namespaces, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	clusterID, err := kube.ClusterID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cloudAPI, err := otc.Connect(ctx, otc.Options{Env: f.env(), Rate: o.rate, Registerer: reg, Log: log, Now: f.now})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.sim.CAPEM())
	certHosts, confirmHosts := smn.Fixed(f.sim.CertHost()), []string{f.sim.ConfirmHost()}
	f.receive.Store(webhook.New(webhook.Options{
		Path: o.path, Book: cluster{kube}, Verifier: smn.NewKeys(certHosts, smn.NewClient(certHosts, roots), f.now),
		Confirm: smn.NewClient(smn.Fixed(confirmHosts...), roots), ConfirmHosts: confirmHosts,
		OurTopics:     webhook.TopicPrefix(cloudAPI.Region(), cloudAPI.ProjectID(), topicName),
		MaxMessageAge: 24 * time.Hour, Warn: cluster{kube}.warn, Log: log, Reg: reg, Now: f.now,
	}))
	shop := newCloud(cloudAPI, f.now)
	control := controller.New(controller.Options{
		Cluster: cluster{kube}, Cloud: shop, Mode: o.mode, Sweep: o.sweep, Recheck: time.Second, MaxFlavorChanges: 3, Log: log, Reg: reg, Now: f.now,
		Arming: arming{alarms.New(shop, metrics(), f.now), shop, clusterID, f.public.URL + o.path, len(o.namespaces) == 0},
	})
	p := &process{options: options{PublicURL: &url.URL{}}, log: log, reg: reg, kube: kube, control: control}
	if err := p.watch(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 2)
	go func() { _ = kube.Run(ctx); done <- struct{}{} }()
	if err := kube.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { control.Run(ctx); done <- struct{}{} }()
	return &service{fleet: f, reg: reg, stop: func() { cancel(); <-done; <-done; f.receive.Store(nil) }}
}

// env is the environment with the cloud's credentials.
func (f *fleet) env() func(string) string {
	env := map[string]string{}
	for _, pair := range f.sim.Env() {
		k, v, _ := strings.Cut(pair, "=")
		env[k] = v
	}
	return func(k string) string { return env[k] }
}

// metric is the sum of a metric's samples; of a histogram it is how many there were.
func (s *service) metric(name string) float64 {
	families, err := s.reg.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// until polls; the deadline is for a machine that hangs.
func (f *fleet) until(what string, done func() bool) {
	f.t.Helper()
	deadline := time.NewTimer(5 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			f.t.Fatalf("waited in vain until %s; %s", what, f.state())
		}
	}
}

func (f *fleet) autopilots() []v1alpha1.RdsAutopilot {
	f.t.Helper()
	list, err := f.admin.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	all := make([]v1alpha1.RdsAutopilot, len(list.Items))
	for i, item := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &all[i]); err != nil {
			f.t.Fatal(err)
		}
	}
	return all
}

// state is for people who look at a failure.
func (f *fleet) state() string {
	why := map[string]int{}
	for _, a := range f.autopilots() {
		for _, c := range a.Status.Conditions {
			if c.Type == v1alpha1.ConditionArmed {
				why[c.Reason+": "+c.Message]++
			}
		}
	}
	return fmt.Sprintf("%d autopilots: %v", len(f.autopilots()), why)
}

func (f *fleet) armed(n int) bool {
	armed := 0
	for _, a := range f.autopilots() {
		if meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionArmed) {
			armed++
		}
	}
	return armed == n
}

// runCloud lets the cloud deliver and evaluate. Its timers go by the wall clock, so it is also told that time passes.
func (f *fleet) runCloud() {
	ctx, cancel := context.WithCancel(f.t.Context())
	var running sync.WaitGroup
	running.Go(func() { f.sim.Run(ctx) })
	running.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			running.Go(func() { f.sim.Step(ctx) })
			<-tick.C
		}
	})
	f.t.Cleanup(func() { cancel(); running.Wait() })
}

func TestFiveHundredDatabases(t *testing.T) {
	const n = 500
	f := newFleet(t, otcsim.Settings{TopicQuota: 3000, RuleQuota: 3000})
	for i := range n {
		f.database("default", fmt.Sprintf("db-%d", i), otcsim.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100})
	}
	f.runCloud()
	first := f.start(flags{sweep: 10 * time.Second})
	f.until("all are armed", func() bool { return f.armed(n) })
	f.until("the cloud has nothing to say", func() bool {
		return first.metric("rds_autopilot_waiting_databases") == 0 &&
			!slices.ContainsFunc(f.sim.Deliveries(), func(d otcsim.Delivery) bool { return d.State == otcsim.Pending }) &&
			!slices.ContainsFunc(f.sim.Rules(), func(r otcsim.Rule) bool { return r.State == "insufficient_data" })
	})
	first.stop()
	exactly(t, f.sim, n)

	f.sim.ResetRequests()
	second := f.start(flags{})
	f.until("all are looked at", func() bool {
		return second.metric("rds_autopilot_last_sweep_timestamp_seconds") > 0 && second.metric("rds_autopilot_waiting_databases") == 0
	})
	second.stop()
	calls := map[string]int{}
	for _, r := range f.sim.Requests() {
		if r.Service != "iam" && r.Service != "cert" && r.Service != "console" {
			calls[r.Service+" "+r.Operation]++
		}
	}
	total := 0
	for name, count := range calls {
		total += count
		if !slices.Contains([]string{"ces ListAlarms", "ces ListMetrics", "smn ListTopics", "smn ListSubscriptions", "rds ListInstances"}, name) {
			t.Errorf("%d calls of %s", count, name)
		}
	}
	if most := 15 + 3*5 + 5; total > most {
		t.Errorf("a sweep of %d databases cost %d calls (%v), want at most %d", n, total, slices.Sorted(maps.Keys(calls)), most)
	}
	t.Logf("a sweep of %d databases: %v", n, calls)
	exactly(t, f.sim, n)
}

// exactly fails unless each of n databases has one topic, one confirmed subscription and three rules.
func exactly(t *testing.T, sim *otcsim.Cloud, n int) {
	t.Helper()
	names := map[string]int{}
	for _, x := range sim.Topics() {
		names[x.Name]++
	}
	confirmed := 0
	for _, x := range sim.Subscriptions() {
		if x.Status == 1 {
			confirmed++
		}
	}
	for _, x := range sim.Rules() {
		names[x.Name]++
	}
	if len(sim.Topics()) != n || len(sim.Subscriptions()) != n || confirmed != n || len(sim.Rules()) != 3*n || len(names) != 4*n {
		t.Errorf("%d topics, %d subscriptions of which %d are confirmed, %d rules, %d names; want %d, %d, %d, %d, %d",
			len(sim.Topics()), len(sim.Subscriptions()), confirmed, len(sim.Rules()), len(names), n, n, n, 3*n, 4*n)
	}
}
