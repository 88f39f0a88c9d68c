// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The rows test the limits of the guards, in each way to apply. sentences covers every reason with its exact message.
func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		name   string
		alter  func(*Case)
		alarms []Alarm
		action Action
		reason Reason
		to     string
		says   string // part of the sentence
	}{
		{"a full volume grows", nil, []Alarm{storageAt(93.1)}, ActionGrowVolume, ReasonAlarmInForce, "110", "Storage 100 → 110 GB: 93.1 % used, alarm at 90 %"},
		{"a busy CPU gets the next flavor", nil, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", "8 vCPUs, 32 GB) → rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB)"},
		{"full memory gets the next flavor", nil, []Alarm{usageAt(v1alpha1.MetricMemory, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},

		{"what is wrong for flavors holds back no storage", func(c *Case) { c.Spec.Flavor.Window = &v1alpha1.Window{TimeZone: "Nowhere/Here"} }, []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},

		{"a message said alarm, Cloud Eye has no data any more", nil, []Alarm{signalled(Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateInsufficientData}, v1alpha1.StateAlarm, 3*time.Minute, "93")}, ActionNone, ReasonAlarmCleared, "", "insufficient_data"},
		{"a message is not needed: Cloud Eye says alarm", nil, []Alarm{usageAt(v1alpha1.MetricMemory, 91)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"Cloud Eye does not answer, a fresh message does", nil, []Alarm{signalled(storageAt(93).without("state"), v1alpha1.StateAlarm, 29*time.Minute, "93")}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"data of half an hour ago still does", nil, []Alarm{storageAt(93).measured(30 * time.Minute)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"a datapoint of an hour is as old as its end", period1h, []Alarm{usageAt(v1alpha1.MetricCPU, 95).measured(89 * time.Minute)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"a datapoint of an hour that ended long ago", period1h, []Alarm{usageAt(v1alpha1.MetricCPU, 95).measured(91 * time.Minute)}, ActionNone, ReasonStaleEvidence, "", ""},
		{"exactly at the threshold", nil, []Alarm{usageAt(v1alpha1.MetricCPU, 90)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"CPU measured after the last change of flavor", func(c *Case) { c.Status.Changes = []v1alpha1.Change{completedFlavor(2 * time.Minute)} }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},

		{"a volume change is under way", pendingVolume(time.Minute), []Alarm{storageAt(93)}, ActionNone, ReasonChangePending, "", ""},
		{"a volume change holds flavors back", pendingVolume(time.Minute), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonChangePending, "", ""},
		{"a volume change is stalled", pendingVolume(15 * time.Minute), []Alarm{storageAt(93)}, ActionNone, ReasonStalled, "", "and is not done, although the instance is ACTIVE. "},
		{"not stalled while the instance is busy", both(pendingVolume(15*time.Minute), busy("MODIFYING")), []Alarm{storageAt(93)}, ActionNone, ReasonChangePending, "", ""},
		{"not stalled when the instance became ACTIVE just now", both(pendingVolume(3*time.Hour), activeFor(14*time.Minute)), []Alarm{storageAt(93)}, ActionNone, ReasonChangePending, "", ""},
		{"a flavor change holds storage back at first", pendingFlavor(9 * time.Minute), []Alarm{storageAt(93)}, ActionNone, ReasonChangePending, "", ""},
		{"but not for ever", pendingFlavor(10 * time.Minute), []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"a flavor change is stalled", pendingFlavor(15 * time.Minute), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonStalled, "", "and is not done, although the instance is ACTIVE. "},
		{"the cloud grew by itself", func(c *Case) { c.Wanted.VolumeGB = 40 }, []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"an intent that was never patched is decided anew", func(c *Case) { c.Status.Pending = intentTo(v1alpha1.KindVolume, "100", "110", time.Minute) }, []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},

		{"ACTIVE for long enough", activeFor(15 * time.Minute), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"ACTIVE for as long as a short cooldown", both(activeFor(time.Minute), cooldown(60)), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"ACTIVE for too short a time does not hold storage back", activeFor(time.Second), []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"storage full holds flavors back", busy(StatusStorageFull), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonInstanceBusy, "", StatusStorageFull},
		{"storage full grows once", busy(StatusStorageFull), []Alarm{storageAt(99)}, ActionGrowVolume, ReasonAlarmInForce, "120", ""},

		{"at 40 GB the alarm is at 75 %", volume(40), []Alarm{storageAt(30)}, ActionGrowVolume, ReasonAlarmInForce, "50", "alarm at 75 %"},
		{"a lower threshold of the policy counts", func(c *Case) { c.Spec.Storage.ThresholdPercent = 60 }, []Alarm{storageAt(61)}, ActionGrowVolume, ReasonAlarmInForce, "110", "alarm at 60 %"},
		{"a flavor cap in memory", func(c *Case) { c.Spec.Flavor.MaxMemoryGB = new(int32(63)) }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonCapReached, "", "63 GB"},
		{"above the cap by somebody's hand nothing shrinks", func(c *Case) { c.Spec.Storage.MaxGB = 60 }, []Alarm{storageAt(99)}, ActionNone, ReasonCapReached, "", "spec.storage.maxGB is 60"},
		{"without a cap, four times the first is the most", func(c *Case) { c.Status.Baseline.VCPUs = 2 }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonCapReached, "", ""},
		{"sold out elsewhere", soldOut("eu-de-03"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"a MySQL replica may be smaller", replica("MySQL"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},

		{"cooldown over", changed(61*time.Minute, "99.0"), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"a lost change cools down too", both(changed(30*time.Minute, "95.0"), lostOne), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonCooldown, "", ""},
		{"a cooldown goes on from the end of a change that took long", both(changed(61*time.Minute, "99.0"), tookUntil(10*time.Minute)), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonCooldown, "", "Next check at 2026-11-20T12:50:00Z"},
		{"a change by somebody else is no cooldown", both(changed(10*time.Minute, "99.0"), byOther), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"a lost change counts in the budget", both(both(changed(3*time.Hour, "95.0"), lostOne), changed(20*time.Hour, "95.0")), []Alarm{usageAt(v1alpha1.MetricMemory, 95)}, ActionNone, ReasonBudgetSpent, "", ""},
		{"the budget does not hold storage back", both(changed(3*time.Hour, "95.0"), changed(20*time.Hour, "95.0")), []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"cooldown of zero", both(changed(10*time.Minute, "99.0"), cooldown(0)), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"cooldown does not hold storage back", changed(time.Minute, "95.0"), []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"an older change is not in the budget, which is spent", both(both(changed(3*time.Hour, "95.0"), changed(20*time.Hour, "95.0")), changed(60*time.Hour, "95.0")), []Alarm{usageAt(v1alpha1.MetricMemory, 95)}, ActionNone, ReasonBudgetSpent, "", "2 times"},
		{"the budget of yesterday", both(changed(3*time.Hour, "95.0"), changed(25*time.Hour, "95.0")), []Alarm{usageAt(v1alpha1.MetricMemory, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"one change that did not help", changed(30*time.Hour, "94.0"), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"one of two helped", both(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "99.9")), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"no effect a week ago", both(changed(30*time.Hour, "94.0"), changed(8*24*time.Hour, "97.0")), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"no effect under another spec", both(both(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "97.0")), func(c *Case) { c.Generation++ }), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"no effect on CPU says nothing of memory", both(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "97.0")), []Alarm{usageAt(v1alpha1.MetricMemory, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"contested by a new spec no more", both(changed(2*time.Hour, "95.0"), both(undone, func(c *Case) { c.Generation++ })), []Alarm{usageAt(v1alpha1.MetricCPU, 99)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.2xlarge.4", ""},
		{"contested no more once the Rds asks for ours again", both(changed(2*time.Hour, "99.0"), contestedFor(time.Hour)), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"contested no more after a week", both(both(changed(8*24*time.Hour, "99.0"), undone), contestedFor(7*24*time.Hour)), []Alarm{usageAt(v1alpha1.MetricCPU, 99)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.2xlarge.4", ""},
		{"a contest does not hold storage back", both(changed(2*time.Hour, "99.0"), undone), []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"smaller a day later is nobody's contest", both(changed(25*time.Hour, "95.0"), undone), []Alarm{usageAt(v1alpha1.MetricCPU, 99)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.2xlarge.4", ""},
		{"the cloud went back by itself", both(changed(2*time.Hour, "95.0"), both(flavored("rds.mysql.n1.xlarge.4"), rolledBackFor(time.Hour))), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonRolledBack, "", "The cloud reverted the flavor"},
		{"the cloud went back by itself, and came back", both(changed(2*time.Hour, "95.0"), rolledBackFor(23*time.Hour)), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonRolledBack, "", "Next check at 2026-11-20T13:00:00Z"},
		{"the cloud went back by itself, and came back, a day ago", both(changed(25*time.Hour, "99.0"), rolledBackFor(24*time.Hour)), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"the cloud went back by itself a day ago", both(changed(25*time.Hour, "99.0"), flavored("rds.mysql.n1.xlarge.4")), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonChangePending, "", "That change comes first"},
		{"the brake does not hold storage back", func(c *Case) { c.FleetBusy = true }, []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"inside the window", inWindow("Fri", "11:00", "13:00"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"the window is not for storage", inWindow("Sat", "01:00", "05:00"), []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},

		{"recommend only, flavor", func(c *Case) { c.Mode = v1alpha1.ModeRecommend }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonRecommend, "rds.mysql.n1.4xlarge.4", ""},
	} {
		decide := func(t *testing.T, apply v1alpha1.Apply, noRds bool) {
			c := quiet()
			c.Spec.Apply = apply
			if tc.alter != nil {
				tc.alter(&c)
			}
			if p := c.Status.Pending; p != nil && apply == v1alpha1.ApplyCloud && c.Wanted.Matches(*p) {
				p.JobTime = &p.DecisionTime // under way, as the Rds of the row says
			}
			if has := c.Instance; noRds && has != nil {
				if now := (Wanted{VolumeGB: has.VolumeGB, Flavor: has.Flavor}); (c.Status.Pending == nil) == (c.Wanted != now) {
					t.Skip("about what an Rds asks for, or does not")
				}
				c.Wanted, c.NoRds = Wanted{VolumeGB: has.VolumeGB, Flavor: has.Flavor}, true
			}
			v := Decide(c.with(tc.alarms...))
			if len(v.Decisions) != 1 {
				t.Fatalf("%d decisions, want 1: %+v", len(v.Decisions), v.Decisions)
			}
			d := v.Decisions[0]
			if d.Action != tc.action || d.Reason != tc.reason || d.To != tc.to {
				t.Errorf("%s %s to %q (%s), want %s %s to %q", d.Action, d.Reason, d.To, d.Message, tc.action, tc.reason, tc.to)
			}
			if !strings.Contains(d.Message, tc.says) || d.Message == "" {
				t.Errorf("it says %q, want %q in it", d.Message, tc.says)
			}
			if acts := tc.reason == ReasonAlarmInForce; acts != (v.Intent != nil) {
				t.Errorf("intent %+v with reason %s", v.Intent, tc.reason)
			}
		}
		t.Run(tc.name, func(t *testing.T) { decide(t, v1alpha1.ApplyOperator, false) })
		t.Run(tc.name+", in the cloud", func(t *testing.T) { decide(t, v1alpha1.ApplyCloud, false) })
		t.Run(tc.name+", without an Rds", func(t *testing.T) { decide(t, v1alpha1.ApplyCloud, true) })
	}
}

// volume is a database of that size.
func volume(gb int) func(*Case) {
	return func(c *Case) { c.Instance.VolumeGB, c.Wanted.VolumeGB = gb, gb }
}

func period1h(c *Case) { c.Spec.Flavor.Alarm.PeriodSeconds = 3600 }

func tookUntil(age time.Duration) func(*Case) {
	return func(c *Case) { c.Status.Changes[0].CompletionTime = ago(age) }
}

func byOther(c *Case) { c.Status.Changes[0].By = v1alpha1.ByOther }

func TestDecideGrowsStorageBeforeItChangesTheFlavor(t *testing.T) {
	v := Decide(quiet().with(usageAt(v1alpha1.MetricCPU, 95), storageAt(93)))
	if v.Intent == nil || v.Intent.Kind != v1alpha1.KindVolume {
		t.Fatalf("intent %+v, want the volume", v.Intent)
	}
	if len(v.Decisions) != 2 {
		t.Fatalf("%d decisions, want one for each alarm", len(v.Decisions))
	}
}

func TestDecideMakesOneChangeForCPUAndMemory(t *testing.T) {
	v := Decide(quiet().with(usageAt(v1alpha1.MetricCPU, 95), usageAt(v1alpha1.MetricMemory, 97)))
	if v.Intent == nil || v.Intent.To != "rds.mysql.n1.4xlarge.4" || len(v.Intent.Metrics) != 2 {
		t.Fatalf("intent %+v, want one for both", v.Intent)
	}
	if len(v.Decisions) != 2 || !v.Decisions[0].Acts() || !v.Decisions[1].Acts() {
		t.Errorf("decisions %+v, want one for each alarm", v.Decisions)
	}
}

func TestDecideChangesTheFlavorForOneMetricWhenTheOtherHasNoEffect(t *testing.T) {
	c := quiet()
	both(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "97.0"))(&c)
	v := Decide(c.with(usageAt(v1alpha1.MetricCPU, 95), usageAt(v1alpha1.MetricMemory, 97)))
	if v.Intent == nil || len(v.Intent.Metrics) != 1 || v.Intent.Metrics[0] != v1alpha1.MetricMemory {
		t.Fatalf("intent %+v, want one for memory", v.Intent)
	}
	if len(v.Decisions) != 2 || !v.Decisions[0].Acts() || v.Decisions[1].Reason != ReasonNoEffect || v.Decisions[1].Metric != v1alpha1.MetricCPU {
		t.Errorf("decisions %+v", v.Decisions)
	}
	busy("MODIFYING")(&c)
	for _, d := range Decide(c.with(usageAt(v1alpha1.MetricCPU, 95), usageAt(v1alpha1.MetricMemory, 97))).Decisions {
		if d.Reason != ReasonInstanceBusy {
			t.Errorf("%s: %s, want what comes first for both", d.Metric, d.Reason)
		}
	}
}

func TestDecideReturnsNothingWithoutAnAlarm(t *testing.T) {
	for name, a := range map[string]Alarm{
		"state ok, no message":          {Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK},
		"state ok, message ok":          signalled(Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}, v1alpha1.StateOK, time.Minute, "50"),
		"insufficient data, no message": {Metric: v1alpha1.MetricStorage, State: v1alpha1.StateInsufficientData},
	} {
		if v := Decide(quiet().with(a)); len(v.Decisions) != 0 || v.Intent != nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestDecideChecksAgainWhenOKMayBeOlderThanTheSignal(t *testing.T) {
	v := Decide(quiet().with(signalled(Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}, v1alpha1.StateAlarm, time.Minute, "93")))
	if len(v.Decisions) != 0 || v.RequeueAfter != 30*time.Second {
		t.Fatalf("decisions %+v, again in %s; want none and 30s", v.Decisions, v.RequeueAfter)
	}
}

func TestDecideKeepsTheTimeOfAnUnpatchedIntent(t *testing.T) {
	c := quiet()
	c.Status.Pending = intentTo(v1alpha1.KindVolume, "100", "110", time.Minute)
	v := Decide(c.with(storageAt(96)))
	if v.Intent == nil || !v.Intent.DecisionTime.Time.Equal(noon().Add(-time.Minute)) {
		t.Fatalf("intent %+v, want the decision time of the first", v.Intent)
	}
}

func TestEvidenceFromSignalIsUsedWhenCloudEyeDoesNotAnswer(t *testing.T) {
	c := quiet()
	c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, From: "90", To: "100", Outcome: v1alpha1.OutcomeCompleted, CompletionTime: ago(time.Minute)}}
	a := signalled(Alarm{Metric: v1alpha1.MetricStorage}, v1alpha1.StateAlarm, 5*time.Minute, "95")
	a.Evidence = a.EvidenceFromSignal(c)
	if a.Evidence.UsedGB != 85.5 {
		t.Fatalf("%g GB used, want 95 %% of the 90 GB the volume had then", a.Evidence.UsedGB)
	}
	if v := Decide(c.with(a)); v.Intent != nil {
		t.Errorf("the evidence of before a growth asked for another: %+v", v.Intent)
	}
	c.Status.Changes[0].CompletionTime = ago(6 * time.Minute)
	if used := a.EvidenceFromSignal(c).UsedGB; used != 85.5 {
		t.Errorf("%g GB used, want the smaller size where our clock may be behind the cloud's", used)
	}
	c.Status.Changes[0].CompletionTime = ago(8 * time.Minute)
	if used := a.EvidenceFromSignal(c).UsedGB; used != 95 {
		t.Errorf("%g GB used, want 95 %% of the 100 GB the volume has had for long", used)
	}
	at := ago(5 * time.Minute)
	c.Status.Changes[0].EvidenceTime = &at
	if used := a.EvidenceFromSignal(c).UsedGB; used != 85.5 {
		t.Errorf("%g GB used: this very value asked for the growth, so it was measured before", used)
	}
}

func TestLastChangedComparesTimes(t *testing.T) {
	c := quiet() // whose clock was set back between two changes
	c.Status.Changes = []v1alpha1.Change{completedFlavor(10 * time.Minute), completedFlavor(30 * time.Second)}
	if v := Decide(c.with(usageAt(v1alpha1.MetricCPU, 95))); len(v.Decisions) > 0 || v.RequeueAfter != dataRequeue {
		t.Errorf("%+v", v)
	}
}

func TestDecideGrowsAgainWhenAGrowthWasNotEnough(t *testing.T) {
	c := quiet()
	c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "90", To: "100", Outcome: v1alpha1.OutcomeCompleted, CompletionTime: ago(10 * time.Minute)}}
	a := storageAt(93)
	a.State, a.GrowthTime = v1alpha1.StateOK, RecentGrowth(c.Status.Changes, c.Now) // the rule was rewritten, and starts anew
	if v := Decide(c.with(a)); v.Intent == nil || v.Intent.To != "110" {
		t.Errorf("measured after the growth: %+v", v)
	}
	a.Evidence.Time = noon().Add(-11 * time.Minute)
	if v := Decide(c.with(a)); v.Intent != nil || v.RequeueAfter != dataRequeue {
		t.Errorf("measured before the growth: %+v", v)
	}
	c.Status.Changes[0].CompletionTime = ago(2 * time.Hour)
	if g := RecentGrowth(c.Status.Changes, c.Now); !g.IsZero() {
		t.Errorf("two hours later it still counts: %s", g)
	}
}
