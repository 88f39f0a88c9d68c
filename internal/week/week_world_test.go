package week

import (
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// week is the service with its real parts, the simulated cloud, Kubernetes in memory and an operator, all on the clock of
// a bubble: it stands still while anything is at work, so a week takes as long as there is something to do.
type week struct {
	t         *testing.T
	databases []weekDatabase
	ids       map[string]string // of instances, by name
	flavors   map[string]otc.Flavor
	sim       *otcsim.Cloud
	kube      *weekKube
	book      *weekBook
	receive   atomic.Pointer[webhook.Receiver] // nil while the process is down
	operator  *golangsdk.ServiceClient
	latency   time.Duration   // of the cloud's answers
	refused   map[string]bool // databases whose Rds asks for what the cloud refuses
	away      atomic.Bool     // the operator
}

const (
	weekURL      = "https://autopilot.example.com/smn"
	weekDelay    = 10 * time.Minute // of metrics: the cloud's upper end
	operatorTurn = 3 * time.Minute
	unbounded    = 1000 // requests per second: what is decided first does not depend on who is asked first
)

// newWeek is the world of the week's databases.
func newWeek(t *testing.T) *week {
	w := &week{t: t, databases: weekDatabases()}
	w.settle(otcsim.Options{DeliveryFault: w.onTheWay, Settings: otcsim.Settings{MetricDelay: weekDelay}})
	replica := instance("rds.pg.n1.large.4.rr", 100, 40)
	replica.Name, replica.ReplicaOf = "replicated-read", w.ids["replicated"]
	replica, err := w.sim.AddInstance(replica)
	if err != nil {
		t.Fatal(err)
	}
	w.ids[replica.Name] = replica.ID
	return w
}

// settle makes the databases and all that runs in their world but the process.
func (w *week) settle(o otcsim.Options) {
	w.ids, w.kube, w.book = map[string]string{}, newWeekKube(w.t), newWeekBook(time.Now().Truncate(time.Minute).Add(2*time.Hour))
	w.kube.evented, w.kube.patched = w.book.recordEvent, w.book.patch
	o.Local, o.Transport = true, w
	var err error
	if w.sim, err = otcsim.Start(o); err != nil {
		w.t.Fatal(err)
	}
	for _, d := range w.databases {
		w.add(d)
	}
	w.operator = w.connectOperator()
	var running sync.WaitGroup
	running.Go(func() { w.sim.Run(w.t.Context()) })
	running.Go(func() { w.operate(w.t.Context()) })
	w.t.Cleanup(func() { // the bubble's time stands still once the test has ended
		running.Wait()
		time.Sleep(10 * time.Minute) // a reading that nobody waits for any more ends by itself
	})
}

// distant is the cloud with the latency of a real one.
type distant struct{ *week }

func (d distant) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(d.latency)
	return d.sim.RoundTrip(r)
}

func (w *week) add(d weekDatabase) {
	start := d.start
	start.Name = d.name
	in, err := w.sim.AddInstance(start)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ids[d.name] = in.ID
	if d.policy != nil {
		if err := w.kube.create(d.name, d.policy, metav1.ObjectMeta{}); err != nil {
			w.t.Fatal(err)
		}
	}
	w.kube.mu.Lock()
	defer w.kube.mu.Unlock()
	w.kube.putRds(&otcv1.Rds{
		ObjectMeta: metav1.ObjectMeta{Namespace: weekNamespace, Name: d.name, UID: types.UID("rds-" + d.name)},
		Spec: otcv1.Spec{
			Autopilot: new(true), DatastoreType: in.Engine, DatastoreVersion: in.Version, FlavorRef: in.Flavor, VolumeSize: int32(in.VolumeGB),
		},
		Status: otcv1.Status{ID: in.ID, Status: in.Status},
	})
}

// onTheWay is what happens to a message: two to fifteen seconds of delay, a different one for each database and metric,
// so that nothing depends on which of two comes first; and the loss of some.
func (w *week) onTheWay(m otcsim.Delivery) otcsim.DeliveryFault {
	for i, d := range w.databases {
		if !strings.Contains(m.TopicURN, alarms.Name(weekNamespace, d.name, "")) {
			continue
		}
		delay := 2*time.Second + time.Duration(i)*500*time.Millisecond
		for _, metric := range []string{"rds001_cpu_util", "rds002_mem_util"} {
			delay += time.Second
			if strings.Contains(string(m.Body), metric) {
				return otcsim.DeliveryFault{Delay: delay, Drop: lost(m, d)}
			}
		}
		return otcsim.DeliveryFault{Delay: delay - 2*time.Second, Drop: lost(m, d)}
	}
	w.t.Errorf("a message to %s, which is nobody's", m.TopicURN)
	return otcsim.DeliveryFault{}
}

func lost(m otcsim.Delivery, d weekDatabase) bool {
	lot := crc32.ChecksumIEEE([]byte(d.name + m.Created.UTC().Format(time.RFC3339)))
	return m.Type == otcsim.TypeNotification && int(lot%100) < d.deaf
}

