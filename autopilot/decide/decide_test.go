// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// The rows test the limits of the guards, in each way to apply. sentences covers every reason with its exact message.
func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		name   string
		alter  func(*autopilot.Case)
		alarms []autopilot.Alarm
		action autopilot.Action
		reason autopilot.Reason
		to     string
		says   string // part of the sentence
	}{
		{"a full volume grows", nil, []autopilot.Alarm{cases.StorageAt(93.1)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", "Storage 100 → 110 GB: 93.1 % used, alarm at 85 %"},
		{"a busy CPU gets the next flavor", nil, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", "8 vCPUs, 32 GB) → rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB)"},
		{"full memory gets the next flavor", nil, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricMemory, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},

		{"what is wrong for flavors holds back no storage", func(c *autopilot.Case) { c.Spec.Flavor.Window = &v1alpha1.Window{TimeZone: "Nowhere/Here"} }, []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},

		{"a message said alarm, Cloud Eye has no data any more", nil, []autopilot.Alarm{cases.Signalled(autopilot.Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateInsufficientData}, v1alpha1.StateAlarm, 3*time.Minute, "93")}, autopilot.ActionNone, autopilot.ReasonAlarmCleared, "", "insufficient_data"},
		{"a message is not needed: Cloud Eye says alarm", nil, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricMemory, 91)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"Cloud Eye does not answer, a fresh message does", nil, []autopilot.Alarm{cases.Signalled(cases.WithoutState(cases.StorageAt(93)), v1alpha1.StateAlarm, 29*time.Minute, "93")}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},
		{"data of half an hour ago still does", nil, []autopilot.Alarm{cases.MeasuredAgo(cases.StorageAt(93), 30*time.Minute)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},
		{"a datapoint of an hour is as old as its end", period1h, []autopilot.Alarm{cases.MeasuredAgo(cases.UsageAt(v1alpha1.MetricCPU, 95), 89*time.Minute)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"a datapoint of an hour that ended long ago", period1h, []autopilot.Alarm{cases.MeasuredAgo(cases.UsageAt(v1alpha1.MetricCPU, 95), 91*time.Minute)}, autopilot.ActionNone, autopilot.ReasonStaleEvidence, "", ""},
		{"exactly at the threshold", nil, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 90)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"CPU measured after the last change of flavor", func(c *autopilot.Case) { c.Status.Changes = []v1alpha1.Change{cases.CompletedFlavor(2 * time.Minute)} }, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},

		{"a volume change is under way", cases.PendingVolume(time.Minute), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionNone, autopilot.ReasonChangePending, "", ""},
		{"a volume change holds flavors back", cases.PendingVolume(time.Minute), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionNone, autopilot.ReasonChangePending, "", ""},
		{"a volume change is stalled", cases.PendingVolume(15 * time.Minute), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionNone, autopilot.ReasonStalled, "", "and is not done, although the instance is ACTIVE. "},
		{"not stalled while the instance is busy", cases.Both(cases.PendingVolume(15*time.Minute), cases.InStatus("MODIFYING")), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionNone, autopilot.ReasonChangePending, "", ""},
		{"not stalled when the instance became ACTIVE just now", cases.Both(cases.PendingVolume(3*time.Hour), cases.ActiveFor(14*time.Minute)), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionNone, autopilot.ReasonChangePending, "", ""},
		{"a flavor change holds storage back at first", cases.PendingFlavor(9 * time.Minute), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionNone, autopilot.ReasonChangePending, "", ""},
		{"but not for ever", cases.PendingFlavor(10 * time.Minute), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},
		{"a flavor change is stalled", cases.PendingFlavor(15 * time.Minute), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionNone, autopilot.ReasonStalled, "", "and is not done, although the instance is ACTIVE. "},
		{"the cloud grew by itself", func(c *autopilot.Case) { c.Wanted.VolumeGB = 40 }, []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},
		{"an intent that was never patched is decided anew", func(c *autopilot.Case) {
			c.Status.Pending = cases.IntentTo(v1alpha1.KindVolume, "100", "110", time.Minute)
		}, []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},

		{"ACTIVE for long enough", cases.ActiveFor(15 * time.Minute), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"ACTIVE for as long as a short cooldown", cases.Both(cases.ActiveFor(time.Minute), cases.Cooldown(60)), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"ACTIVE for too short a time does not hold storage back", cases.ActiveFor(time.Second), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},
		{"storage full holds flavors back", cases.InStatus(autopilot.StatusStorageFull), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionNone, autopilot.ReasonInstanceBusy, "", autopilot.StatusStorageFull},
		{"storage full grows once", cases.InStatus(autopilot.StatusStorageFull), []autopilot.Alarm{cases.StorageAt(99)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "120", ""},

		{"read-only at 88 % grows until it is writable", cases.ReadOnly, []autopilot.Alarm{cases.StorageAt(88)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", "the database is read-only until it has grown"},
		{"read-only at 88 % grows below the policy's threshold", cases.Both(cases.ReadOnly, sizedInBoth(200)), []autopilot.Alarm{cases.StorageAt(176)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "230", ""},
		{"read-only grows although its rule reports ok", cases.ReadOnly, []autopilot.Alarm{ended(cases.StorageAt(93))}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},
		{"read-only, and large enough to be writable", cases.ReadOnly, []autopilot.Alarm{cases.StorageAt(80)}, autopilot.ActionNone, autopilot.ReasonBelowThreshold, "", "Storage stays at 100 GB"},

		{"at 40 GB the alarm is at 75 %", sizedInBoth(40), []autopilot.Alarm{cases.StorageAt(30)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "50", "alarm at 75 %"},
		{"a lower threshold of the policy counts", func(c *autopilot.Case) { c.Spec.Storage.ThresholdPercent = 60 }, []autopilot.Alarm{cases.StorageAt(61)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", "alarm at 60 %"},
		{"a flavor cap in memory", func(c *autopilot.Case) { c.Spec.Flavor.MaxMemoryGB = new(int32(63)) }, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionNone, autopilot.ReasonCapReached, "", "63 GB"},
		{"above the cap by somebody's hand nothing shrinks", func(c *autopilot.Case) { c.Spec.Storage.MaxGB = 60 }, []autopilot.Alarm{cases.StorageAt(99)}, autopilot.ActionNone, autopilot.ReasonCapReached, "", "spec.storage.maxGB is 60"},
		{"without a cap, four times the first is the most", func(c *autopilot.Case) { c.Status.Baseline.VCPUs = 2 }, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionNone, autopilot.ReasonCapReached, "", ""},
		{"sold out elsewhere", cases.SoldOut("eu-de-03"), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"a MySQL replica may be smaller", cases.WithReplica("MySQL"), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},

		{"cooldown over", cases.Changed(61*time.Minute, "99.0"), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 93)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"a lost change cools down too", cases.Both(cases.Changed(30*time.Minute, "95.0"), lostOne), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionNone, autopilot.ReasonCooldown, "", ""},
		{"a cooldown goes on from the end of a change that took long", cases.Both(cases.Changed(61*time.Minute, "99.0"), tookUntil(10*time.Minute)), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionNone, autopilot.ReasonCooldown, "", "Next check at 2026-11-20T12:50:00Z"},
		{"a change by somebody else is no cooldown", cases.Both(cases.Changed(10*time.Minute, "99.0"), byOther), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"a lost change counts in the budget", cases.Both(cases.Both(cases.Changed(3*time.Hour, "95.0"), lostOne), cases.Changed(20*time.Hour, "95.0")), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricMemory, 95)}, autopilot.ActionNone, autopilot.ReasonBudgetSpent, "", ""},
		{"the budget does not hold storage back", cases.Both(cases.Changed(3*time.Hour, "95.0"), cases.Changed(20*time.Hour, "95.0")), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},
		{"cooldown of zero", cases.Both(cases.Changed(10*time.Minute, "99.0"), cases.Cooldown(0)), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 93)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"cooldown does not hold storage back", cases.Changed(time.Minute, "95.0"), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},
		{"an older change is not in the budget, which is spent", cases.Both(cases.Both(cases.Changed(3*time.Hour, "95.0"), cases.Changed(20*time.Hour, "95.0")), cases.Changed(60*time.Hour, "95.0")), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricMemory, 95)}, autopilot.ActionNone, autopilot.ReasonBudgetSpent, "", "2 times"},
		{"the budget of yesterday", cases.Both(cases.Changed(3*time.Hour, "95.0"), cases.Changed(25*time.Hour, "95.0")), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricMemory, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"one change that did not help", cases.Changed(30*time.Hour, "94.0"), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 93)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"one of two helped", cases.Both(cases.Changed(30*time.Hour, "94.0"), cases.Changed(60*time.Hour, "99.9")), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 93)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"no effect a week ago", cases.Both(cases.Changed(30*time.Hour, "94.0"), cases.Changed(8*24*time.Hour, "97.0")), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 93)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"no effect under another spec", cases.Both(cases.Both(cases.Changed(30*time.Hour, "94.0"), cases.Changed(60*time.Hour, "97.0")), func(c *autopilot.Case) { c.Generation++ }), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 93)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"no effect on CPU says nothing of memory", cases.Both(cases.Changed(30*time.Hour, "94.0"), cases.Changed(60*time.Hour, "97.0")), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricMemory, 93)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"contested by a new spec no more", cases.Both(cases.Changed(2*time.Hour, "95.0"), cases.Both(cases.Restored, func(c *autopilot.Case) { c.Generation++ })), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 99)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.2xlarge.4", ""},
		{"contested no more once the Rds asks for ours again", cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.MadeSmaller(time.Hour)), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"contested no more after a week", cases.Both(cases.Both(cases.Changed(8*24*time.Hour, "99.0"), cases.Restored), cases.MadeSmaller(7*24*time.Hour)), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 99)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.2xlarge.4", ""},
		{"a contest does not hold storage back", cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.Restored), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},
		{"a larger flavor of another writer is no contest", cases.Both(cases.Changed(2*time.Hour, "99.0"), inBoth("rds.mysql.n1.4xlarge.4")), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.8xlarge.4", ""},
		{"smaller a day later is nobody's contest", cases.Both(cases.Changed(25*time.Hour, "95.0"), cases.Restored), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 99)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.2xlarge.4", ""},
		{"the cloud went back by itself", cases.Both(cases.Changed(2*time.Hour, "95.0"), cases.Both(cases.Flavored("rds.mysql.n1.xlarge.4"), cases.RolledBack(time.Hour))), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionNone, autopilot.ReasonRolledBack, "", "The cloud reverted the flavor"},
		{"the cloud went back by itself, and came back", cases.Both(cases.Changed(2*time.Hour, "95.0"), cases.RolledBack(23*time.Hour)), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionNone, autopilot.ReasonRolledBack, "", "Next check at 2026-11-20T13:00:00Z"},
		{"the cloud went back by itself, and came back, a day ago", cases.Both(cases.Changed(25*time.Hour, "99.0"), cases.RolledBack(24*time.Hour)), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"the cloud went back by itself a day ago", cases.Both(cases.Changed(25*time.Hour, "99.0"), cases.Flavored("rds.mysql.n1.xlarge.4")), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionNone, autopilot.ReasonChangePending, "", "That change comes first"},
		{"the brake does not hold storage back", func(c *autopilot.Case) { c.HasPlace = false }, []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},
		{"inside the window", cases.InWindow("Fri", "11:00", "13:00"), []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"the window is not for storage", cases.InWindow("Sat", "01:00", "05:00"), []autopilot.Alarm{cases.StorageAt(93)}, autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce, "110", ""},

		{"recommend only, flavor", func(c *autopilot.Case) { c.Mode = v1alpha1.ModeRecommend }, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, autopilot.ActionChangeFlavor, autopilot.ReasonRecommend, "rds.mysql.n1.4xlarge.4", ""},
	} {
		decide := func(t *testing.T, apply v1alpha1.Apply, noRds bool) {
			c := cases.Quiet()
			c.Spec.Apply = apply
			if tc.alter != nil {
				tc.alter(&c)
			}
			if p := c.Status.Pending; p != nil && apply == v1alpha1.ApplyCloud && c.Wanted.Matches(*p) {
				p.JobTime = &p.DecisionTime // under way, as the Rds of the row says
			}
			if has := c.Instance; noRds && has != nil {
				if now := (autopilot.Wanted{VolumeGB: has.VolumeGB, Flavor: has.Flavor}); (c.Status.Pending == nil) == (c.Wanted != now) {
					t.Skip("about what an Rds asks for, or does not")
				}
				c.Wanted, c.NoRds = autopilot.Wanted{VolumeGB: has.VolumeGB, Flavor: has.Flavor}, true
			}
			v := verdictOf(cases.With(c, tc.alarms...))
			if len(v.Decisions) != 1 {
				t.Fatalf("%d decisions, want 1: %+v", len(v.Decisions), v.Decisions)
			}
			d := v.Decisions[0]
			if d.Action != tc.action || d.Reason != tc.reason || d.To != tc.to {
				t.Errorf("%s %s to %q (%s), want %s %s to %q", d.Action, d.Reason, d.To, d.Message, tc.action, tc.reason, tc.to)
			}
			if !strings.Contains(d.Text(), tc.says) || d.Message == "" {
				t.Errorf("it says %q, want %q in it", d.Text(), tc.says)
			}
			if acts := tc.reason == autopilot.ReasonAlarmInForce; acts != (v.Intent != nil) {
				t.Errorf("intent %+v with reason %s", v.Intent, tc.reason)
			}
		}
		t.Run(tc.name, func(t *testing.T) { decide(t, v1alpha1.ApplyOperator, false) })
		t.Run(tc.name+", in the cloud", func(t *testing.T) { decide(t, v1alpha1.ApplyCloud, false) })
		t.Run(tc.name+", without an Rds", func(t *testing.T) { decide(t, v1alpha1.ApplyCloud, true) })
	}
}

