// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	uid       = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
	clusterID = "6fa459ea-ee8a-3ca4-894e-db77e160355e"
	ourURL    = "https://autopilot.example.com/smn"
)

// world is a simulated cloud, reached through the real client.
type world struct {
	t        *testing.T
	sim      *simcloud.Cloud
	cloud    *otc.Cloud
	alarms   *alarms.Alarms
	instance string
	endpoint string           // public URL of the next process
	cluster  string           // id of the cluster of the next process
	listed   *alarms.Snapshot // returned by the lister of every process; nil if the lists are unknown

	faults atomic.Pointer[map[string]simcloud.Fault] // by operation

	mu       sync.Mutex
	now      time.Time
	recorded v1alpha1.Alarms // by the last call of record
	records  int             // number of calls of record
}

// signingKey is shared, because generating a key takes longer than most tests.
var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, endpoint: ourURL, cluster: clusterID, now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	key, err := signingKey()
	if err != nil {
		t.Fatal(err)
	}
	sim, err := simcloud.Start(simcloud.Options{
		SigningKey: key, Now: w.clock, Settings: simcloud.Settings{ConfirmationQuota: 1000}, Fault: w.faultOf,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	env := map[string]string{}
	for _, pair := range sim.Env() {
		k, v, _ := strings.Cut(pair, "=")
		env[k] = v
	}
	w.sim = sim
	w.cloud, err = otc.Connect(t.Context(), otc.Options{Env: func(k string) string { return env[k] }, Rate: 10000})
	if err != nil {
		t.Fatal(err)
	}
	w.alarms = w.process(w.cloud)
	in, err := sim.AddInstance(simcloud.Instance{Flavor: "rds.mysql.c2.medium", VolumeGB: 40})
	if err != nil {
		t.Fatal(err)
	}
	w.instance = in.ID
	sim.ResetRequests()
	return w
}

// refuse makes SMN and Cloud Eye refuse exactly these operations from now on.
func (w *world) refuse(operations ...string) {
	faults := map[string]simcloud.Fault{}
	for _, operation := range operations {
		body := `{"code":"SMN.9999","message":"Not today"}`
		if strings.Contains(operation, "Alarm") {
			body = `{"message":{"code":"ces.9999","details":"Not today"}}`
		}
		faults[operation] = simcloud.Fault{Status: http.StatusForbidden, Body: body}
	}
	w.faults.Store(&faults)
}

func (w *world) faultOf(r *http.Request) *simcloud.Fault {
	_, operation := simcloud.OperationOf(r)
	if faults := w.faults.Load(); faults != nil {
		if fault, ok := (*faults)[operation]; ok {
			return &fault
		}
	}
	return nil
}

// api is the cloud's API, with the lists.
type api interface {
	alarms.Cloud
	Topics(context.Context) ([]otc.Topic, error)
	Rules(context.Context) ([]otc.Rule, error)
}

// lists implements alarms.Lister. Its snapshot is the one that the test has set.
type lists struct {
	api
	world *world
}

func (l lists) Snapshot(context.Context, time.Time) (*alarms.Snapshot, error) {
	return l.world.listed, nil
}

func (w *world) options(cloud api) alarms.Options {
	return alarms.Options{
		Cloud: cloud, Lister: lists{cloud, w}, ClusterID: w.cluster, Endpoint: w.endpoint, EveryNamespace: true, Now: w.clock,
		Metrics: []alarms.Metric{
			{Name: v1alpha1.MetricStorage, CloudEye: "rds039_disk_util", Unit: "%"},
			{Name: v1alpha1.MetricCPU, CloudEye: "rds001_cpu_util", Unit: "%"},
			{Name: v1alpha1.MetricMemory, CloudEye: "rds002_mem_util", Unit: "%"},
		},
	}
}

// process returns Alarms with an empty memory, as after a restart.
func (w *world) process(cloud api) *alarms.Alarms { return alarms.New(w.options(cloud)) }

// restartWith starts a process with another public URL.
func (w *world) restartWith(endpoint string) {
	w.endpoint = endpoint
	w.alarms = w.process(w.cloud)
}

// reset removes all topics, rules and faults, and starts a new process. It is faster than a new cloud for each case.
func (w *world) reset() {
	for _, t := range w.sim.Topics() {
		w.sim.RemoveTopic(t.URN)
	}
	for _, r := range w.sim.Rules() {
		w.sim.RemoveRule(r.ID)
	}
	w.faults.Store(nil)
	w.endpoint = ourURL
	w.alarms, w.recorded = w.process(w.cloud), v1alpha1.Alarms{}
	w.sim.ResetRequests()
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// desired returns the alarms of the database shop/orders.
func (w *world) desired() v1alpha1.DesiredAlarms {
	flavor := v1alpha1.DesiredRule{ThresholdPercent: 90, PeriodSeconds: 300, Count: 3, RepeatSeconds: 1800}
	cpu, memory := flavor, flavor
	cpu.Metric, memory.Metric = v1alpha1.MetricCPU, v1alpha1.MetricMemory
	return v1alpha1.DesiredAlarms{
		Autopilot:  &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: uid}},
		InstanceID: w.instance, Engine: "MySQL",
		Rules: []v1alpha1.DesiredRule{
			{Metric: v1alpha1.MetricStorage, ThresholdPercent: 75, PeriodSeconds: 1, Count: 5, RepeatSeconds: 900},
			cpu, memory,
		},
	}
}

