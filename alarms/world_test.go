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
	endpoint string           // of the next process
	cluster  string           // id of the cluster of the next process
	listed   *alarms.Snapshot // what every process has listed last; nil means nothing

	ill    atomic.Pointer[[]string] // operations that are refused
	answer struct {                 // replaces the answer to an operation, until reset
		operation string
		fault     simcloud.Fault
	}

	mu       sync.Mutex
	now      time.Time
	recorded v1alpha1.Alarms // as recorded
	records  int
}

// signingKey is one for all: to make it costs as much as many a test.
var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, endpoint: ourURL, cluster: clusterID, now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	key, err := signingKey()
	if err != nil {
		t.Fatal(err)
	}
	sim, err := simcloud.Start(simcloud.Options{SigningKey: key, Now: w.clock, Settings: simcloud.Settings{ConfirmationQuota: 1000}, Fault: w.faultOf})
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

// refuse has SMN or Cloud Eye refuse these operations from now on; none at all without any.
func (w *world) refuse(operations ...string) { w.ill.Store(&operations) }

func (w *world) faultOf(r *http.Request) *simcloud.Fault {
	service, operation := simcloud.OperationOf(r)
	if operation == w.answer.operation {
		return &w.answer.fault
	}
	ill := w.ill.Load()
	if ill == nil || !slices.Contains(*ill, operation) {
		return nil
	}
	body := `{"code":"SMN.9999","message":"Not today"}`
	if service == "ces" {
		body = `{"message":{"code":"ces.9999","details":"Not today"}}`
	}
	return &simcloud.Fault{Status: http.StatusForbidden, Body: body}
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
	return alarms.Options{Cloud: cloud, Lister: lists{cloud, w}, Metrics: metrics(), ClusterID: w.cluster, Endpoint: w.endpoint,
		EveryNamespace: true, Now: w.clock}
}

// process returns Alarms that remember nothing, as after a restart.
func (w *world) process(cloud api) *alarms.Alarms { return alarms.New(w.options(cloud)) }

// restartWith starts a process with another public URL.
func (w *world) restartWith(endpoint string) {
	w.endpoint = endpoint
	w.alarms = w.process(w.cloud)
}