// sizedInBoth returns the alteration that the Rds and the cloud have a volume of that many GB.
func sizedInBoth(gb int) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Instance.VolumeGB, c.Wanted.VolumeGB = gb, gb }
}

// inBoth returns the alteration that the Rds and the cloud have that flavor.
func inBoth(code string) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Instance.Flavor, c.Wanted.Flavor = code, code }
}

// ended returns the alarm as it is after Cloud Eye has reported its end.
func ended(a autopilot.Alarm) autopilot.Alarm {
	a.State = v1alpha1.StateOK
	return a
}

func period1h(c *autopilot.Case) { c.Spec.Flavor.Alarm.PeriodSeconds = 3600 }

func tookUntil(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Status.Changes[0].CompletionTime = cases.Ago(age) }
}

func lostOne(c *autopilot.Case) { c.Status.Changes[0].Outcome = v1alpha1.OutcomeLost }

func byOther(c *autopilot.Case) { c.Status.Changes[0].By = v1alpha1.ByOther }

func TestDecideGrowsStorageBeforeItChangesTheFlavor(t *testing.T) {
	v := verdictOf(cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95), cases.StorageAt(93)))
	if v.Intent == nil || v.Intent.Kind != v1alpha1.KindVolume {
		t.Fatalf("intent %+v, want the volume", v.Intent)
	}
	if len(v.Decisions) != 1 || v.Decisions[0].Metric != v1alpha1.MetricStorage {
		t.Fatalf("decisions %+v, want storage alone: the usage is read in the next check", v.Decisions)
	}
}

