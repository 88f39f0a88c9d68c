// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
	simoperator "github.com/mcsps/rds-autopilot/test/sim/operator"
)

// TestMain removes client-go's handler of errors. It sleeps by a clock that all bubbles share, so that an informer of one
// bubble could wait for years of another.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// ownNamespace is the namespace of the service.
const ownNamespace = "default"

const watchLag = 20 * time.Millisecond // until a write is in the cache

var crds = []string{"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}

// fleet is the world of all tests of this package: one cluster in one cloud, and the service in it.
type fleet struct {
	t      *testing.T
	kube   *simkube.Server
	admin  dynamic.Interface
	sim    *simcloud.Cloud
	fault  *atomic.Pointer[func(*http.Request) *simcloud.Fault] // returns the fault of a request; nil means no fault
	routes *routes

	own     string // the namespace of the service
	public  string // the public URL, which all processes of the cluster share, as behind an Ingress
	receive atomic.Pointer[webhook.Receiver]
}

// newFleet returns a fleet in a running cloud. setFault sets the faults of the cloud.
func newFleet(t *testing.T, settings simcloud.Settings) *fleet {
	t.Helper()
	fault := &atomic.Pointer[func(*http.Request) *simcloud.Fault]{}
	f := newFleetIn(t, simcloud.Options{
		Settings: settings,
		Fault: func(r *http.Request) *simcloud.Fault {
			if f := fault.Load(); f != nil {
				return (*f)(r)
			}
			return nil
		},
	})
	f.fault = fault
	f.runCloud()
	return f
}

// inFleet runs a test in a fleet, in a bubble.
func inFleet(t *testing.T, s simcloud.Settings, run func(*fleet)) {
	t.Helper()
	level.InBubble(t, func(t *testing.T) { run(newFleet(t, s)) })
}

// newFleetIn returns a fleet in a cloud with these options, which does not run yet.
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
		time.Sleep(10 * time.Minute) // a shared read that no caller waits for ends by itself
	})
	return f.addCluster(kube...)
}

// signingKey returns one key for all tests, because it takes longer to generate than most tests run.
var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// addCluster returns another cluster in the same cloud.
func (f *fleet) addCluster(options ...simkube.Options) *fleet {
	f.t.Helper()
	host := fmt.Sprintf("autopilot-%d.example.com", len(f.routes.by))
	o := append(options, simkube.Options{WatchLag: watchLag})[0]
	o.CRDs, o.Seed = crds, host
	kube, err := simkube.New(o)
	f.must(err)
	admin, err := dynamic.NewForConfig(kube.Config())
	f.must(err)
	f = &fleet{t: f.t, kube: kube, admin: admin, sim: f.sim, fault: f.fault, routes: f.routes, own: ownNamespace, public: "https://" + host}
	f.routes.mu.Lock()
	defer f.routes.mu.Unlock()
	f.routes.by[host] = f
	return f
}

// runCloud lets the cloud evaluate its rules and deliver messages until the test ends.
func (f *fleet) runCloud() {
	var running sync.WaitGroup
	running.Go(func() { f.sim.Run(f.t.Context()) })
	f.t.Cleanup(running.Wait)
}

// setFault makes requests to the cloud fail until the caller calls clear.
func (f *fleet) setFault(fault func(*http.Request) *simcloud.Fault) (clear func()) {
	f.fault.Store(&fault)
	return func() { f.fault.Store(nil) }
}

// faultOf returns a fault of these operations of the cloud.
func faultOf(fault simcloud.Fault, operations ...string) func(*http.Request) *simcloud.Fault {
	return func(r *http.Request) *simcloud.Fault {
		_, operation := simcloud.OperationOf(r)
		if slices.Contains(operations, operation) {
			return &fault
		}
		return nil
	}
}

// runOperator runs the stand-in for the archived operator on this cluster.
func (f *fleet) runOperator() *simoperator.Operator {
	f.t.Helper()
	cloud, err := simoperator.Connect(f.sim.Env(), f.sim)
	f.must(err)
	op, err := simoperator.New(simoperator.Options{
		Config: f.kube.Config(), Cloud: cloud, Resync: time.Minute, Retry: 30 * time.Second,
	})
	f.must(err)
	var running sync.WaitGroup
	running.Go(func() { _ = op.Run(f.t.Context()) })
	f.t.Cleanup(running.Wait)
	return op
}