// nameOf returns the name of a database's topic.
func nameOf(want v1alpha1.DesiredAlarms) string {
	return v1alpha1.CloudName(want.Autopilot.Namespace, want.Autopilot.Name, string(want.Autopilot.UID))
}

// ensureWith runs Ensure of a process with a recorded state and a snapshot, which may be nil.
func (w *world) ensureWith(ctx context.Context, a *alarms.Alarms, want v1alpha1.DesiredAlarms, recorded v1alpha1.Alarms,
	listed *alarms.Snapshot, record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, []string, error) {
	want.Autopilot = want.Autopilot.DeepCopy()
	want.Autopilot.Status.Alarms, w.listed = recorded, listed
	return a.Ensure(ctx, want, record)
}

// removeWith runs Remove of a process with a recorded state.
func (w *world) removeWith(a *alarms.Alarms, of v1alpha1.DesiredAlarms, recorded v1alpha1.Alarms) error {
	owner := of.Autopilot.DeepCopy()
	owner.Status.Alarms = recorded
	return a.Remove(w.t.Context(), owner)
}

func (w *world) record(observed v1alpha1.Alarms) error {
	w.recorded = observed
	w.records++
	return nil
}

// ensure runs Ensure without a snapshot, and returns what was repaired.
func (w *world) ensure(want v1alpha1.DesiredAlarms) []string {
	w.t.Helper()
	return w.mustEnsure(want, nil)
}

// ensureWithSnapshot runs Ensure with a new snapshot, and returns what was repaired. sim.Requests has the requests of
// Ensure afterwards.
func (w *world) ensureWithSnapshot(want v1alpha1.DesiredAlarms) []string {
	w.t.Helper()
	listed := snapshotOf(w.t.Context(), w.cloud)
	w.sim.ResetRequests()
	return w.mustEnsure(want, listed)
}

func (w *world) mustEnsure(want v1alpha1.DesiredAlarms, listed *alarms.Snapshot) []string {
	w.t.Helper()
	_, repaired, err := w.ensureWith(w.t.Context(), w.alarms, want, w.recorded, listed, w.record)
	if err != nil {
		w.t.Fatal(err)
	}
	return repaired
}