func TestDecideMakesOneChangeForCPUAndMemory(t *testing.T) {
	v := verdictOf(cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95), cases.UsageAt(v1alpha1.MetricMemory, 97)))
	if v.Intent == nil || v.Intent.To != "rds.mysql.n1.4xlarge.4" || len(v.Intent.Metrics) != 2 {
		t.Fatalf("intent %+v, want one for both", v.Intent)
	}
	if len(v.Decisions) != 2 || !v.Decisions[0].Acts() || !v.Decisions[1].Acts() {
		t.Errorf("decisions %+v, want one for each alarm", v.Decisions)
	}
}

func TestDecideChangesTheFlavorForOneMetricWhenTheOtherHasNoEffect(t *testing.T) {
	c := cases.Quiet()
	cases.Both(cases.Changed(30*time.Hour, "94.0"), cases.Changed(60*time.Hour, "97.0"))(&c)
	v := verdictOf(cases.With(c, cases.UsageAt(v1alpha1.MetricCPU, 95), cases.UsageAt(v1alpha1.MetricMemory, 97)))
	if v.Intent == nil || len(v.Intent.Metrics) != 1 || v.Intent.Metrics[0] != v1alpha1.MetricMemory {
		t.Fatalf("intent %+v, want one for memory", v.Intent)
	}
	if len(v.Decisions) != 2 || !v.Decisions[0].Acts() || v.Decisions[1].Reason != autopilot.ReasonNoEffect || v.Decisions[1].Metric != v1alpha1.MetricCPU {
		t.Errorf("decisions %+v", v.Decisions)
	}
	cases.InStatus("MODIFYING")(&c)
	for _, d := range verdictOf(cases.With(c, cases.UsageAt(v1alpha1.MetricCPU, 95), cases.UsageAt(v1alpha1.MetricMemory, 97))).Decisions {
		if d.Reason != autopilot.ReasonInstanceBusy {
			t.Errorf("%s: %s, want what comes first for both", d.Metric, d.Reason)
		}
	}
}

