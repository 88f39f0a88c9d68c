// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	clusterID      = "6fa459ea-ee8a-3ca4-894e-db77e160355e"
	otherClusterID = "7fa459ea-ee8a-3ca4-894e-db77e160355e"
	ourURL         = "https://autopilot.example.com/smn"
	ourMark        = "rds-autopilot shop/orders cluster " + clusterID
)

// world is a simulated cloud, reached through the real client, and one process.
type world struct {
	t        *testing.T
	sim      *simcloud.Cloud
	cloud    *otc.Cloud
	options  alarms.Options // of the next process
	alarms   *alarms.Alarms
	instance string
	stale    []otc.Rule      // is listed in place of the rules as long as a caller accepts lists from before now
	show     func(*otc.Rule) // changes the CPU rule that Cloud Eye shows, whatever was written; may be nil
	failing  atomic.Pointer[failing]
	now      atomic.Pointer[time.Time]
	topic    v1alpha1.Topic  // what the ConfigMap has
	gone     map[string]bool // objects that do not exist, as NAMESPACE/NAME
	// unreadable and unwritable are answers of the API server about the ConfigMap.
	unreadable, unwritable error
	// hasTwin means that another project shares a topic of our name.
	hasTwin  bool
	recorded v1alpha1.Alarms // what Ensure returned or recorded last
}

// failing are operations of the cloud that fail.
type failing struct {
	operations []string
	fault      simcloud.Fault
}

// signingKey is shared, because generating a key takes longer than most tests.
var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newWorld(t *testing.T) *world {
	t.Helper()
	w, begin := &world{t: t}, time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	w.now.Store(&begin)
	key, err := signingKey()
	w.must(err)
	w.sim, err = simcloud.Start(simcloud.Options{SigningKey: key, Now: w.clock, Fault: w.faultOf})
	w.must(err)
	t.Cleanup(func() { w.must(w.sim.Close()) })
	env := map[string]string{}
	for _, pair := range w.sim.Env() {
		k, v, _ := strings.Cut(pair, "=")
		env[k] = v
	}
	w.cloud, err = otc.Connect(t.Context(), otc.Options{Env: func(k string) string { return env[k] }, Rate: 10000, Log: zap.NewNop(), Now: time.Now})
	w.must(err)
	in, err := w.sim.AddInstance(simcloud.Instance{Flavor: "rds.mysql.c2.medium", VolumeGB: 40})
	w.must(err)
	w.instance = in.ID
	w.options = alarms.Options{
		Cloud: lists{w.cloud, w}, ClusterID: clusterID, Namespace: "autopilot", Endpoint: ourURL, Now: w.clock,
		IsGone: func(_ context.Context, namespace, name string) bool { return w.gone[namespace+"/"+name] },
		Metrics: []alarms.Metric{
			{v1alpha1.MetricStorage, "rds039_disk_util", "%"}, {v1alpha1.MetricCPU, "rds001_cpu_util", "%"},
			{v1alpha1.MetricMemory, "rds002_mem_util", "%"},
		},
	}
	w.restart()
	return w
}

// restart starts a process that remembers nothing.
func (w *world) restart() { w.alarms = alarms.New(w.options) }

// reset removes all topics, rules, faults and records, and starts a new process. It is faster than a new cloud.
func (w *world) reset(t *testing.T) {
	w.t = t
	for _, topic := range w.sim.Topics() {
		w.sim.RemoveTopic(topic.URN)
	}
	for _, r := range w.sim.Rules() {
		w.sim.RemoveRule(r.ID)
	}
	w.refuse()
	w.topic, w.recorded, w.hasTwin = v1alpha1.Topic{}, v1alpha1.Alarms{}, false
	w.stale, w.show, w.unreadable = nil, nil, nil
	w.restart()
}

// refuse makes SMN and Cloud Eye refuse exactly these operations from now on.
func (w *world) refuse(operations ...string) {
	w.fail(simcloud.Fault{Status: 403, Body: `{"error_code":"Not.0001","error_msg":"Not today"}`}, operations...)
}

// fail makes exactly these operations fail from now on.
func (w *world) fail(fault simcloud.Fault, operations ...string) {
	w.failing.Store(&failing{operations, fault})
}

func (w *world) faultOf(r *http.Request) *simcloud.Fault {
	_, operation := simcloud.OperationOf(r)
	if f := w.failing.Load(); f != nil && slices.Contains(f.operations, operation) {
		return &f.fault
	}
	return nil
}

// lists is the cloud of a world, whose lists are stale or new, and never shared. It may show odd rules.
type lists struct {
	*otc.Cloud
	w *world
}

func (l lists) Rules(ctx context.Context, notBefore time.Time) ([]otc.Rule, error) {
	if l.w.stale != nil && notBefore.Before(l.w.clock()) {
		return l.w.stale, nil
	}
	all, err := l.ListRules(ctx)
	for i := range all {
		all[i] = l.shown(all[i])
	}
	return all, err
}

func (l lists) Rule(ctx context.Context, id string) (otc.Rule, error) {
	r, err := l.Cloud.Rule(ctx, id)
	return l.shown(r), err
}

func (l lists) shown(r otc.Rule) otc.Rule {
	if l.w.show != nil && r.Metric == "rds001_cpu_util" {
		l.w.show(&r)
	}
	return r
}

func (l lists) Topics(ctx context.Context) ([]otc.Topic, error) {
	listed, err := l.Cloud.Topics(ctx)
	if l.w.hasTwin {
		listed = append([]otc.Topic{{URN: l.w.twinURN(), Name: alarms.TopicName(clusterID, "autopilot")}}, listed...)
	}
	return listed, err
}

