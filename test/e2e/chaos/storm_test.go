// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
	"github.com/mcsps/rds-autopilot/test/world/faults"
)

const (
	databases   = 30
	replicas    = 2
	speed       = 60               // a second is a minute of the cloud
	settleLimit = 15 * time.Minute // for a slow machine
	settledFor  = 5 * time.Second  // without a difference, before the test ends
)

// chaos is a world with random faults in all its parts.
type chaos struct {
	*world.World
	t       *testing.T
	history *history
	rdss    dynamic.NamespaceableResourceInterface

	dbs    []*database
	kube   *faults.Random
	cloud  *faults.Random
	mail   *faults.Random
	random *rand.Rand // used only by the goroutine that sets loads

	slots     [replicas]slot
	apiServer sync.Mutex // held while it is paused or down
	operator  sync.Mutex // held while it is paused
	running   sync.WaitGroup
}

// flags returns the service's flags: more flavors at a time than is wise outside of a test, and apply: Cloud.
func flags() []string {
	return []string{"--max-flavor-changes", "8", "--allow-apply", "Cloud", "--allowed-instances", "*/*"}
}

// slot holds one process of the service. Whoever has locked it may end the process and start the next one.
type slot struct {
	sync.Mutex
	process *world.Process
}

// settings returns seed and duration of the storm.
func settings(t *testing.T) (seed uint64, lasts time.Duration) {
	seed, lasts = rand.Uint64()>>32, time.Minute
	var err error
	if text := os.Getenv("SOAK_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal("SOAK_SEED:", err)
		}
	}
	if text := os.Getenv("SOAK_TIME"); text != "" {
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal("SOAK_TIME:", err)
		}
	}
	return seed, lasts
}

func TestNoLossAndNoDuplicateInChaos(t *testing.T) {
	level.Long(t)
	t.Parallel()
	seed, lasts := settings(t)
	t.Logf("SOAK_SEED=%d SOAK_TIME=%s repeats this schedule", seed, lasts)
	c := newChaos(t, seed)
	c.populate()
	storm, calm := context.WithTimeout(t.Context(), lasts)
	defer calm()
	c.running.Go(func() { c.raise(storm, lasts) })
	began := time.Now()
	for _, e := range schedule(seed, lasts) {
		select {
		case <-time.After(e.at - time.Since(began)):
			c.running.Go(func() { e.do(c, storm, e) })
		case <-storm.Done():
		}
	}
	<-storm.Done()
	c.running.Wait()
	t.Logf("%d requests to the API server, %d requests to the cloud and %d messages had a fault", c.kube.Count(), c.cloud.Count(), c.mail.Count())
	c.settle()
	for _, text := range c.violations() {
		t.Error(text)
	}
	t.Logf("%d changes requested, %d of them from the cloud, %d alarms acknowledged", len(c.history.requests), count(c.history.requests, func(x request) bool { return x.cloud }), len(c.history.answers))
	if len(c.history.requests) < databases/3 || len(c.history.answers) < databases/3 {
		t.Error("too few changes and messages: the test shows nothing")
	}
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{
		t: t, history: newHistory(), random: rand.New(rand.NewPCG(seed, 1)),
		kube:  faults.NewRandom(seed, faults.KubeName, faults.Kinds(2*time.Second)...),
		cloud: faults.NewRandom(seed, faults.CloudName, faults.Kinds(2*time.Second)...),
		mail:  faults.NewRandom(seed, nil),
	}
	c.World = shared.StartAlone(t, world.Options{
		Race: true, OnLine: c.history.line, Resync: 5 * time.Second,
		Kube: faults.Hooks{Fault: c.kube.Fault, Answered: c.history.answered},
		Cloud: simcloud.Options{
			Speed: speed, Fault: c.cloudFault, DeliveryFault: c.deliveryFault, Transport: c.history,
			Settings: simcloud.Settings{RetryInterval: 5 * time.Minute},
		},
	})
	client, err := dynamic.NewForConfig(c.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	c.rdss = client.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource))
	go follow(t.Context(), c.rdss, c.history.sawRds)
	go follow(t.Context(), client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)), c.history.sawAutopilot)
	return c
}

