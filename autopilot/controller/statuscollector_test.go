// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// register is a cache that has nothing but autopilots.
type register struct {
	AutopilotCache
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
	full.Status.Instance.Status, off.Status.Instance.Status = autopilot.StatusStorageFull, autopilot.StatusStorageFull
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
# HELP rds_autopilot_storage_bytes Storage of all databases with a known instance. volume: size at their last check; cap: what their policies allow. A GB of the cloud counts as 10^9.
# TYPE rds_autopilot_storage_bytes gauge
rds_autopilot_storage_bytes{kind="cap"} 4.1e+12
rds_autopilot_storage_bytes{kind="volume"} 1.5e+11
# HELP rds_autopilot_storage_full RdsAutopilots whose instance was in STORAGE FULL at its last check, without those that are off or have no instance.
# TYPE rds_autopilot_storage_full gauge
rds_autopilot_storage_full 1
# HELP rds_autopilot_subscriptions Subscriptions of our URL to the topics of RdsAutopilots, by state.
# TYPE rds_autopilot_subscriptions gauge
rds_autopilot_subscriptions{state="Confirmed"} 2
rds_autopilot_subscriptions{state="Missing"} 1
rds_autopilot_subscriptions{state="Pending"} 1
`
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(newStatusCollector(register{autopilots: all}, func() time.Time { return now }))
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