// TopicSubscriptions lists nothing for a topic that does not exist. The manual says 404.
func (l lists) TopicSubscriptions(ctx context.Context, topicURN string) ([]otc.Subscription, error) {
	listed, err := l.Cloud.TopicSubscriptions(ctx, topicURN)
	if errors.Is(err, otc.ErrNotFound) {
		err = nil
	}
	return listed, err
}

func (w *world) clock() time.Time { return *w.now.Load() }

func (w *world) advance(d time.Duration) {
	now := w.clock().Add(d)
	w.now.Store(&now)
}

func (w *world) topicURN() string {
	return "urn:smn:eu-de:" + w.sim.ProjectID() + ":" + alarms.TopicName(clusterID, "autopilot")
}

// twinURN returns the URN of a topic of our name in another project.
func (w *world) twinURN() string {
	return strings.Replace(w.topicURN(), w.sim.ProjectID(), strings.Repeat("f", 32), 1)
}

// desired returns the rules of the database shop/orders.
func (w *world) desired() v1alpha1.DesiredAlarms {
	return v1alpha1.DesiredAlarms{
		Namespace: "shop", Name: "orders", TopicURN: w.topicURN(), Dimension: "rds_cluster_id:" + w.instance,
		Rules: []v1alpha1.DesiredRule{
			{Metric: v1alpha1.MetricStorage, ThresholdPercent: 75, PeriodSeconds: 1, Count: 5, RepeatSeconds: 900},
			{Metric: v1alpha1.MetricCPU, ThresholdPercent: 90, PeriodSeconds: 300, Count: 3, RepeatSeconds: 1800},
			{Metric: v1alpha1.MetricMemory, ThresholdPercent: 90, PeriodSeconds: 300, Count: 3, RepeatSeconds: 1800},
		},
	}
}

func (w *world) record(observed v1alpha1.Alarms) error {
	w.recorded = observed
	return nil
}

// try runs Ensure with what is recorded, and records what it returns, also with an error. The requests of the
// simulation are those of this run afterwards.
func (w *world) try(desired v1alpha1.DesiredAlarms) ([]v1alpha1.Metric, error) {
	desired.Recorded = w.recorded
	w.sim.ResetRequests()
	observed, restored, err := w.alarms.Ensure(w.t.Context(), desired, w.record)
	w.recorded = observed
	return restored, err
}

// ensure runs Ensure, which must succeed, and returns what was restored, such as "cpu memory".
func (w *world) ensure(desired v1alpha1.DesiredAlarms) string {
	w.t.Helper()
	restored, err := w.try(desired)
	if err != nil || w.recorded.Refused != "" {
		w.t.Fatal(err, w.recorded)
	}
	return strings.Trim(fmt.Sprint(restored), "[]")
}

// checkInOrder checks that the cloud has exactly the recorded rules and that they are as desired: Ensure lists them
// once, writes nothing and records nothing.
func (w *world) checkInOrder(desired v1alpha1.DesiredAlarms) {
	w.t.Helper()
	restored := w.ensure(desired)
	if n := len(w.sim.Requests()); n != 1 || restored != "" {
		w.t.Errorf("%d requests, restored %q; want one list", n, restored)
	}
	var recorded, exist []string
	for _, r := range w.recorded.Rules {
		recorded = append(recorded, fmt.Sprint(r.AlarmID, r.Metric, r.ThresholdPercent, r.Dimension, r.State))
	}
	for _, s := range w.sim.Rules() {
		d, metric := s.Metric.Dimensions[0], s.Name[strings.LastIndex(s.Name, "_")+1:]
		exist = append(exist, fmt.Sprint(s.ID, metric, s.Condition.Value, d.Name+":"+d.Value, s.State))
	}
	slices.Sort(recorded)
	slices.Sort(exist)
	if diff := cmp.Diff(exist, recorded); diff != "" || len(exist) != len(desired.Rules) {
		w.t.Fatalf("%d rules are desired, recorded %+v, and\n%s", len(desired.Rules), w.recorded, diff)
	}
}

// writes returns the operations that change something.
func (w *world) writes() (found []string) {
	for _, r := range w.sim.Requests() {
		if r.Service != "iam" && r.Method != http.MethodGet {
			found = append(found, r.Operation)
		}
	}
	return found
}

// rule returns the rule of a metric as Cloud Eye has it.
func (w *world) rule(metric v1alpha1.Metric) otc.Rule {
	w.t.Helper()
	i := slices.IndexFunc(w.recorded.Rules, func(r v1alpha1.Rule) bool { return r.Metric == metric })
	there, err := w.cloud.Rule(w.t.Context(), w.recorded.Rules[i].AlarmID)
	w.must(err)
	return there
}

// modify changes the CPU rule as a person does at the console.
func (w *world) modify(change func(*otc.Rule)) {
	w.t.Helper()
	r := w.rule(v1alpha1.MetricCPU)
	change(&r)
	w.must(w.cloud.ModifyRule(w.t.Context(), r.ID, r))
}

// add creates a changed copy of the CPU rule and returns its id.
func (w *world) add(change func(*otc.Rule)) string {
	w.t.Helper()
	r := w.rule(v1alpha1.MetricCPU)
	change(&r)
	id, err := w.cloud.CreateRule(w.t.Context(), r)
	w.must(err)
	return id
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}
