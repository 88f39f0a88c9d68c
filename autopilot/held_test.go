// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func heldSince(kind v1alpha1.ChangeKind, reason Reason, age time.Duration) v1alpha1.Held {
	return v1alpha1.Held{Kind: kind, Reason: string(reason), SinceTime: metav1.NewTime(noon().Add(-age))}
}

// TestEveryHeldGrowthIsRecordedWhateverItsReason lists what may prevent the growth of a volume above its threshold.
func TestEveryHeldGrowthIsRecordedWhateverItsReason(t *testing.T) {
	grown := v1alpha1.Change{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, Outcome: v1alpha1.OutcomeCompleted, CompletionTime: ago(5 * time.Minute)}
	before := []v1alpha1.Held{heldSince(v1alpha1.KindVolume, ReasonQuotaExceeded, 20*time.Minute)}
	silent := storageAt(95)
	silent.State, silent.AlarmOverdueSince = v1alpha1.StateOK, noon().Add(-3*time.Minute)
	ended := storageAt(50)
	ended.State = v1alpha1.StateOK
	for name, tc := range map[string]struct {
		alarm   Alarm
		prepare func(*Case)
		patched Patched
		want    []v1alpha1.Held
	}{
		"refused by the API server":   {alarm: storageAt(95), patched: Patched{Result: PatchRefused, Message: "no"}, want: []v1alpha1.Held{heldSince("Volume", ReasonRefused, 0)}},
		"reverted at once":            {alarm: storageAt(95), patched: Patched{Result: PatchReverted}, want: []v1alpha1.Held{heldSince("Volume", ReasonContested, 0)}},
		"the patch had no answer":     {alarm: storageAt(95), want: []v1alpha1.Held{heldSince("Volume", ReasonAlarmInForce, 0)}},
		"quota":                       {alarm: storageAt(95), prepare: cloudRefuses(pendingVolume(0), ReasonQuotaExceeded), want: []v1alpha1.Held{heldSince("Volume", ReasonQuotaExceeded, 0)}},
		"payment":                     {alarm: storageAt(95), prepare: cloudRefuses(pendingVolume(0), ReasonPaymentRequired), want: []v1alpha1.Held{heldSince("Volume", ReasonPaymentRequired, 0)}},
		"permission":                  {alarm: storageAt(95), prepare: cloudRefuses(pendingVolume(0), ReasonNotPermitted), want: []v1alpha1.Held{heldSince("Volume", ReasonNotPermitted, 0)}},
		"capped":                      {alarm: storageAt(95), prepare: func(c *Case) { c.Spec.Storage.MaxGB = 100 }, want: []v1alpha1.Held{heldSince("Volume", ReasonCapReached, 0)}},
		"stalled":                     {alarm: storageAt(95), prepare: pendingVolume(time.Hour), want: []v1alpha1.Held{heldSince("Volume", ReasonStalled, 0)}},
		"data unreadable":             {alarm: storageAt(95).without("evidence"), want: []v1alpha1.Held{heldSince("Volume", ReasonNoData, 0)}},
		"data too old":                {alarm: storageAt(95).measured(time.Hour), want: []v1alpha1.Held{heldSince("Volume", ReasonStaleEvidence, 0)}},
		"busy":                        {alarm: storageAt(95), prepare: busy("BACKING UP"), want: []v1alpha1.Held{heldSince("Volume", ReasonInstanceBusy, 0)}},
		"recommended":                 {alarm: storageAt(95), prepare: func(c *Case) { c.Mode = v1alpha1.ModeRecommend }, want: []v1alpha1.Held{heldSince("Volume", ReasonRecommend, 0)}},
		"the rule is silent":          {alarm: silent, want: []v1alpha1.Held{heldSince("Volume", ReasonRuleSilent, 3*time.Minute)}},
		"the time stays":              {alarm: storageAt(95), prepare: func(c *Case) { c.Spec.Storage.MaxGB, c.Status.Held = 100, before }, want: []v1alpha1.Held{heldSince("Volume", ReasonCapReached, 20*time.Minute)}},
		"in progress":                 {alarm: storageAt(95), prepare: pendingVolume(time.Minute), want: []v1alpha1.Held{heldSince("Volume", ReasonChangePending, 0)}},
		"in progress after a refusal": {alarm: storageAt(95), prepare: both(pendingVolume(time.Minute), func(c *Case) { c.Status.Held = before }), want: before},
		"Cloud Eye does not answer":   {alarm: storageAt(95).without("state").without("evidence"), prepare: func(c *Case) { c.Status.Held = before }, want: before},
		"no alarm could be read":      {alarm: usageAt(v1alpha1.MetricCPU, 10), prepare: func(c *Case) { c.Status.Held = before }, want: before},
		"a growth sets the time anew": {alarm: storageAt(95).without("evidence"), prepare: func(c *Case) { c.Status.Held, c.Status.Changes = before, []v1alpha1.Change{grown} }, want: []v1alpha1.Held{heldSince("Volume", ReasonNoData, 5*time.Minute)}},
		"below the threshold":         {alarm: storageAt(50), prepare: func(c *Case) { c.Status.Held = before }},
		"the alarm has ended":         {alarm: ended, prepare: func(c *Case) { c.Status.Held = before }},
	} {
		c := quiet()
		if tc.prepare != nil {
			tc.prepare(&c)
		}
		c = c.with(tc.alarm)
		v := Decide(c)
		c.Status = RecordIntent(c, v)
		got := RecordOutcome(c, v, Followed{}, tc.patched).Status.Held
		i := 0
		for _, h := range got { // flavors have their own test
			if h.Kind == v1alpha1.KindVolume {
				got[i], i = h, i+1
			}
		}
		if diff := cmp.Diff(append([]v1alpha1.Held{}, tc.want...), append([]v1alpha1.Held{}, got[:i]...)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestHeldFlavorHasTheReasonOfItsDecision(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*Case)
		want    Reason
	}{
		"sold out":          {soldOut("eu-de-01"), ReasonSoldOut},
		"no larger flavor":  {func(c *Case) { c.Catalogue = c.Catalogue[:1] }, ReasonNoLargerFlavor},
		"no catalogue":      {func(c *Case) { c.Catalogue = nil }, ReasonNoData},
		"the metric is off": {func(c *Case) { c.Spec.Flavor.CPU.Enabled, c.Spec.Flavor.Memory.Enabled = new(bool), new(bool) }, ""},
	} {
		c := quiet()
		c.Offered, c.OfferedKnown = nil, false
		tc.prepare(&c)
		c = c.with(usageAt(v1alpha1.MetricCPU, 95))
		v := Decide(c)
		c.Status = RecordIntent(c, v)
		held := RecordOutcome(c, v, Followed{}, Patched{}).Status.Held
		if got := append(held, v1alpha1.Held{})[0].Reason; got != string(tc.want) {
			t.Errorf("%s: held %+v, want %q; decided %+v", name, held, tc.want, v.Decisions)
		}
	}
}

func TestHoldUnreadTrustsANewSignalOnly(t *testing.T) {
	rule := v1alpha1.Rule{Metric: v1alpha1.MetricStorage, AlarmID: "al", State: v1alpha1.StateOK, StateTime: new(ago(time.Hour))}
	signal := v1alpha1.Signal{Metric: v1alpha1.MetricStorage, AlarmID: "al", State: v1alpha1.StateAlarm, AlarmTime: ago(time.Minute)}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Status)
		want   int
	}{
		"a new alarm":       {func(*v1alpha1.Status) {}, 1},
		"a new end":         {func(s *v1alpha1.Status) { s.Intake.Signals[0].State = v1alpha1.StateOK }, 0},
		"an answered alarm": {func(s *v1alpha1.Status) { s.Alarms.Rules[0].StateTime = new(ago(time.Second)) }, 0},
		"an alarm before growth": {func(s *v1alpha1.Status) {
			s.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, Outcome: v1alpha1.OutcomeCompleted, CompletionTime: ago(time.Second)}}
		}, 0},
	} {
		s := v1alpha1.Status{Alarms: v1alpha1.Alarms{Rules: []v1alpha1.Rule{rule}}, Intake: v1alpha1.Intake{Signals: []v1alpha1.Signal{signal}}}
		tc.change(&s)
		if HoldUnread(&s, noon()); len(s.Held) != tc.want {
			t.Errorf("%s: %+v", name, s.Held)
		}
	}
}
