// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"context"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// week is a fleet whose databases have a life of their own, with an operator, and a book of what happened.
type week struct {
	*fleet
	databases []weekDatabase
	ids       map[string]string // of instances, by name
	flavors   map[string]otc.Flavor
	kube      *weekKube
	book      *weekBook
	operator  *golangsdk.ServiceClient
	latency   time.Duration   // of the cloud's answers
	refused   map[string]bool // databases whose Rds asks for what the cloud refuses
	away      atomic.Bool     // the operator
}

const (
	weekDelay    = 10 * time.Minute // of metrics: the cloud's upper end
	operatorTurn = 3 * time.Minute
	unbounded    = 1000 // requests per second: what is decided first does not depend on who is asked first
)

// newWeek is the world of the week's databases.
func newWeek(t *testing.T) *week {
	w := &week{databases: weekDatabases()}
	w.settle(t, simcloud.Options{DeliveryFault: w.onTheWay, Settings: simcloud.Settings{MetricDelay: weekDelay}})
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
func (w *week) settle(t *testing.T, o simcloud.Options) {
	w.fleet = newFleetIn(t, o)
	w.ids, w.book = map[string]string{}, newWeekBook(time.Now().Truncate(time.Minute).Add(2*time.Hour))
	w.kube = newWeekKube(w.fleet, w.book.patch)
	w.namespace(weekNamespace)
	for _, d := range w.databases {
		w.add(d)
	}
	w.operator = w.connectOperator()
	w.runCloud()
	var operating sync.WaitGroup
	operating.Go(func() { w.operate(t.Context()) })
	t.Cleanup(operating.Wait)
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
		w.kube.create(d.name, d.policy)
	}
	w.rds(weekNamespace, d.name, map[string]any{
		"autopilot": true, "datastoretype": in.Engine, "datastoreversion": in.Version, "flavorref": in.Flavor, "volumesize": int64(in.VolumeGB),
	}, in.ID)
}

// onTheWay is what happens to a message: two to fifteen seconds of delay, a different one for each database and metric,
// so that nothing depends on which of two comes first; and the loss of some.
func (w *week) onTheWay(m simcloud.Delivery) simcloud.DeliveryFault {
	for i, d := range w.databases {
		if !strings.Contains(m.TopicURN, v1alpha1.CloudName(weekNamespace, d.name, "")) {
			continue
		}
		delay := 2*time.Second + time.Duration(i)*500*time.Millisecond
		for _, metric := range []string{"rds001_cpu_util", "rds002_mem_util"} {
			delay += time.Second
			if strings.Contains(string(m.Body), metric) {
				return simcloud.DeliveryFault{Delay: delay, Drop: lost(m, d)}
			}
		}
		return simcloud.DeliveryFault{Delay: delay - 2*time.Second, Drop: lost(m, d)}
	}
	w.t.Errorf("a message to %s, which is nobody's", m.TopicURN)
	return simcloud.DeliveryFault{}
}

func lost(m simcloud.Delivery, d weekDatabase) bool {
	lot := crc32.ChecksumIEEE([]byte(d.name + m.Created.UTC().Format(time.RFC3339)))
	return m.Type == simcloud.TypeNotification && int(lot%100) < d.deaf
}

// start starts a process that asks the cloud so many times per second, and returns what ends it.
func (w *week) start(rate float64) (stop func()) {
	if w.flavors == nil {
		w.flavors = map[string]otc.Flavor{}
		for _, d := range w.databases {
			in, _ := w.sim.Instance(w.ids[d.name])
			list, err := w.person().Flavors(w.t.Context(), in.Engine, in.Version)
			w.must(err)
			for _, f := range list {
				w.flavors[f.Code] = f
			}
		}
	}
	return w.fleet.start(flags{
		sweep: 5 * time.Minute, recheck: 30 * time.Second, maxAge: time.Hour, rate: rate, transport: distant{w}, event: w.book.recordEvent,
		chance: rand.New(rand.NewPCG(1, 2)).Float64,
	}).stop
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
			case in.Status != simcloud.StatusActive:
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