func TestDecideReturnsNothingWithoutAnAlarm(t *testing.T) {
	for name, a := range map[string]autopilot.Alarm{
		"state ok, no message":          {Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK},
		"state ok, message ok":          cases.Signalled(autopilot.Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}, v1alpha1.StateOK, time.Minute, "50"),
		"insufficient data, no message": {Metric: v1alpha1.MetricStorage, State: v1alpha1.StateInsufficientData},
	} {
		if v := verdictOf(cases.Quiet(a)); len(v.Decisions) != 0 || v.Intent != nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestEndedAlarmIsRecordedOnce(t *testing.T) {
	c := cases.Quiet(cleared(cases.StorageAt(50)))
	for _, want := range []int{1, 0} {
		v := verdictOf(c)
		if len(v.Decisions) != want {
			t.Errorf("%+v, want %d decisions", v.Decisions, want)
		}
		record.Decisions(&c.Status, v.Decisions, c.Now)
	}
}

func TestDecideChecksAgainWhenOKMayBeOlderThanTheSignal(t *testing.T) {
	v := verdictOf(cases.Quiet(cases.Signalled(autopilot.Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}, v1alpha1.StateAlarm, time.Minute, "93")))
	if len(v.Decisions) != 0 || v.RequeueAfter != 30*time.Second {
		t.Fatalf("decisions %+v, again in %s; want none and 30s", v.Decisions, v.RequeueAfter)
	}
}

