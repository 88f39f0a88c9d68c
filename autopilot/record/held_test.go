// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func heldSince(kind v1alpha1.ChangeKind, reason autopilot.Reason, age time.Duration) v1alpha1.Held {
	return v1alpha1.Held{Kind: kind, Reason: string(reason), SinceTime: metav1.NewTime(cases.Noon().Add(-age))}
}

// TestEveryHeldGrowthIsRecordedWhateverItsReason lists what may prevent the growth of a volume above its threshold.
func TestEveryHeldGrowthIsRecordedWhateverItsReason(t *testing.T) {
	grown := v1alpha1.Change{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, Outcome: v1alpha1.OutcomeCompleted, CompletionTime: cases.Ago(5 * time.Minute)}
	before := []v1alpha1.Held{heldSince(v1alpha1.KindVolume, autopilot.ReasonQuotaExceeded, 20*time.Minute)}
	silent := cases.StorageAt(92)
	silent.State, silent.AlarmOverdueSince = v1alpha1.StateOK, cases.Noon().Add(-3*time.Minute)
	ended := cases.StorageAt(50)
	ended.State = v1alpha1.StateOK
	for name, tc := range map[string]struct {
		alarm   autopilot.Alarm
		prepare func(*autopilot.Case)
		patched Patched
		want    []v1alpha1.Held
	}{
		"refused by the API server":   {alarm: cases.StorageAt(95), patched: Patched{Result: PatchRefused, Message: "no"}, want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonRefused, 0)}},
		"reverted at once":            {alarm: cases.StorageAt(95), patched: Patched{Result: PatchReverted}, want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonContested, 0)}},
		"the patch had no answer":     {alarm: cases.StorageAt(95), want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonAlarmInForce, 0)}},
		"quota":                       {alarm: cases.StorageAt(95), prepare: cases.CloudRefuses(cases.PendingVolume(0), autopilot.ReasonQuotaExceeded), want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonQuotaExceeded, 0)}},
		"payment":                     {alarm: cases.StorageAt(95), prepare: cases.CloudRefuses(cases.PendingVolume(0), autopilot.ReasonPaymentRequired), want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonPaymentRequired, 0)}},
		"permission":                  {alarm: cases.StorageAt(95), prepare: cases.CloudRefuses(cases.PendingVolume(0), autopilot.ReasonNotPermitted), want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonNotPermitted, 0)}},
		"capped":                      {alarm: cases.StorageAt(95), prepare: func(c *autopilot.Case) { c.Spec.Storage.MaxGB = 100 }, want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonCapReached, 0)}},
		"stalled":                     {alarm: cases.StorageAt(95), prepare: cases.PendingVolume(time.Hour), want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonStalled, 0)}},
		"data unreadable":             {alarm: cases.WithoutEvidence(cases.StorageAt(95)), want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonNoData, 0)}},
		"data too old":                {alarm: cases.MeasuredAgo(cases.StorageAt(95), time.Hour), want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonStaleEvidence, 0)}},
		"busy":                        {alarm: cases.StorageAt(95), prepare: cases.InStatus("BACKING UP"), want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonInstanceBusy, 0)}},
		"recommended":                 {alarm: cases.StorageAt(95), prepare: func(c *autopilot.Case) { c.Mode = v1alpha1.ModeRecommend }, want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonRecommend, 0)}},
		"the rule is silent":          {alarm: silent, prepare: overThreshold(3 * time.Minute), want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonRuleSilent, 3*time.Minute)}},
		"the time stays":              {alarm: cases.StorageAt(95), prepare: func(c *autopilot.Case) { c.Spec.Storage.MaxGB, c.Status.Held = 100, before }, want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonCapReached, 20*time.Minute)}},
		"in progress":                 {alarm: cases.StorageAt(95), prepare: cases.PendingVolume(time.Minute), want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonChangePending, 0)}},
		"in progress after a refusal": {alarm: cases.StorageAt(95), prepare: cases.Both(cases.PendingVolume(time.Minute), func(c *autopilot.Case) { c.Status.Held = before }), want: before},
		"Cloud Eye does not answer":   {alarm: cases.WithoutEvidence(cases.WithoutState(cases.StorageAt(95))), prepare: func(c *autopilot.Case) { c.Status.Held = before }, want: before},
		"no alarm could be read":      {alarm: cases.UsageAt(v1alpha1.MetricCPU, 10), prepare: func(c *autopilot.Case) { c.Status.Held = before }, want: before},
		"a growth sets the time anew": {alarm: cases.WithoutEvidence(cases.StorageAt(95)), prepare: func(c *autopilot.Case) { c.Status.Held, c.Status.Changes = before, []v1alpha1.Change{grown} }, want: []v1alpha1.Held{heldSince("Volume", autopilot.ReasonNoData, 5*time.Minute)}},
		"below the threshold":         {alarm: cases.StorageAt(50), prepare: func(c *autopilot.Case) { c.Status.Held = before }},
		"the alarm has ended":         {alarm: ended, prepare: func(c *autopilot.Case) { c.Status.Held = before }},
	} {
		c := cases.Quiet()
		if tc.prepare != nil {
			tc.prepare(&c)
		}
		c, v := decided(cases.With(c, tc.alarm))
		got := Outcome(c, v, Followed{}, tc.patched).Status.Held
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

func overThreshold(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Status.OverThresholdSince = autopilot.Seconds(c.Now.Add(-age)) }
}