// reset takes all away but the instance; a cloud of its own for each case takes long to make.
func (w *world) reset() {
	for _, t := range w.sim.Topics() {
		w.sim.RemoveTopic(t.URN)
	}
	for _, r := range w.sim.Rules() {
		w.sim.RemoveRule(r.ID)
	}
	w.answer.operation = ""
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

func metrics() []alarms.Metric {
	return []alarms.Metric{
		{Name: v1alpha1.MetricStorage, CloudEye: "rds039_disk_util", Unit: "%"},
		{Name: v1alpha1.MetricCPU, CloudEye: "rds001_cpu_util", Unit: "%"},
		{Name: v1alpha1.MetricMemory, CloudEye: "rds002_mem_util", Unit: "%"},
	}
}

func (w *world) want() v1alpha1.DesiredAlarms {
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

// ensureWith runs a process's Ensure from that record, with that listing or none.
func (w *world) ensureWith(ctx context.Context, a *alarms.Alarms, want v1alpha1.DesiredAlarms, recorded v1alpha1.Alarms, listed *alarms.Snapshot, record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, []string, error) {
	want.Autopilot = want.Autopilot.DeepCopy()
	want.Autopilot.Status.Alarms, w.listed = recorded, listed
	return a.Ensure(ctx, want, record)
}

// removeWith runs a process's Remove from that record.
func (w *world) removeWith(a *alarms.Alarms, of v1alpha1.DesiredAlarms, recorded v1alpha1.Alarms) error {
	owner := of.Autopilot.DeepCopy()
	owner.Status.Alarms = recorded
	return a.Remove(w.t.Context(), owner)
}

func (w *world) record(h v1alpha1.Alarms) error {
	w.recorded = h
	w.records++
	return nil
}

// ensure runs Ensure from what is recorded, and returns what was repaired.
func (w *world) ensure(want v1alpha1.DesiredAlarms) []string {
	w.t.Helper()
	_, repaired, err := w.ensureWith(w.t.Context(), w.alarms, want, w.recorded, nil, w.record)
	if err != nil {
		w.t.Fatal(err)
	}
	return repaired
}

// listing reads all there is, as far as the cloud answers.
func (w *world) listing() *alarms.Snapshot {
	ctx := w.t.Context()
	return alarms.NewSnapshot(alarms.NewResult(w.cloud.Topics(ctx)), alarms.NewResult(w.cloud.Subscriptions(ctx)), alarms.NewResult(w.cloud.Rules(ctx)))
}

// sweep is ensure with a listing. The requests seen afterwards are those of Ensure.
func (w *world) sweep(want v1alpha1.DesiredAlarms) []string {
	w.t.Helper()
	listed := w.listing()
	w.sim.ResetRequests()
	_, repaired, err := w.ensureWith(w.t.Context(), w.alarms, want, w.recorded, listed, w.record)
	if err != nil {
		w.t.Fatal(err)
	}
	return repaired
}

// checkQuiet says that a sweep has nothing to do: no request, nothing repaired, nothing new.
func (w *world) checkQuiet(want v1alpha1.DesiredAlarms) {
	w.t.Helper()
	repaired := w.sweep(want)
	records := w.records
	repaired = append(repaired, w.sweep(want)...) // the first one may have seen a state for the first time
	if n := len(w.sim.Requests()); n != 0 || len(repaired) > 0 || w.records != records {
		w.t.Errorf("in order: %d requests, %d records, repaired %q", n, w.records-records, repaired)
	}
}

// writes are the requests that change something, as METHOD operation.
func (w *world) writes() []string {
	var found []string
	for _, r := range w.sim.Requests() {
		if r.Service != "iam" && r.Method != http.MethodGet {
			found = append(found, r.Operation)
		}
	}
	return found
}

// shown is all there is in the cloud, without what the cloud makes up: ids and times.
func (w *world) shown() []string {
	var lines []string
	for _, t := range w.sim.Topics() {
		lines = append(lines, fmt.Sprintf("topic %s %q", t.Name, t.DisplayName))
	}
	for _, s := range w.sim.Subscriptions() {
		lines = append(lines, fmt.Sprintf("subscription %s %s %s %d", s.TopicURN[strings.LastIndex(s.TopicURN, ":")+1:], s.Protocol, s.Endpoint, s.Status))
	}
	for _, r := range w.sim.Rules() {
		r.ID, r.UpdateTime, r.State = "", 0, ""
		lines = append(lines, fmt.Sprintf("rule %+v", r))
	}
	slices.Sort(lines)
	return lines
}

// checkRecord holds what is recorded against what is there.
func (w *world) checkRecord() {
	w.t.Helper()
	topics, subscriptions, rules := w.sim.Topics(), w.sim.Subscriptions(), w.sim.Rules()
	if len(topics) != 1 || len(subscriptions) != 1 || len(rules) != 3 {
		w.t.Fatalf("%d topics, %d subscriptions, %d rules; want 1, 1, 3", len(topics), len(subscriptions), len(rules))
	}
	if w.recorded.TopicURN != topics[0].URN || w.recorded.SubscriptionURN != subscriptions[0].URN || len(w.recorded.Rules) != 3 {
		w.t.Fatalf("recorded: %+v", w.recorded)
	}
	for _, r := range w.recorded.Rules {
		if !slices.ContainsFunc(rules, func(s simcloud.Rule) bool {
			return s.ID == r.AlarmID && strings.HasSuffix(s.Name, "_"+string(r.Metric)) && int32(s.Condition.Value) == r.ThresholdPercent &&
				r.Dimension == s.Metric.Dimensions[0].Name+":"+s.Metric.Dimensions[0].Value
		}) {
			w.t.Errorf("recorded rule is not there: %+v", r)
		}
	}
}

var errCrash = errors.New("crash")

// crashing stops the process, so to say, at the n-th call that changes something: before it is carried out, or after.
type crashing struct {
	*otc.Cloud
	n       int
	applied bool
}

func (c *crashing) at(do func() error) error {
	if c.n--; c.n < 0 {
		return errCrash // the process is gone: nothing follows
	}
	if c.n > 0 {
		return do()
	}
	if c.applied {
		_ = do()
	}
	return errCrash
}

func (c *crashing) CreateTopic(ctx context.Context, name, display string) (urn string, err error) {
	err = c.at(func() (err error) { urn, err = c.Cloud.CreateTopic(ctx, name, display); return err })
	return urn, err
}

func (c *crashing) UpdateTopic(ctx context.Context, urn, display string) error {
	return c.at(func() error { return c.Cloud.UpdateTopic(ctx, urn, display) })
}

func (c *crashing) DeleteTopic(ctx context.Context, urn string) error {
	return c.at(func() error { return c.Cloud.DeleteTopic(ctx, urn) })
}

func (c *crashing) Subscribe(ctx context.Context, topic, protocol, endpoint, remark string) (urn string, err error) {
	err = c.at(func() (err error) {
		urn, err = c.Cloud.Subscribe(ctx, topic, protocol, endpoint, remark)
		return err
	})
	return urn, err
}

func (c *crashing) Unsubscribe(ctx context.Context, urn string) error {
	return c.at(func() error { return c.Cloud.Unsubscribe(ctx, urn) })
}

func (c *crashing) CreateRule(ctx context.Context, r otc.Rule) (id string, err error) {
	err = c.at(func() (err error) { id, err = c.Cloud.CreateRule(ctx, r); return err })
	return id, err
}

func (c *crashing) ModifyRule(ctx context.Context, id string, r otc.Rule) error {
	return c.at(func() error { return c.Cloud.ModifyRule(ctx, id, r) })
}

func (c *crashing) EnableRule(ctx context.Context, id string, on bool) error {
	return c.at(func() error { return c.Cloud.EnableRule(ctx, id, on) })
}

func (c *crashing) DeleteRule(ctx context.Context, id string) error {
	return c.at(func() error { return c.Cloud.DeleteRule(ctx, id) })
}