// tryEnsure runs Ensure, and stores the observed state in spite of an error. It fails the test if Ensure reports a
// repair.
func (w *world) tryEnsure(want v1alpha1.DesiredAlarms, listed *alarms.Snapshot) error {
	w.t.Helper()
	observed, repaired, err := w.ensureWith(w.t.Context(), w.alarms, want, w.recorded, listed, w.record)
	if len(repaired) > 0 {
		w.t.Errorf("repaired %q, although nobody has changed anything", repaired)
	}
	w.recorded = observed
	return err
}

func (w *world) snapshot() *alarms.Snapshot { return snapshotOf(w.t.Context(), w.cloud) }

// snapshotOf returns the lists of a cloud, with an error in place of a list that cannot be read.
func snapshotOf(ctx context.Context, cloud interface {
	api
	Subscriptions(context.Context) ([]otc.Subscription, error)
}) *alarms.Snapshot {
	return alarms.NewSnapshot(alarms.NewResult(cloud.Topics(ctx)), alarms.NewResult(cloud.Subscriptions(ctx)),
		alarms.NewResult(cloud.Rules(ctx)))
}

// checkNothingToDo checks that Ensure with a snapshot sends no request, repairs nothing and records nothing.
func (w *world) checkNothingToDo(want v1alpha1.DesiredAlarms) {
	w.t.Helper()
	repaired := w.ensureWithSnapshot(want)
	records := w.records
	repaired = append(repaired, w.ensureWithSnapshot(want)...) // the first run may record a state
	if n := len(w.sim.Requests()); n != 0 || len(repaired) > 0 || w.records != records {
		w.t.Errorf("%d requests, %d records, repaired %q; want none", n, w.records-records, repaired)
	}
}

// writes returns the operations that change something.
func (w *world) writes() []string {
	var found []string
	for _, r := range w.sim.Requests() {
		if r.Service != "iam" && r.Method != http.MethodGet {
			found = append(found, r.Operation)
		}
	}
	return found
}

// objects returns all topics, subscriptions and rules in the cloud, without ids, times and states.
func (w *world) objects() []string {
	var lines []string
	for _, t := range w.sim.Topics() {
		lines = append(lines, fmt.Sprintf("topic %s %q", t.Name, t.DisplayName))
	}
	for _, s := range w.sim.Subscriptions() {
		topic := s.TopicURN[strings.LastIndex(s.TopicURN, ":")+1:]
		lines = append(lines, fmt.Sprintf("subscription %s %s %s %d", topic, s.Protocol, s.Endpoint, s.Status))
	}
	for _, r := range w.sim.Rules() {
		r.ID, r.UpdateTime, r.State = "", 0, ""
		lines = append(lines, fmt.Sprintf("rule %+v", r))
	}
	slices.Sort(lines)
	return lines
}

// checkRecord checks that the cloud has one topic, one subscription and three rules, and that all are recorded.
func (w *world) checkRecord() {
	w.t.Helper()
	topics, subscriptions, rules := w.sim.Topics(), w.sim.Subscriptions(), w.sim.Rules()
	if len(topics) != 1 || len(subscriptions) != 1 || len(rules) != 3 {
		w.t.Fatalf("%d topics, %d subscriptions, %d rules; want 1, 1, 3", len(topics), len(subscriptions), len(rules))
	}
	if w.recorded.TopicURN != topics[0].URN || w.recorded.SubscriptionURN != subscriptions[0].URN ||
		len(w.recorded.Rules) != 3 {
		w.t.Fatalf("recorded: %+v", w.recorded)
	}
	for _, r := range w.recorded.Rules {
		if !slices.ContainsFunc(rules, func(s simcloud.Rule) bool {
			return s.ID == r.AlarmID && strings.HasSuffix(s.Name, "_"+string(r.Metric)) &&
				int32(s.Condition.Value) == r.ThresholdPercent &&
				r.Dimension == s.Metric.Dimensions[0].Name+":"+s.Metric.Dimensions[0].Value
		}) {
			w.t.Errorf("the cloud does not have the recorded rule %+v", r)
		}
	}
}