// cloudFault returns the fault of a request to the cloud. It records the changes that the service requests itself. Hanging
// requests of the operator end after a second, because its client has no deadline and it has one worker.
func (c *chaos) cloudFault(r *http.Request) *simcloud.Fault {
	if r.PathValue("instance") != "" && r.Method == http.MethodPost && !strings.HasPrefix(r.UserAgent(), "golangsdk") {
		in, _ := c.Cloud.Instance(r.PathValue("instance"))
		c.history.requestedChange(in, r)
	}
	f := c.cloud.Fault(r)
	if f != nil && f.Hang && strings.HasPrefix(r.UserAgent(), "golangsdk") {
		return &simcloud.Fault{Delay: time.Second, Status: http.StatusGatewayTimeout, Apply: f.Apply}
	}
	return f
}

// deliveryFault returns the fault of a delivery. Confirmations are never dropped, only late or repeated, because the service
// requests another one after half an hour.
func (c *chaos) deliveryFault(d simcloud.Delivery) simcloud.DeliveryFault {
	how, wrong := c.mail.Next(d.Type)
	if !wrong {
		return simcloud.DeliveryFault{}
	}
	kinds := []simcloud.DeliveryFault{
		{LoseReply: true}, {Duplicate: true}, {Delay: time.Duration(1+how.IntN(10)) * time.Minute}, {Drop: true}, {Drop: true},
	}
	if d.Type == simcloud.TypeConfirmation {
		kinds = kinds[:3]
	}
	return kinds[how.IntN(len(kinds))]
}

