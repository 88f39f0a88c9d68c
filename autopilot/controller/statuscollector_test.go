// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// register is a cache that has nothing but autopilots.
type register struct {
	Kubernetes
	autopilots []*v1alpha1.RdsAutopilot
}

func (r register) EachAutopilot(f func(*v1alpha1.RdsAutopilot)) {
	for _, a := range r.autopilots {
		f(a)
	}
}

func TestTheStatusCollectorCountsEveryDatabaseOnce(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	with := func(subscription v1alpha1.SubscriptionState, conditions ...metav1.Condition) *v1alpha1.RdsAutopilot {
		a := &v1alpha1.RdsAutopilot{}
		a.Status.Alarms = v1alpha1.Alarms{TopicURN: "urn", Subscription: subscription}
		a.Status.Conditions = conditions
		a.Status.Instance = &v1alpha1.Instance{Status: "ACTIVE"}
		return a
	}
	armed := metav1.Condition{Type: v1alpha1.ConditionArmed, Status: metav1.ConditionTrue, Reason: "AlarmsInPlace"}
	not := func(reason string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionArmed, Status: metav1.ConditionFalse, Reason: reason}
	}
	intent := func(kind v1alpha1.ChangeKind, age time.Duration) *v1alpha1.Intent {
		at := metav1.NewMicroTime(now.Add(-age))
		return &v1alpha1.Intent{Kind: kind, DecisionTime: at, AskedTime: &at}
	}
	growing := with(v1alpha1.SubscriptionConfirmed, armed, metav1.Condition{Type: v1alpha1.ConditionLimited, Status: metav1.ConditionTrue})
	growing.Status.Pending, growing.Status.Overtaken = intent(v1alpha1.KindVolume, 14*time.Minute), intent(v1alpha1.KindFlavor, 15*time.Minute)
	growing.Status.Unfulfilled = []v1alpha1.Unfulfilled{{Kind: v1alpha1.KindVolume, To: "105", SinceTime: metav1.NewTime(now.Add(-15 * time.Minute))}}
	off := with("", not("NotEnabled"))
	off.Status.Alarms = v1alpha1.Alarms{}
	full := with(v1alpha1.SubscriptionConfirmed, not("AReasonOfAnotherVersion"))
	full.Status.ReadOnly, off.Status.ReadOnly = &v1alpha1.ReadOnly{}, &v1alpha1.ReadOnly{}
	growing.Status.Instance.VolumeGB, growing.Spec.Storage.MaxGB = 50, 4000
	full.Status.Instance.VolumeGB, full.Spec.Storage.MaxGB = 100, 80
	off.Status.Instance.VolumeGB, off.Spec.Storage.MaxGB = 40, 4000
	all := []*v1alpha1.RdsAutopilot{
		growing, off, with(v1alpha1.SubscriptionPending, not("SubscriptionPending")), with("", not("CloudUnreachable")),
		full, {},
	}
	const want = `
# HELP rds_autopilot_autopilots RdsAutopilots, by whether an alarm would reach the service.
# TYPE rds_autopilot_autopilots gauge
rds_autopilot_autopilots{armed="false"} 5
rds_autopilot_autopilots{armed="true"} 1
# HELP rds_autopilot_conditions RdsAutopilots with that condition True. Armed is in rds_autopilot_autopilots.
# TYPE rds_autopilot_conditions gauge
rds_autopilot_conditions{type="Contested"} 0
rds_autopilot_conditions{type="Limited"} 1
rds_autopilot_conditions{type="Progressing"} 0
# HELP rds_autopilot_not_armed RdsAutopilots whose condition Armed is not True, by its reason. NotYet: not checked yet.
# TYPE rds_autopilot_not_armed gauge
rds_autopilot_not_armed{reason="CloudUnreachable"} 1
rds_autopilot_not_armed{reason="InstanceUnknown"} 0
rds_autopilot_not_armed{reason="NoData"} 0
rds_autopilot_not_armed{reason="NotAllowed"} 0
rds_autopilot_not_armed{reason="NotEnabled"} 1
rds_autopilot_not_armed{reason="NotYet"} 2
rds_autopilot_not_armed{reason="PolicyInvalid"} 0
rds_autopilot_not_armed{reason="QuotaExceeded"} 0
rds_autopilot_not_armed{reason="RuleMissing"} 0
rds_autopilot_not_armed{reason="SubscriptionPending"} 1
rds_autopilot_not_armed{reason="SubscriptionRefused"} 0
# HELP rds_autopilot_pending_changes Requested changes, by us or by others, that are not completed. stalled: for 15 minutes or more with the instance ACTIVE.
# TYPE rds_autopilot_pending_changes gauge
rds_autopilot_pending_changes{kind="Flavor",stalled="false"} 0
rds_autopilot_pending_changes{kind="Flavor",stalled="true"} 1
rds_autopilot_pending_changes{kind="Volume",stalled="false"} 1
rds_autopilot_pending_changes{kind="Volume",stalled="true"} 1
# HELP rds_autopilot_read_only RdsAutopilots whose database is read-only, by its used space or because it is in STORAGE FULL, without those that are off or have no instance.
# TYPE rds_autopilot_read_only gauge
rds_autopilot_read_only 1
# HELP rds_autopilot_storage_bytes Storage of all databases with a known instance. volume: size at their last check; cap: what their policies allow. A GB of the cloud counts as 10^9.
# TYPE rds_autopilot_storage_bytes gauge
rds_autopilot_storage_bytes{kind="cap"} 4.1e+12
rds_autopilot_storage_bytes{kind="volume"} 1.5e+11
# HELP rds_autopilot_subscriptions Subscriptions of our URL to the topics of RdsAutopilots, by state.
# TYPE rds_autopilot_subscriptions gauge
rds_autopilot_subscriptions{state="Confirmed"} 2
rds_autopilot_subscriptions{state="Missing"} 1
rds_autopilot_subscriptions{state="Pending"} 1
`
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(newStatusCollector(register{autopilots: all}, func() time.Time { return now }, noneUnstored))
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "rds_autopilot_autopilots", "rds_autopilot_conditions",
		"rds_autopilot_not_armed", "rds_autopilot_pending_changes", "rds_autopilot_read_only", "rds_autopilot_storage_bytes",
		"rds_autopilot_subscriptions"); err != nil {
		t.Error(err)
	}
}

