// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// fleet is one cluster in one cloud, and the service in it.
type fleet struct {
	t      *testing.T
	kube   *simkube.Server
	admin  dynamic.Interface
	sim    *simcloud.Cloud
	fault  *atomic.Pointer[func(*http.Request) *simcloud.Fault] // what goes wrong in the cloud; nil is nothing
	routes *routes

	public  string // the URL that outlives a process, as an Ingress does
	receive atomic.Pointer[webhook.Receiver]
	page    atomic.Pointer[http.Handler] // the status page of the process that runs; nil between two
}

// routes is the way from SMN to the receivers, by host.
type routes struct {
	mu     sync.Mutex
	by     map[string]*fleet
	doctor http.RoundTripper // to the receiver of doctor --listen
}

func (r *routes) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	f, doctor := r.by[req.URL.Host], r.doctor
	r.mu.Unlock()
	if req.URL.Host == doctorHost {
		return doctor.RoundTrip(req)
	}
	if f == nil {
		return nil, fmt.Errorf("no such host %s", req.URL.Host)
	}
	receive := f.receive.Load()
	if receive == nil {
		return nil, fmt.Errorf("dial %s: %w", req.URL.Host, syscall.ECONNREFUSED)
	}
	reply := httptest.NewRecorder()
	receive.ServeHTTP(reply, req)
	return reply.Result(), nil
}

// step is a part of a test with a name: there are no subtests in a bubble.
func step(t *testing.T, name string, run func(*testing.T)) {
	t.Helper()
	t.Log(name)
	run(t)
}

func newFleet(t *testing.T, settings simcloud.Settings) *fleet {
	t.Helper()
	fault := &atomic.Pointer[func(*http.Request) *simcloud.Fault]{}
	f := newFleetIn(t, simcloud.Options{Settings: settings, Fault: func(r *http.Request) *simcloud.Fault {
		if f := fault.Load(); f != nil {
			return (*f)(r)
		}
		return nil
	}})
	f.fault = fault
	return f
}

// newFleetIn is a fleet in a cloud with these options.
func newFleetIn(t *testing.T, o simcloud.Options, kube ...simkube.Options) *fleet {
	t.Helper()
	f := &fleet{t: t, routes: &routes{by: map[string]*fleet{}}}
	o.Local, o.Transport = true, f.routes
	var err error
	o.SigningKey, err = signingKey()
	f.must(err)
	f.sim, err = simcloud.Start(o)
	f.must(err)
	t.Cleanup(func() {
		time.Sleep(10 * time.Minute) // a reading that nobody waits for any more ends by itself
	})
	return f.another(kube...)
}

// signingKey is one for all: to make it costs as much as many a test.
var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// another is a cluster of its own in the same cloud, on the same clock.
func (f *fleet) another(options ...simkube.Options) *fleet {
	f.t.Helper()
	host := fmt.Sprintf("autopilot-%d.example.com", len(f.routes.by))
	o := append(options, simkube.Options{WatchLag: watchLag})[0]
	o.CRDs, o.Seed = crds, host
	kube, err := simkube.New(o)
	f.must(err)
	admin, err := dynamic.NewForConfig(kube.Config())
	f.must(err)
	f = &fleet{t: f.t, kube: kube, admin: admin, sim: f.sim, fault: f.fault, routes: f.routes, public: "https://" + host}
	f.routes.mu.Lock()
	defer f.routes.mu.Unlock()
	f.routes.by[host] = f
	return f
}

const watchLag = 20 * time.Millisecond // until a write is in the cache

