// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/internal/status"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// fleet is the cache of the status page.
type fleet struct {
	mu  sync.Mutex
	all []*v1alpha1.RdsAutopilot
}

// replace gives the fleet the databases of another one, while the page is served.
func (f *fleet) replace(other *fleet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = other.all
}

func (f *fleet) databases() []*v1alpha1.RdsAutopilot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all
}

func (f *fleet) HasSynced() bool { return true }

func (f *fleet) EachAutopilot(each func(*v1alpha1.RdsAutopilot)) {
	for _, a := range f.databases() {
		each(a)
	}
}

func (f *fleet) EachTarget(each func(*autopilot.Target)) {
	for _, a := range f.databases() {
		each(f.Target(a.Namespace, a.Name))
	}
}

func (f *fleet) Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool) {
	for _, a := range f.databases() {
		if a.Namespace == namespace && a.Name == name {
			return a, true
		}
	}
	return nil, false
}

func (f *fleet) Target(namespace, name string) *autopilot.Target {
	a, ok := f.Autopilot(namespace, name)
	if !ok {
		return nil
	}
	i := a.Status.Instance
	return &autopilot.Target{Namespace: namespace, Name: name, InstanceID: i.ID, Wanted: autopilot.Wanted{VolumeGB: int(i.VolumeGB), Flavor: i.Flavor}}
}

func beforeNoon(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noon().Add(-d)) }

func noon() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

// add adds an armed database. used is in percent.
func (f *fleet) add(namespace, name, flavor string, gb, maxGB int32, used float64, change ...func(*v1alpha1.RdsAutopilot)) {
	a := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: autopilot.DefaultSpec()}
	a.Spec.Storage.MaxGB = maxGB
	a.Status.Instance = &v1alpha1.Instance{ID: "0c2b7f2e9d5f4a1c8e6b3a7d5c1f9e02in01", Status: autopilot.StatusActive, VolumeGB: gb, Flavor: flavor, VCPUs: 4, MemoryGB: 16, Zones: []string{"eu-de-01", "eu-de-02"}}
	a.Status.Baseline = &v1alpha1.Baseline{VolumeGB: gb, VCPUs: 4, MemoryGB: 16}
	record.SetCondition(&a.Status, v1alpha1.ConditionArmed, true, autopilot.ArmedReason, "3 alarm rules exist and the subscription is confirmed", 1, noon().Add(-72*time.Hour))
	for _, m := range autopilot.MetricTable() {
		a.Status.Alarms.Rules = append(a.Status.Alarms.Rules, v1alpha1.Rule{Metric: m.Metric, AlarmID: "al17" + string(m.Metric), ThresholdPercent: int32(m.EffectiveThreshold(a.Spec, int(gb))), State: v1alpha1.StateOK})
	}
	a.Status.Intake.Signals = []v1alpha1.Signal{{
		Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK, ValuePercent: fmt.Sprint(used), MessageID: "4f9c1e2a7b8d",
		DatapointTime: new(beforeNoon(11 * time.Minute)), AlarmTime: beforeNoon(10 * time.Minute), ReceivedTime: beforeNoon(10 * time.Minute),
	}}
	for _, c := range change {
		c(a)
	}
	f.all = append(f.all, a)
}

func decided(metric v1alpha1.Metric, at time.Duration, action autopilot.Action, reason autopilot.Reason, from, to, message string) v1alpha1.DecisionRecord {
	return v1alpha1.DecisionRecord{Time: metav1.NewTime(beforeNoon(at).Time), LastTime: metav1.NewTime(beforeNoon(at).Time), Count: 1, Metric: metric, Action: string(action), Reason: string(reason), From: from, To: to, Message: message}
}

func changed(kind v1alpha1.ChangeKind, at time.Duration, from, to string) v1alpha1.Change {
	return v1alpha1.Change{Kind: kind, By: v1alpha1.ByAutopilot, From: from, To: to, Outcome: v1alpha1.OutcomeCompleted, DecisionTime: new(beforeNoon(at + 4*time.Minute)), CompletionTime: beforeNoon(at)}
}

// inAlarm puts the rule i into alarm, with the decision that followed.
func inAlarm(i int, record v1alpha1.DecisionRecord) func(*v1alpha1.RdsAutopilot) {
	return func(a *v1alpha1.RdsAutopilot) {
		a.Status.Alarms.Rules[i].State, a.Status.Alarms.Rules[i].StateTime = v1alpha1.StateAlarm, new(metav1.NewMicroTime(record.Time.Time))
		a.Status.Decisions = append([]v1alpha1.DecisionRecord{record}, a.Status.Decisions...)
	}
}

// serve serves the status page of a fleet. It returns the URL and the host.
func serve(t *testing.T, f *fleet) (address, host string) {
	t.Helper()
	reg := prometheus.NewRegistry()
	leader := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rds_autopilot_leader"})
	sweep := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rds_autopilot_last_sweep_timestamp_seconds"})
	messages := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rds_autopilot_notifications_total"}, []string{"type", "result"})
	reg.MustRegister(leader, sweep, messages)
	for result, n := range map[string]float64{"stored": 341, "duplicate": 6, "forged": 2} {
		messages.WithLabelValues("Notification", result).Add(n)
	}
	leader.Set(1)
	sweep.Set(float64(noon().Add(-2 * time.Minute).Unix()))
	h, err := status.New(status.Options{
		Cache: f, Metrics: reg, Leader: func() string { return "rds-autopilot-7d9f5-x2k4q" }, Mode: v1alpha1.ModeAuto,
		Past: func(_ context.Context, _, _ string, period time.Duration, since time.Time) (autopilot.Past, error) {
			return ordersMeasured(period, since), nil
		},
		CloudErrors: func() []status.CloudError {
			return []status.CloudError{{Service: "smn", Text: "smn ListTopics: 503", Time: noon()}}
		},
		Sweep: 5 * time.Minute, Recheck: 30 * time.Second, Version: "v0.1.0",
		Documents: "https://github.com/mcsps/rds-autopilot/blob/v0.1.0/",
		Scope: func() status.Scope {
			return status.Scope{Cluster: "5d1c8f4a-7b2e-4c39-9f60-2a8e1d3b7c54", Region: "eu-de", Project: "eu-de_shop"}
		},
		Log: zaptest.NewLogger(t), Now: noon,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL, strings.TrimPrefix(server.URL, "http://")
}