// populate starts the service and creates the databases, with policies that allow many changes. They are armed during the
// storm. Half of them have apply: Cloud, and half of those have no Rds.
func (c *chaos) populate() {
	ctx, cancel := context.WithTimeout(c.t.Context(), settleLimit)
	defer cancel()
	for i := range c.slots {
		p, err := c.Serve(ctx, flags()...)
		if err != nil {
			c.t.Fatal(err)
		}
		c.slots[i].process = p
	}
	for i := range databases {
		db := &database{maxGB: 4000, load: simcloud.Workload{UsedGB: 10}, raised: map[v1alpha1.Metric]int{}, wantsMore: i%10 != 9}
		db.withoutRds = i%4 == 3
		made := world.Database{
			Name: fmt.Sprintf("db-%d", i), Flavor: []string{"rds.mysql.n1.large.4", "rds.pg.n1.large.4", "rds.mysql.n1.large.4.ha"}[i%3],
			VolumeGB: []int{40, 100, 500}[i%3], Workload: db.load, Autopilot: !db.withoutRds, NoRds: db.withoutRds,
		}
		if i%10 == 0 {
			db.maxGB = made.VolumeGB + 20
		}
		c.history.load(made.Name, db.load)
		var err error
		if db.DB, err = c.AddDatabase(ctx, made); err != nil {
			c.t.Fatal(err)
		}
		db.first = db.Instance()
		c.dbs = append(c.dbs, db)
		if db.withoutRds {
			if err := db.CreateAutopilot(ctx, fmt.Sprintf(`{"apply":"Cloud","instanceID":%q}`, db.ID)); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	for i, db := range c.dbs {
		if _, err := db.WaitAutopilot(ctx, "it is there", func(*v1alpha1.RdsAutopilot) bool { return true }); err != nil {
			c.t.Fatal(err)
		}
		policy := fmt.Sprintf(`{"spec":{"apply":%q,"storage":{"maxGB":%d},"flavor":{"cooldownSeconds":0,"maxChangesPerDay":10,"alarm":{"count":1}}}}`,
			[]v1alpha1.Apply{v1alpha1.ApplyOperator, v1alpha1.ApplyCloud}[i%2], db.maxGB)
		if err := db.PatchAutopilot(ctx, policy); err != nil {
			c.t.Fatal(err)
		}
	}
}

// raise raises loads, one database after the other.
func (c *chaos) raise(ctx context.Context, lasts time.Duration) {
	tick := time.NewTicker(max(lasts/100, 500*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			db := c.dbs[c.random.IntN(len(c.dbs))]
			what, much := c.random.IntN(3), c.random.Float64()
			if db.wantsMore {
				c.raiseOne(db, what, much)
			}
		}
	}
}

// raiseOne raises the load of a database without an alarm until it has one. The database never becomes read-only.
func (c *chaos) raiseOne(db *database, what int, much float64) {
	in, next := db.Instance(), db.load
	s := shapeOf(in.Flavor)
	cpu, memory := overloaded(in.Flavor, next)
	flavors := slices.Index(c.dbs, db)%10 >= 6
	switch {
	case flavors && what == 0 && db.raised[v1alpha1.MetricCPU] < 2 && !cpu && !memory:
		db.raised[v1alpha1.MetricCPU]++
		next.CPUDemand = float64(s.vcpus) * (0.92 + 0.08*much)
	case flavors && what == 1 && db.raised[v1alpha1.MetricMemory] < 2 && !cpu && !memory:
		db.raised[v1alpha1.MetricMemory]++
		next.MemoryDemandGB = float64(s.memoryGB) * (0.92 + 0.08*much)
	case !flavors || what == 2:
		size := float64(in.VolumeGB)
		// At most 10 GB more than the threshold: for minutes after a growth the service judges a value by the smaller size as
		// well, and then a large volume would count as read-only.
		least := size*float64(thresholdOf(in.VolumeGB))/100 + 0.1
		most := min(0.965*size, size-5.5, least+10)
		if full(in.VolumeGB, next.UsedGB) {
			return // its last alarm still holds
		}
		next.UsedGB = least + much*(most-least)
	default:
		return
	}
	c.history.load(db.Name, next)
	db.load = next
	if err := db.SetWorkload(next); err != nil {
		c.t.Error(err)
	}
}

// settle ends all faults, waits until nothing differs any more, and stops the service.
func (c *chaos) settle() {
	c.t.Helper()
	for _, d := range []*faults.Random{c.kube, c.cloud, c.mail} {
		d.Set(0)
	}
	c.Cloud.Configure(func(s *simcloud.Settings) { s.JobsFail = false })
	for _, d := range c.Cloud.Deliveries() { // SMN has given up these confirmations. It deletes such subscriptions after two days
		if d.Type == simcloud.TypeConfirmation && d.State == simcloud.Dropped {
			for _, s := range c.Cloud.Subscriptions() {
				if s.URN == d.SubscriptionURN && s.Status == simcloud.Unconfirmed {
					c.Cloud.RemoveSubscription(s.URN)
				}
			}
		}
	}
	deadline, quiet := time.Now().Add(settleLimit), time.Time{}
	began, reported := time.Now(), time.Now()
	for {
		wrong := c.unsettled(c.t.Context())
		switch {
		case len(wrong) > 0:
			quiet = time.Time{}
		case quiet.IsZero():
			quiet = time.Now()
		}
		if !quiet.IsZero() && time.Since(quiet) >= settledFor {
			c.t.Logf("settled %s after the storm", quiet.Sub(began).Round(time.Second))
			break
		}
		if len(wrong) > 0 && time.Since(reported) > 15*time.Second {
			reported = time.Now()
			c.t.Logf("not settled for %d reasons; the first: %s", len(wrong), wrong[0])
		}
		if time.Now().After(deadline) {
			for _, text := range wrong {
				c.t.Error(text)
			}
			c.logLines(wrong)
			break
		}
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // between two comparisons
	}
	for i := range c.slots {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := c.slots[i].process.Stop(ctx); err != nil {
			c.t.Error(err)
		}
		cancel()
	}
}

// logLines logs what the service wrote about the databases with a difference.
func (c *chaos) logLines(wrong []string) {
	for i := range c.slots {
		for _, l := range c.slots[i].process.Lines() {
			if slices.ContainsFunc(wrong, func(text string) bool { return strings.HasPrefix(text, l.Field("name")+":") }) && !strings.HasPrefix(l.Msg, "notification ") || l.Level == "error" {
				c.t.Log(l.Raw)
			}
		}
	}
}