func noneUnstored(Key) ([]v1alpha1.Held, bool) { return nil, false }

// counts returns the series of a metric that are not 0, by their label values.
func counts(t *testing.T, c prometheus.Collector, name string) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if v := m.GetGauge().GetValue(); f.GetName() == name && v != 0 {
				found[strings.Join(labels, " ")] = v
			}
		}
	}
	return found
}

func TestTheStatusCollectorCountsChangesThatAreHeldTooLong(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	held := func(kind v1alpha1.ChangeKind, reason string, age time.Duration) v1alpha1.Held {
		return v1alpha1.Held{Kind: kind, Reason: reason, SinceTime: metav1.NewTime(now.Add(-age))}
	}
	armed := func(name, reason string, h ...v1alpha1.Held) *v1alpha1.RdsAutopilot {
		return &v1alpha1.RdsAutopilot{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     v1alpha1.Status{Held: h, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionArmed, Status: metav1.ConditionFalse, Reason: reason}}},
		}
	}
	all := []*v1alpha1.RdsAutopilot{
		armed("a", "AlarmsInPlace", held("Volume", "QuotaExceeded", 15*time.Minute), held("Flavor", "SoldOut", time.Hour)),
		armed("b", "CloudUnreachable", held("Volume", "QuotaExceeded", time.Hour)),
		armed("c", "AlarmsInPlace", held("Volume", "CapReached", 14*time.Minute)),
		armed("d", "AlarmsInPlace", held("Volume", "ChangePending", 59*time.Minute)),
		armed("e", "AlarmsInPlace", held("Volume", "ChangePending", time.Hour)),
		armed("f", "AlarmsInPlace", held("Volume", "AlarmInForce", 59*time.Minute)),
		armed("off", "NotEnabled", held("Volume", "CapReached", time.Hour)),
		armed("unwritten", "AlarmsInPlace"),
	}
	unstored := func(k Key) ([]v1alpha1.Held, bool) {
		return []v1alpha1.Held{held("Volume", "StatusNotStored", time.Hour)}, k.Name == "unwritten"
	}
	got := counts(t, newStatusCollector(register{autopilots: all}, func() time.Time { return now }, unstored), "rds_autopilot_held_changes")
	want := map[string]float64{"Volume QuotaExceeded": 2, "Flavor SoldOut": 1, "Volume ChangePending": 1, "Volume StatusNotStored": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheStatusCollectorCountsDatabasesThatAreNotReadyForAnHour(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var all []*v1alpha1.RdsAutopilot
	for _, c := range []metav1.Condition{
		{Status: metav1.ConditionFalse, Reason: "ReadFailed", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))},
		{Status: metav1.ConditionFalse, Reason: "ReadFailed", LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))},
		{Status: metav1.ConditionFalse, Reason: "NoData", LastTransitionTime: metav1.NewTime(now.Add(-48 * time.Hour))},
		{Status: metav1.ConditionTrue, Reason: "NotEnabled", LastTransitionTime: metav1.NewTime(now.Add(-48 * time.Hour))},
		{Status: metav1.ConditionUnknown, Reason: "NotYet"},
	} {
		c.Type = v1alpha1.ConditionReady
		all = append(all, &v1alpha1.RdsAutopilot{Status: v1alpha1.Status{Conditions: []metav1.Condition{c}}})
	}
	got := counts(t, newStatusCollector(register{autopilots: all}, func() time.Time { return now }, noneUnstored), "rds_autopilot_not_ready")
	if diff := cmp.Diff(map[string]float64{"ReadFailed": 1, "NoData": 1}, got); diff != "" {
		t.Error(diff)
	}
}