func TestDecideKeepsTheTimeOfAnUnpatchedIntent(t *testing.T) {
	c := cases.Quiet()
	c.Status.Pending = cases.IntentTo(v1alpha1.KindVolume, "100", "110", time.Minute)
	v := verdictOf(cases.With(c, cases.StorageAt(96)))
	if v.Intent == nil || !v.Intent.DecisionTime.Time.Equal(cases.Noon().Add(-time.Minute)) {
		t.Fatalf("intent %+v, want the decision time of the first", v.Intent)
	}
}

func TestEvidenceFromSignalIsUsedWhenCloudEyeDoesNotAnswer(t *testing.T) {
	c := cases.Quiet()
	c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, From: "90", To: "100", Outcome: v1alpha1.OutcomeCompleted, CompletionTime: cases.Ago(time.Minute)}}
	a := cases.Signalled(autopilot.Alarm{Metric: v1alpha1.MetricStorage}, v1alpha1.StateAlarm, 5*time.Minute, "94")
	a.Evidence = a.EvidenceFromSignal(c)
	if a.Evidence.UsedGB != 84.6 {
		t.Fatalf("%g GB used, want 94 %% of the 90 GB the volume had then", a.Evidence.UsedGB)
	}
	if v := verdictOf(cases.With(c, a)); v.Intent != nil {
		t.Errorf("the evidence of before a growth asked for another: %+v", v.Intent)
	}
	c.Status.Changes[0].CompletionTime = cases.Ago(6 * time.Minute)
	if used := a.EvidenceFromSignal(c).UsedGB; used != 84.6 {
		t.Errorf("%g GB used, want the smaller size where our clock may be behind the cloud's", used)
	}
	c.Status.Changes[0].CompletionTime = cases.Ago(8 * time.Minute)
	if used := a.EvidenceFromSignal(c).UsedGB; used != 94 {
		t.Errorf("%g GB used, want 94 %% of the 100 GB the volume has had for long", used)
	}
	at := cases.Ago(5 * time.Minute)
	c.Status.Changes[0].EvidenceTime = &at
	if used := a.EvidenceFromSignal(c).UsedGB; used != 84.6 {
		t.Errorf("%g GB used: this very value asked for the growth, so it was measured before", used)
	}
}