// RoundTrip is the way from SMN to the receiver.
func (w *week) RoundTrip(r *http.Request) (*http.Response, error) {
	receive := w.receive.Load()
	if receive == nil {
		return nil, fmt.Errorf("dial %s: %w", r.URL.Host, syscall.ECONNREFUSED)
	}
	reply := httptest.NewRecorder()
	receive.ServeHTTP(reply, r)
	return reply.Result(), nil
}

// start starts a process that asks the cloud so many times per second, and returns what ends it.
func (w *week) start(ctx context.Context, rate float64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	env := map[string]string{}
	for _, pair := range w.sim.Env() {
		k, v, _ := strings.Cut(pair, "=")
		env[k] = v
	}
	public, err := url.Parse(weekURL)
	if err != nil {
		w.t.Fatal(err)
	}
	straight := &http.Client{Transport: distant{w}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	reg, o := prometheus.NewRegistry(), app.Options{
		PublicURL: public, Mode: v1alpha1.ModeAuto, CertHosts: []string{w.sim.CertHost()}, ConfirmHosts: []string{w.sim.ConfirmHost()}, SMNClient: straight,
		MaxMessageAge: time.Hour, Sweep: 5 * time.Minute, Recheck: 30 * time.Second, MaxFlavorChanges: 3, Chance: rand.New(rand.NewPCG(1, 2)).Float64,
		CloudRate: rate, Transport: distant{w}, Env: func(k string) string { return env[k] }, Version: "test", Log: zap.NewNop(), Now: time.Now,
	}
	cloudAPI, err := app.ConnectCloud(ctx, o, reg, false)
	if err != nil {
		w.t.Fatal(err)
	}
	w.flavors = map[string]otc.Flavor{}
	for _, d := range w.databases {
		in, _ := w.sim.Instance(w.ids[d.name])
		list, err := cloudAPI.Flavors(ctx, in.Engine, in.Version)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, f := range list {
			w.flavors[f.Code] = f
		}
	}
	parts, err := app.Wire(o, w.kube, "00000000-0000-4000-8000-000000000000", cloudAPI, reg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.receive.Store(parts.Receiver)
	w.kube.lead(parts.Controller)
	var done sync.WaitGroup
	done.Go(func() { parts.Controller.Run(ctx) })
	return func() {
		w.receive.Store(nil)
		cancel()
		done.Wait()
		w.kube.lead(nil)
	}
}

func (k *weekKube) lead(control *controller.Controller) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.control = control
}

func (w *week) connectOperator() *golangsdk.ServiceClient {
	env := map[string]string{}
	for _, pair := range w.sim.Env() {
		k, v, _ := strings.Cut(pair, "=")
		env[k] = v
	}
	provider, err := openstack.NewClient(env["OS_AUTH_URL"])
	if err != nil {
		w.t.Fatal(err)
	}
	provider.HTTPClient = http.Client{Transport: w.sim}
	err = openstack.Authenticate(provider, golangsdk.AuthOptions{
		IdentityEndpoint: env["OS_AUTH_URL"], Username: env["OS_USERNAME"], Password: env["OS_PASSWORD"],
		DomainName: env["OS_USER_DOMAIN_NAME"], TenantName: env["OS_PROJECT_NAME"], AllowReauth: true,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	client, err := openstack.NewRDSV3(provider, golangsdk.EndpointOpts{Region: env["OS_REGION_NAME"]})
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// operate applies every Rds each few minutes, as the archived operator does: only to an instance that is ACTIVE, the
// volume first and only upwards.
func (w *week) operate(ctx context.Context) {
	turn := time.NewTicker(operatorTurn)
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-turn.C:
		}
		if w.away.Load() {
			continue
		}
		for _, rds := range w.kube.liveRds() {
			in, _ := w.sim.Instance(rds.Status.ID)
			if in.Status != rds.Status.Status {
				w.kube.changeRds(rds.Name, func(r *otcv1.Rds) { r.Status.Status = in.Status })
			}
			var err error
			switch {
			case in.Status != otcsim.StatusActive:
			case int(rds.Spec.VolumeSize) > in.VolumeGB:
				_, err = instances.EnlargeVolume(w.operator, instances.EnlargeVolumeRdsOpts{InstanceId: in.ID, Size: int(rds.Spec.VolumeSize)})
			case rds.Spec.FlavorRef != in.Flavor:
				_, err = instances.Resize(w.operator, instances.ResizeOpts{InstanceId: in.ID, SpecCode: rds.Spec.FlavorRef})
			}
			if err != nil && !w.refused[rds.Name] {
				w.t.Errorf("%s: the cloud refuses the operator: %v", rds.Name, err)
			}
		}
	}
}

// minute lets every database bear what it has to from now on, and notes how it fares. A read-only one writes nothing.
func (w *week) minute(at time.Duration) {
	for _, d := range w.databases {
		in, _ := w.sim.Instance(w.ids[d.name])
		load := d.load(at, in)
		if in.ReadOnly {
			load.UsedGB = min(load.UsedGB, in.Workload.UsedGB)
		}
		if err := w.sim.SetWorkload(in.ID, load); err != nil {
			w.t.Fatal(err)
		}
		in, _ = w.sim.Instance(in.ID)
		w.book.measure(d.name, in)
	}
}