// routes delivers the messages of SMN to the receivers, by host.
type routes struct {
	mu     sync.Mutex
	by     map[string]*fleet
	refuse error // of every request; nil means none
}

func (r *routes) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	f, refuse := r.by[req.URL.Host], r.refuse
	r.mu.Unlock()
	if refuse != nil {
		return nil, refuse
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

// service is one running process of the service.
type service struct {
	*fleet
	reg  *prometheus.Registry
	stop func() // the end of the test calls it as well
}

// flags are the flags of a process. The zero values are for most tests.
type flags struct {
	sweep      time.Duration // 60 hours if zero, so that no sweep follows the first
	mode       v1alpha1.Mode // Auto if empty
	allowed    autopilot.Allowed
	own        string                        // namespace of the service; unknown if empty
	smn        http.RoundTripper             // to the hosts of certificates and confirmation links; the simulated cloud if nil
	namespaces []string                      // all if empty
	rate       float64                       // requests per second; 1000 if zero
	maxAge     time.Duration                 // of messages; a day if zero
	recheck    time.Duration                 // a minute if zero
	changes    int                           // --max-flavor-changes; 3 if zero
	now        func() time.Time              // its clock; time.Now if nil
	transport  http.RoundTripper             // to the cloud; the simulated one if nil
	kube       http.RoundTripper             // to the API server; the one in memory if nil
	event      func(string, autopilot.Event) // gets the events with the name of the database; nil sends them
	ctx        context.Context               // the process ends with it; the context of the test if nil
}

// often are the flags of a process with short intervals.
var often = flags{sweep: 5 * time.Minute, recheck: 30 * time.Second}

// start starts a process of the service.
func (f *fleet) start(o flags) *service {
	f.t.Helper()
	s, err := f.tryStart(o)
	f.must(err)
	return s
}

// tryStart starts a process of the service, or returns why it has ended at its start.
func (f *fleet) tryStart(o flags) (*service, error) {
	f.t.Helper()
	o.sweep, o.mode, o.rate = cmp.Or(o.sweep, 60*time.Hour), cmp.Or(o.mode, v1alpha1.ModeAuto), cmp.Or(o.rate, 1000)
	o.maxAge, o.recheck = cmp.Or(o.maxAge, 24*time.Hour), cmp.Or(o.recheck, time.Minute)
	if o.transport == nil {
		o.transport = f.sim
	}
	of := f.options(o.transport)
	of.Mode, of.Allowed, of.Namespaces, of.MaxFlavorChanges = o.mode, o.allowed, o.namespaces, cmp.Or(o.changes, 3)
	of.MaxMessageAge, of.Sweep, of.Recheck, of.CloudRate = o.maxAge, o.sweep, o.recheck, o.rate
	of.LeaseNamespace = cmp.Or(o.own, f.own)
	if o.smn != nil {
		of.SMNClient = smnClient(o.smn)
	}
	if o.now != nil {
		of.Now = o.now
	}
	ctx, cancel := context.WithCancel(cmp.Or(o.ctx, f.t.Context()))
	reg := prometheus.NewRegistry()
	config := f.kube.Config()
	if o.kube != nil {
		config.Transport = o.kube
	}
	kube, parts, err := f.wire(ctx, config, of, reg, o.event)
	if err != nil {
		cancel()
		return nil, err
	}
	f.receive.Store(parts.Receiver)
	var running sync.WaitGroup
	running.Go(func() { _ = kube.Run(ctx) })
	stop := sync.OnceFunc(func() { cancel(); running.Wait(); f.receive.Store(nil) })
	f.t.Cleanup(stop)
	if err := kube.WaitForSync(ctx); err != nil {
		return nil, err
	}
	running.Go(func() { parts.Controller.Run(ctx) })
	return &service{fleet: f, reg: reg, stop: stop}, nil
}

// options returns the options of a process that reaches the cloud by this transport.
func (f *fleet) options(transport http.RoundTripper) app.Options {
	f.t.Helper()
	public, err := url.Parse(f.public + "/smn")
	f.must(err)
	return app.Options{
		PublicURL: public, Mode: v1alpha1.ModeAuto, CertHosts: []string{f.sim.CertHost()},
		ConfirmHosts: []string{f.sim.ConfirmHost()}, SMNClient: smnClient(transport), Transport: transport, Env: f.env(),
		LeaseNamespace: f.own, Version: "test", Log: zap.NewNop(), Now: time.Now,
	}
}

// wire connects the parts of a process. If event is not nil, it gets the events, and the API server does not.
func (f *fleet) wire(ctx context.Context, config *rest.Config, o app.Options, reg *prometheus.Registry,
	event func(string, autopilot.Event)) (*k8s.Cluster, app.Parts, error) {
	kube, err := app.ConnectKube(ctx, config, o)
	if err != nil {
		return nil, app.Parts{}, err
	}
	fail := func(err error) (*k8s.Cluster, app.Parts, error) {
		kube.Close() // or a goroutine of it would outlive the bubble
		return nil, app.Parts{}, err
	}
	clusterID, err := kube.ClusterID(ctx)
	if err != nil {
		return fail(err)
	}
	cloudAPI, err := app.ConnectCloud(ctx, o, reg, false)
	if err != nil {
		return fail(err)
	}
	var cluster app.Cluster = kube
	if event != nil {
		cluster = eventHook{kube, event}
	}
	parts, err := app.Wire(o, cluster, clusterID, cloudAPI, reg)
	f.must(err)
	if err := parts.Watch(kube); err != nil {
		return fail(err)
	}
	return kube, parts, nil
}

// eventHook is a cluster that calls a function with each event and does not send it.
type eventHook struct {
	*k8s.Cluster
	event func(database string, e autopilot.Event)
}

func (o eventHook) Event(t *autopilot.Target, a *v1alpha1.RdsAutopilot, e autopilot.Event) {
	switch {
	case a != nil:
		o.event(a.Name, e)
	case t != nil:
		o.event(t.Name, e)
	default:
		o.event("", e)
	}
}

func (o eventHook) TopicEvent(e autopilot.Event) { o.event("", e) }

// smnClient gets certificates and follows links for the receiver, without a network.
func smnClient(cloud http.RoundTripper) *http.Client {
	return &http.Client{
		Timeout: 3 * time.Second, Transport: cloud,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// env returns the environment with the cloud's credentials.
func (f *fleet) env() func(string) string {
	env := map[string]string{}
	for _, pair := range f.sim.Env() {
		k, v, _ := strings.Cut(pair, "=")
		env[k] = v
	}
	return func(k string) string { return env[k] }
}

// personClient returns a client with the tenant's credentials, such as a person at the console uses.
func (f *fleet) personClient() *otc.Cloud {
	f.t.Helper()
	c, err := otc.Connect(f.t.Context(), otc.Options{Env: f.env(), Rate: 1000, Transport: f.sim, Log: zap.NewNop(), Now: time.Now})
	f.must(err)
	return c
}

// metric returns the sum of a metric's samples; of a histogram it is their number.
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

// waitIdle waits until a sweep has ended and the queue is empty.
func (s *service) waitIdle() {
	s.t.Helper()
	s.waitUntil("a sweep has ended and the queue is empty", func() bool {
		return s.metric("rds_autopilot_last_sweep_timestamp_seconds") > 0 && s.metric("rds_autopilot_waiting_databases") == 0
	})
}

// waitSweep waits until a sweep that began after now has ended, with all that it caused.
func (s *service) waitSweep() {
	s.t.Helper()
	s.waitIdle()
	ended := s.metric("rds_autopilot_sweep_duration_seconds")
	s.waitUntil("a sweep has ended", func() bool { return s.metric("rds_autopilot_sweep_duration_seconds") > ended })
	s.waitIdle()
}

// waitUntil waits until done returns true, at most for three hours. It calls done less often as time passes.
func (f *fleet) waitUntil(what string, done func() bool) {
	f.t.Helper()
	pause := 500 * time.Millisecond
	for end := time.Now().Add(3 * time.Hour); !done(); time.Sleep(pause) {
		if time.Now().After(end) {
			reasons := map[string]int{}
			for _, a := range f.autopilots() {
				reasons[armedCondition(&a).Reason+": "+armedCondition(&a).Message]++
			}
			f.t.Fatalf("after three hours, not yet true: %s; Armed: %v", what, reasons)
		}
		pause = min(pause*5/4, 10*time.Second)
	}
}

func (f *fleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}