func TestLastChangedComparesTimes(t *testing.T) {
	c := cases.Quiet() // whose clock was set back between two changes
	c.Status.Changes = []v1alpha1.Change{cases.CompletedFlavor(10 * time.Minute), cases.CompletedFlavor(30 * time.Second)}
	if v := verdictOf(cases.With(c, cases.UsageAt(v1alpha1.MetricCPU, 95))); len(v.Decisions) > 0 || v.RequeueAfter != autopilot.DataRequeue {
		t.Errorf("%+v", v)
	}
}

func TestDecideGrowsAgainWhenAGrowthWasNotEnough(t *testing.T) {
	c := cases.Quiet()
	c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "90", To: "100", Outcome: v1alpha1.OutcomeCompleted, CompletionTime: cases.Ago(10 * time.Minute)}}
	a := cases.StorageAt(93)
	a.State, a.GrowthTime = v1alpha1.StateOK, autopilot.RecentGrowth(c.Status.Changes, c.Now) // the rule was rewritten, and starts anew
	if v := verdictOf(cases.With(c, a)); v.Intent == nil || v.Intent.To != "120" {
		t.Errorf("measured after the growth: %+v", v)
	}
	a.Evidence.Time = cases.Noon().Add(-11 * time.Minute)
	if v := verdictOf(cases.With(c, a)); v.Intent != nil || v.RequeueAfter != autopilot.DataRequeue {
		t.Errorf("measured before the growth: %+v", v)
	}
	c.Status.Changes[0].CompletionTime = cases.Ago(2 * time.Hour)
	if g := autopilot.RecentGrowth(c.Status.Changes, c.Now); !g.IsZero() {
		t.Errorf("two hours later it still counts: %s", g)
	}
}

// An engine that the cloud's resize list does not serve still gets a larger flavor, and the record has the cloud's text.
func TestFlavorWithoutAResizeListStaysInItsFamily(t *testing.T) {
	for name, tc := range map[string]struct {
		alter  func(*autopilot.Case)
		reason autopilot.Reason
		to     string
	}{
		"one of the family": {func(*autopilot.Case) {}, autopilot.ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4"},
		"none of the family": {func(c *autopilot.Case) {
			for i, f := range c.Catalogue[3:] {
				c.Catalogue[3+i].Code = strings.Replace(f.Code, ".n1.", ".c2.", 1)
			}
		}, autopilot.ReasonNoLargerFlavor, ""},
	} {
		c := cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95))
		c.NotOffered = "DBS.200040 not for this engine"
		tc.alter(&c)
		v := verdictOf(c)
		if d := v.Decisions[0]; d.Reason != tc.reason || d.To != tc.to || !strings.Contains(d.Message, "the cloud has no resize list for the instance: DBS.200040 not for this engine") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