func TestHeldFlavorHasTheReasonOfItsDecision(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(*autopilot.Case)
		want    autopilot.Reason
	}{
		"sold out":         {cases.SoldOut("eu-de-01"), autopilot.ReasonSoldOut},
		"no larger flavor": {func(c *autopilot.Case) { c.Catalogue = c.Catalogue[:1] }, autopilot.ReasonNoLargerFlavor},
		"no catalogue":     {func(c *autopilot.Case) { c.Catalogue = nil }, autopilot.ReasonNoData},
		"the metric is off": {func(c *autopilot.Case) {
			c.Spec.Flavor.CPU.Enabled, c.Spec.Flavor.Memory.Enabled = new(bool), new(bool)
		}, ""},
	} {
		c := cases.Quiet()
		tc.prepare(&c)
		c, v := decided(cases.With(c, cases.UsageAt(v1alpha1.MetricCPU, 95)))
		held := Outcome(c, v, Followed{}, Patched{}).Status.Held
		if got := append(held, v1alpha1.Held{})[0].Reason; got != string(tc.want) {
			t.Errorf("%s: held %+v, want %q; decided %+v", name, held, tc.want, v.Decisions)
		}
	}
}

func TestHoldUnreadTrustsANewSignalOnly(t *testing.T) {
	rule := v1alpha1.Rule{Metric: v1alpha1.MetricStorage, AlarmID: "al", State: v1alpha1.StateOK, StateTime: new(cases.Ago(time.Hour))}
	signal := v1alpha1.Signal{Metric: v1alpha1.MetricStorage, AlarmID: "al", State: v1alpha1.StateAlarm, AlarmTime: cases.Ago(time.Minute)}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Status)
		want   int
	}{
		"a new alarm":       {func(*v1alpha1.Status) {}, 1},
		"a new end":         {func(s *v1alpha1.Status) { s.Intake.Signals[0].State = v1alpha1.StateOK }, 0},
		"an answered alarm": {func(s *v1alpha1.Status) { s.Alarms.Rules[0].StateTime = new(cases.Ago(time.Second)) }, 0},
		"an alarm before growth": {func(s *v1alpha1.Status) {
			s.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, Outcome: v1alpha1.OutcomeCompleted, CompletionTime: cases.Ago(time.Second)}}
		}, 0},
	} {
		s := v1alpha1.Status{Alarms: v1alpha1.Alarms{Rules: []v1alpha1.Rule{rule}}, Intake: v1alpha1.Intake{Signals: []v1alpha1.Signal{signal}}}
		tc.change(&s)
		if HoldUnread(&s, cases.Noon()); len(s.Held) != tc.want {
			t.Errorf("%s: %+v", name, s.Held)
		}
	}
}