var crds = []string{"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}

// database makes an instance and its Rds, with status.id as the operator would set it.
func (f *fleet) database(namespace, name string, in simcloud.Instance) simcloud.Instance {
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
	sweep      time.Duration // days if zero
	mode       v1alpha1.Mode // Auto if empty
	allowed    autopilot.Allowed
	path       string                        // of the public URL; /smn if empty
	namespaces []string                      // all if empty
	rate       float64                       // requests per second; 1000 if zero
	maxAge     time.Duration                 // of messages; a day if zero
	recheck    time.Duration                 // a minute if zero
	transport  http.RoundTripper             // to the cloud; the simulated one if nil
	event      func(string, autopilot.Event) // gets the events with the name of the database; nil sends them
}

// start runs the parts until stop.
func (f *fleet) start(o flags) *service {
	t := f.t
	t.Helper()
	o.sweep, o.mode, o.path, o.rate = cmp.Or(o.sweep, 60*time.Hour), cmp.Or(o.mode, v1alpha1.ModeAuto), cmp.Or(o.path, "/smn"), cmp.Or(o.rate, 1000)
	o.maxAge, o.recheck = cmp.Or(o.maxAge, 24*time.Hour), cmp.Or(o.recheck, time.Minute)
	if o.transport == nil {
		o.transport = f.sim
	}
	ctx, cancel := context.WithCancel(t.Context())
	reg := prometheus.NewRegistry()
	public, err := url.Parse(f.public + o.path)
	f.must(err)
	of := app.Options{
		PublicURL: public, Mode: o.mode, Allowed: o.allowed, Namespaces: o.namespaces, CertHosts: []string{f.sim.CertHost()}, ConfirmHosts: []string{f.sim.ConfirmHost()},
		SMNClient: smnClient(o.transport), MaxMessageAge: o.maxAge, Sweep: o.sweep, Recheck: o.recheck, MaxFlavorChanges: 3,
		CloudRate: o.rate, Transport: o.transport, Env: f.env(), Version: "test", StatusPage: true, Log: zap.NewNop(), Now: time.Now,
	}
	kube, err := app.ConnectKube(ctx, f.kube.Config(), of)
	f.must(err)
	clusterID, err := kube.ClusterID(ctx)
	f.must(err)
	cloudAPI, err := app.ConnectCloud(ctx, of, reg, false)
	f.must(err)
	var cluster app.Cluster = kube
	if o.event != nil {
		cluster = overheard{kube, o.event}
	}
	parts, err := app.Wire(of, cluster, clusterID, cloudAPI, reg)
	f.must(err)
	f.must(parts.Watch(kube))
	page, err := app.StatusPage(of, kube, clusterID, cloudAPI, reg, func() string { return "" }, nil)
	f.must(err)
	f.page.Store(&page)
	f.receive.Store(parts.Receiver)
	var running sync.WaitGroup
	running.Go(func() { _ = kube.Run(ctx) })
	f.must(kube.WaitForSync(ctx))
	running.Go(func() { parts.Controller.Run(ctx) })
	stop := sync.OnceFunc(func() { cancel(); running.Wait(); f.receive.Store(nil); f.page.Store(nil) })
	t.Cleanup(stop)
	return &service{fleet: f, reg: reg, stop: stop}
}

// overheard is a cluster whose events are not sent but handed over.
type overheard struct {
	*k8s.Cluster
	event func(database string, e autopilot.Event)
}

func (o overheard) Event(t *autopilot.Target, a *v1alpha1.RdsAutopilot, e autopilot.Event) {
	switch {
	case a != nil:
		o.event(a.Name, e)
	case t != nil:
		o.event(t.Name, e)
	default:
		o.event("", e)
	}
}

func instance(flavor string, volumeGB int, usedGB float64) simcloud.Instance {
	return simcloud.Instance{Flavor: flavor, VolumeGB: volumeGB, Workload: simcloud.Workload{UsedGB: usedGB}}
}

// as returns an object as one of our types.
func as[T any](f *fleet, u *unstructured.Unstructured) *T {
	f.t.Helper()
	typed := new(T)
	f.must(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed))
	return typed
}

// smnClient gets certificates and follows links for the receiver, without a network.
func smnClient(cloud http.RoundTripper) *http.Client {
	return &http.Client{
		Timeout: 3 * time.Second, Transport: cloud,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
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
func (s *service) metric(name string) float64 { return s.sumOf(s.reg, name) }

func (f *fleet) sumOf(reg *prometheus.Registry, name string) (sum float64) {
	families, err := reg.Gather()
	f.must(err)
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// until lets time pass until done is true, for three hours. It looks less often as time goes by.
func (f *fleet) until(what string, done func() bool) {
	f.t.Helper()
	pause := 500 * time.Millisecond
	for end := time.Now().Add(3 * time.Hour); !done(); time.Sleep(pause) {
		if time.Now().After(end) {
			f.t.Fatalf("waited in vain until %s; %s", what, f.state())
		}
		pause = min(pause*5/4, 10*time.Second)
	}
}

func (f *fleet) autopilots() []v1alpha1.RdsAutopilot {
	f.t.Helper()
	var all []v1alpha1.RdsAutopilot
	for _, u := range f.kube.Objects(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)) {
		all = append(all, *as[v1alpha1.RdsAutopilot](f, u))
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

// runCloud lets the cloud deliver and evaluate.
func (f *fleet) runCloud() {
	var running sync.WaitGroup
	running.Go(func() { f.sim.Run(f.t.Context()) })
	f.t.Cleanup(running.Wait)
}

// The listings are shared, and the used space is read of ten databases at a time: a sweep costs pages, not calls of each database.
func TestSweepOfManyDatabasesUsesFewCalls(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		const n = 120
		f := newFleet(t, simcloud.Settings{TopicQuota: 3000, RuleQuota: 3000})
		for i := range n {
			f.database("default", fmt.Sprintf("db-%d", i), simcloud.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 40}})
		}
		f.runCloud()
		first := f.start(flags{sweep: 10 * time.Minute})
		f.until("all are armed", func() bool { return f.armed(n) })
		f.until("the cloud has nothing to say", func() bool {
			return first.metric("rds_autopilot_waiting_databases") == 0 &&
				!slices.ContainsFunc(f.sim.Deliveries(), func(d simcloud.Delivery) bool { return d.State == simcloud.Pending }) &&
				!slices.ContainsFunc(f.sim.Rules(), func(r simcloud.Rule) bool { return r.State == "insufficient_data" })
		})
		time.Sleep(10 * time.Minute) // without data there is more to look for
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
			if !slices.Contains([]string{"ces ListAlarms", "ces ListMetrics", "ces BatchMetricData", "smn ListTopics", "smn ListSubscriptions", "rds ListInstances"}, name) {
				t.Errorf("%d calls of %s", count, name)
			}
		}
		if most := n*3/100 + 1 + 3*(n/100+1) + 1 + n/10 + 2 + 7; total > most { // ten databases' used space in a call, up to two of them not full, and the percentages of the first ones
			t.Errorf("a sweep of %d databases cost %d calls (%v), want at most %d", n, total, slices.Sorted(maps.Keys(calls)), most)
		}
		t.Logf("a sweep of %d databases: %v", n, calls)
		exactly(t, f.sim, n)
	})
}

// exactly fails unless each of n databases has one topic, one confirmed subscription and three rules.
func exactly(t *testing.T, sim *simcloud.Cloud, n int) {
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
