// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// row is a case of one database and the decision on it.
type row struct {
	name   string // the condition
	alter  func(*autopilot.Case)
	alarms []autopilot.Alarm
	want   outcome
}

// outcome is what a walk decides.
type outcome struct {
	reason  autopilot.Reason // empty if there is no decision
	to      string           // the size or flavor to request
	again   time.Duration    // until the next check; 0 if an event starts it
	ends    bool             // the guard ends by time alone, exactly at the next check
	message string           // the whole message; empty if another row tests it
}

// makes returns the outcome that the change is requested.
func makes(to string, message ...string) outcome {
	return outcome{reason: autopilot.ReasonAlarmInForce, to: to, message: strings.Join(message, "")}
}

// stops returns the outcome that a guard prevents the change.
func stops(reason autopilot.Reason, again time.Duration, message ...string) outcome {
	return outcome{reason: reason, again: again, message: strings.Join(message, "")}
}

// holds returns the outcome that a guard prevents the change for exactly that time.
func holds(reason autopilot.Reason, remaining time.Duration, message ...string) outcome {
	return outcome{reason: reason, again: remaining, ends: true, message: strings.Join(message, "")}
}

// undecided returns the outcome that the alarm needs no decision.
func undecided(again time.Duration) outcome { return outcome{again: again} }

const (
	present = "rds.mysql.n1.2xlarge.4"
	larger  = "rds.mysql.n1.4xlarge.4"
	recheck = 30 * time.Second
	day     = 24 * time.Hour
)

func storage(usedGB float64) []autopilot.Alarm { return []autopilot.Alarm{cases.StorageAt(usedGB)} }
func cpu(percent float64) []autopilot.Alarm    { return usageOf(v1alpha1.MetricCPU, percent) }
func memory(percent float64) []autopilot.Alarm { return usageOf(v1alpha1.MetricMemory, percent) }
func one(a autopilot.Alarm) []autopilot.Alarm  { return []autopilot.Alarm{a} }
func signalled(a autopilot.Alarm, age time.Duration) []autopilot.Alarm {
	return one(cases.Signalled(a, v1alpha1.StateAlarm, age, "93"))
}

func usageOf(m v1alpha1.Metric, percent float64) []autopilot.Alarm {
	return one(cases.UsageAt(m, percent))
}

// inState returns the alarm as it is while Cloud Eye reports that state.
func inState(a autopilot.Alarm, state v1alpha1.State) autopilot.Alarm {
	a.State = state
	return a
}

// ended returns the alarm as it is after Cloud Eye has reported its end.
func ended(a autopilot.Alarm) autopilot.Alarm { return inState(a, v1alpha1.StateOK) }

// rows returns a case for each rule of the table and each side of its boundary, in the order of the guards. The decision
// does not depend on spec.apply.
func rows() []row {
	ok := autopilot.Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}
	const flavorText = "Flavor " + present + " (8 vCPUs, 32 GB) → " + larger + " (16 vCPUs, 64 GB): "
	const deferredText = " was in alarm at 2026-11-18T13:00:00Z, and the window is open"
	return []row{
		// The alarm is in force, or the used space proves the need without it, or the database is read-only.
		{"storage in alarm", nil, storage(93.1), makes("110", "Storage 100 → 110 GB: 93.1 % used, alarm at 85 %")},
		{"CPU in alarm", nil, cpu(95), makes(larger, flavorText+"95.0 % CPU used, alarm at 90 %")},
		{"memory in alarm", nil, memory(95.25), makes(larger, flavorText+"95.2 % memory used, alarm at 90 %")},
		{"no signal and state ok", nil, one(ok), undecided(0)},
		{"signal ok and state ok", nil, one(cases.Signalled(ok, v1alpha1.StateOK, time.Minute, "50")), undecided(0)},
		{"alarm signal and state ok within 2 minutes", nil, signalled(ok, time.Minute), undecided(30 * time.Second)},
		{"alarm signal and state ok after 3 minutes", nil, signalled(ok, 3*time.Minute),
			stops(autopilot.ReasonAlarmCleared, 0,
				"The storage alarm of 2026-11-20T11:57:00Z (93 %) had ended before the check: Cloud Eye reports ok")},
		{"Cloud Eye does not answer, alarm signal of 29 minutes ago", nil,
			signalled(cases.WithoutState(cases.StorageAt(93)), 29*time.Minute), makes("110")},
		{"Cloud Eye does not answer, alarm signal of 31 minutes ago", nil,
			signalled(cases.WithoutState(cases.StorageAt(93)), 31*time.Minute), stops(autopilot.ReasonNoData, time.Minute,
				"Cloud Eye does not report whether the storage alarm of 2026-11-20T11:29:00Z is still in force")},
		{"rule is ok 10 minutes after a growth that was not enough", grown(10 * time.Minute),
			one(ended(cases.StorageAt(93))), makes("120")},
		{"rule is ok after a growth, measured before it", grown(10 * time.Minute),
			one(ended(cases.MeasuredAgo(cases.StorageAt(93), 11*time.Minute))), undecided(time.Minute)},
		{"rule is ok an hour after a growth", grown(time.Hour), one(ended(cases.StorageAt(93))),
			undecided(0)},
		{"rule is silent, used space over the threshold for 15 minutes", overdue(15 * time.Minute),
			one(ended(cases.StorageAt(93))), makes("110")},
		{"rule is silent, used space over the threshold for 15 minutes less a second", overdue(15*time.Minute - time.Second),
			one(ended(cases.StorageAt(93))), undecided(time.Minute)},
		{"rule of 25 minutes is silent for 30 minutes", all(overdue(30*time.Minute), slowRule),
			one(ended(cases.StorageAt(93))), undecided(5 * time.Minute)},
		{"rule is silent, used space is below the threshold", overdue(time.Hour),
			one(ended(cases.StorageAt(84))), undecided(time.Minute)},
		{"read-only with 88 % used", cases.ReadOnly, storage(88),
			makes("110", "Storage 100 → 110 GB: 88.0 % used, alarm at 85 %; the database is read-only until it has grown")},
		{"STORAGE FULL since the last measurement of 92 %", all(sized(200), cases.InStatus(autopilot.StatusStorageFull)),
			storage(184), makes("230")},
		{"STORAGE FULL since a measurement below the threshold", cases.InStatus(autopilot.StatusStorageFull), storage(70),
			makes("120")},
		{"read-only and large enough to be writable", cases.ReadOnly, storage(80),
			stops(autopilot.ReasonBelowThreshold, time.Minute)},
		{"used space at the read-only limit in a sweep, and no alarm", sweep, one(ended(cases.StorageAt(95))), makes("120")},
		{"STORAGE FULL, but enough space is free", all(sweep, cases.ReadOnly, cases.InStatus(autopilot.StatusStorageFull)),
			one(ended(cases.StorageAt(74))), stops(autopilot.ReasonBelowThreshold, time.Minute)},
		{"read-only, but not measured since another writer's growth", all(sweep, cases.ReadOnly, grown(0), byOther),
			one(ended(cases.StorageAt(95))), undecided(0)},

		// Autopilot is on for the database and the metric, and the policy is valid.
		{"mode Off", off(autopilot.ReasonNotEnabled, "The mode is Off"), storage(93),
			stops(autopilot.ReasonNotEnabled, 0, "The mode is Off")},
		{"metric disabled", metricOff, cpu(95),
			stops(autopilot.ReasonNotEnabled, 0, "The CPU alarm is switched off: spec.flavor.cpu.enabled is false")},
		{"flavor policy invalid", func(c *autopilot.Case) {
			c.Spec.Flavor.Window = &v1alpha1.Window{Start: "00:00", End: "00:00", TimeZone: "Mars"}
		},
			cpu(95), stops(autopilot.ReasonPolicyInvalid, 0, `The policy is invalid, so the autopilot ignores the CPU alarm: spec.flavor.window.timeZone: unknown time zone Mars`)},
		{"unknown metric in alarm", nil, one(ofUnknownMetric(cases.StorageAt(99))), stops(autopilot.ReasonPolicyInvalid, 0)},

		// The instance is known, allowed, in the cloud, and claimed by this object.
		{"instance not allowed", off(autopilot.ReasonNotAllowed, "--allowed-instances does not allow it"), storage(93),
			stops(autopilot.ReasonNotAllowed, 0, "--allowed-instances does not allow it")},
		{"instance claimed by another object", claimed, storage(93), stops(autopilot.ReasonInstanceClaimed, recheck,
			"shop/orders manages this instance: its alarm rule autopilot_shop_orders_* watches it. ",
			"Turn one of the two off, or delete the rules if that cluster is gone")},
		{"no rule of its own yet", unclaimed, storage(93), undecided(recheck)},
		{"no rule of its own, because Cloud Eye creates none",
			all(unclaimed, func(c *autopilot.Case) { c.Status.Alarms.Refused = "1000 of 1000 alarm rules used" }), storage(93),
			makes("110")},

		// A recent measurement is at or over the threshold.
		{"states of the rules cannot be read, alarm signal of 31 minutes ago", failing(alarmState),
			signalled(cases.StorageAt(93), 31*time.Minute), stops(autopilot.ReasonNoData, time.Minute)},
		{"used space cannot be read", failing(usedSpace), storage(93), stops(autopilot.ReasonNoData, time.Minute)},
		{"no measurement", nil, one(unmeasured(cases.StorageAt(93))), stops(autopilot.ReasonNoData, time.Minute,
			"The storage alarm is in force, but there is no measurement to decide on: used space: no value; newest message: no value")},
		{"storage measured 30 minutes ago", nil, one(cases.MeasuredAgo(cases.StorageAt(93), 30*time.Minute)), makes("110")},
		{"storage measured 31 minutes ago", nil, one(cases.MeasuredAgo(cases.StorageAt(93), 31*time.Minute)),
			stops(autopilot.ReasonStaleEvidence, time.Minute,
				"The newest storage value is from 2026-11-20T11:29:00Z, which is too old to decide on")},
		{"CPU over an hour, begun 90 minutes ago", period1h,
			one(cases.MeasuredAgo(cases.UsageAt(v1alpha1.MetricCPU, 95), 90*time.Minute)), makes(larger)},
		{"CPU over an hour, begun 91 minutes ago", period1h,
			one(cases.MeasuredAgo(cases.UsageAt(v1alpha1.MetricCPU, 95), 91*time.Minute)),
			stops(autopilot.ReasonStaleEvidence, time.Minute)},
		{"storage below the threshold", nil, storage(84), stops(autopilot.ReasonBelowThreshold, time.Minute,
			"Storage stays at 100 GB: 84.0 % used, alarm at 85 %")},
		{"CPU at the threshold", nil, cpu(90), makes(larger)},
		{"CPU below the threshold", nil, cpu(89.9), stops(autopilot.ReasonBelowThreshold, time.Minute,
			"The flavor stays "+present+": 89.9 % CPU used, alarm at 90 %")},
		{"CPU measured after the last change of flavor", changedFlavor(2 * time.Minute), cpu(95), makes(larger)},
		{"CPU measured before the last change of flavor", changedFlavor(30 * time.Second), cpu(95), undecided(time.Minute)},

		// No change is pending.
		{"volume pending, storage in alarm", cases.PendingVolume(time.Minute), storage(93),
			stops(autopilot.ReasonChangePending, recheck, "Storage 100 → 110 GB is in progress")},
		{"volume pending, CPU in alarm", cases.PendingVolume(time.Minute), cpu(95),
			stops(autopilot.ReasonChangePending, recheck)},
		{"volume pending for 15 minutes while the instance is busy",
			cases.Both(cases.PendingVolume(15*time.Minute), cases.InStatus("MODIFYING")), storage(93),
			stops(autopilot.ReasonChangePending, recheck)},
		{"volume pending for 3 hours, ACTIVE for 14 minutes",
			cases.Both(cases.PendingVolume(3*time.Hour), cases.ActiveFor(14*time.Minute)), storage(93),
			stops(autopilot.ReasonChangePending, recheck)},
		{"flavor pending for 9 minutes, storage in alarm", cases.PendingFlavor(9 * time.Minute), storage(93),
			stops(autopilot.ReasonChangePending, recheck, "Flavor "+present+" → "+larger+" is in progress")},
		{"flavor pending for 10 minutes, storage in alarm", cases.PendingFlavor(10 * time.Minute), storage(93), makes("110")},
		{"flavor pending for 15 minutes", cases.PendingFlavor(15 * time.Minute), cpu(95),
			stops(autopilot.ReasonStalled, recheck)},
		{"volume pending in STORAGE FULL", cases.Both(cases.InStatus(autopilot.StatusStorageFull),
			cases.PendingVolume(time.Minute)),
			storage(93), stops(autopilot.ReasonStorageFull, recheck,
				"The instance is in STORAGE FULL. Storage 100 → 110 GB was requested, and the cloud may refuse it")},

		// The cloud did not revert our flavor.
		{"cloud reverted the flavor 2 hours ago",
			cases.Both(cases.Changed(3*time.Hour, "99.0"), cases.RolledBack(2*time.Hour)),
			cpu(95), holds(autopilot.ReasonRolledBack, 22*time.Hour, "The cloud reverted flavor "+present+
				" at 2026-11-20T10:00:00Z, although the Rds requests it. The flavor stays for 24 hours")},

		// The instance is ACTIVE.
		{"instance busy, storage in alarm", cases.InStatus("MODIFYING"), storage(93),
			stops(autopilot.ReasonInstanceBusy, recheck, "The instance is in MODIFYING: storage grows once it is ACTIVE")},
		{"instance busy, CPU in alarm", cases.InStatus("MODIFYING"), cpu(95),
			stops(autopilot.ReasonInstanceBusy, recheck, "The instance is in MODIFYING: the flavor changes once it is ACTIVE")},
		{"STORAGE FULL, CPU in alarm", cases.InStatus(autopilot.StatusStorageFull), cpu(95),
			stops(autopilot.ReasonInstanceBusy, recheck)},
		{"STORAGE FULL, storage in alarm", cases.InStatus(autopilot.StatusStorageFull), storage(99), makes("120",
			"Storage 100 → 120 GB: 99.0 % used, alarm at 85 %; the instance is in STORAGE FULL (read-only), ",
			"and the cloud may refuse the growth")},
		{"ACTIVE for 14 minutes", cases.ActiveFor(14 * time.Minute), cpu(95), holds(autopilot.ReasonInstanceBusy, time.Minute,
			"The flavor stays "+present+" until the instance has been ACTIVE for 15 minutes")},
		{"ACTIVE for less than a shorter cooldown", cases.Both(cases.ActiveFor(time.Minute), cases.Cooldown(90)), cpu(95),
			holds(autopilot.ReasonInstanceBusy, 30*time.Second)},

		// The flavors and the caps are known, and the caps allow more.
		{"catalogue cannot be read", failing(catalogue), cpu(95),
			stops(autopilot.ReasonNoData, time.Minute, "The cloud's flavors could not be read")},
		{"flavor of unknown size", oldFlavor, cpu(95), stops(autopilot.ReasonNoData, 5*time.Minute,
			"The vCPUs and memory of rds.mysql.former.9xlarge are not known, so no larger flavor can be chosen")},
		{"no baseline and no cap", noBaseline, cpu(95), stops(autopilot.ReasonNoData, 5*time.Minute,
			"The size of the instance at first arming is not known, so the flavor has no cap. ",
			"Set spec.flavor.maxVCPUs and spec.flavor.maxMemoryGB")},
		{"no zones in the list of instances", zones(), cpu(95), stops(autopilot.ReasonNoData, 5*time.Minute,
			"The zones of the instance are not known, so no flavor is known to be available")},
		{"a node without a zone", zones("", "eu-de-01"), cpu(95), stops(autopilot.ReasonNoData, 5*time.Minute)},
		{"no baseline, but caps", all(noBaseline, flavorCap(16), memoryCap(64)), cpu(95), makes(larger)},
		{"four times the vCPUs of the baseline are too few", baseline(v1alpha1.Baseline{VCPUs: 2, MemoryGB: 32}), cpu(95),
			stops(autopilot.ReasonCapReached, 0)},
		{"cap of vCPUs", flavorCap(8), cpu(95), stops(autopilot.ReasonCapReached, 0,
			"No larger flavor: "+larger+" is above the caps of 8 vCPUs and 128 GB")},
		{"cap of memory", memoryCap(63), cpu(95), stops(autopilot.ReasonCapReached, 0)},
		{"storage at its cap", cases.Steps(10, 100), storage(93.1), stops(autopilot.ReasonCapReached, 0,
			"Storage stays at 100 GB: 93.1 % used, but spec.storage.maxGB is 100")},
		{"storage at the default cap of 200 GB",
			all(sized(200), cases.Steps(10, 0), baseline(v1alpha1.Baseline{VolumeGB: 50})), storage(196),
			stops(autopilot.ReasonCapReached, 0,
				"Storage stays at 200 GB: 98.0 % used, but spec.storage.maxGB is not set, so the limit is 200 GB")},
		{"step larger than the cap allows", cases.Steps(50, 120), storage(93.1), makes("120",
			"Storage 100 → 120 GB: 93.1 % used, alarm at 85 %; 150 GB are needed, clamped to spec.storage.maxGB")},

		{"45 GB, and the cloud has only multiples of 10", sized(45), storage(36), makes("60")},

		// A larger flavor exists, is available in every zone, and is not above a read replica.
		{"no larger flavor", func(c *autopilot.Case) { c.Catalogue = c.Catalogue[:min(3, len(c.Catalogue))] }, cpu(95),
			stops(autopilot.ReasonNoLargerFlavor, 5*time.Minute,
				"No larger flavor: the cloud has none above "+present+" for this instance")},
		{"sold out in a zone of the instance", cases.SoldOut("eu-de-02"), cpu(95),
			stops(autopilot.ReasonSoldOut, 5*time.Minute,
				"No larger flavor: "+larger+" is sold out in eu-de-02")},
		{"zone of the instance not listed", cases.ZoneState("eu-de-02", ""), cpu(95),
			stops(autopilot.ReasonSoldOut, 5*time.Minute, "No larger flavor: "+larger+" is not sold in eu-de-02")},
		{"sold out in another zone", cases.SoldOut("eu-de-03"), cpu(95), makes(larger)},
		{"PostgreSQL read replica of the present size", cases.WithReplica("PostgreSQL"), cpu(95),
			stops(autopilot.ReasonReplicaTooSmall, 5*time.Minute, larger+" (16 vCPUs, 64 GB) is larger than the read replica ",
				"reader (8 vCPUs, 32 GB): enlarge the replica first")},
		{"MySQL read replica of the present size", cases.WithReplica("MySQL"), cpu(95), makes(larger)},
		{"PostgreSQL read replica of unknown size", cases.Both(cases.WithReplica("PostgreSQL"), func(c *autopilot.Case) {
			c.Instance.Replicas = []autopilot.Replica{{Name: "reader"}}
		}), cpu(95), makes(larger)},

		// The cooldown has passed, and the day allows another change.
		{"changed 23 minutes ago", cases.Changed(23*time.Minute, "99.0"), cpu(95),
			holds(autopilot.ReasonCooldown, 37*time.Minute,
				"The last change of flavor started at 2026-11-20T11:37:00Z, and the cooldown is 1 hour")},
		{"lost change of 30 minutes ago", all(cases.Changed(30*time.Minute, "95.0"), lost), cpu(95),
			holds(autopilot.ReasonCooldown, 30*time.Minute)},
		{"change that was requested 61 and completed 10 minutes ago", all(cases.Changed(61*time.Minute, "99.0"),
			completed(10*time.Minute)), cpu(95), holds(autopilot.ReasonCooldown, 50*time.Minute)},
		{"change of 30 minutes ago that was only refused", all(cases.Changed(30*time.Minute, "95.0"), onlyRefused), cpu(95),
			makes(larger)},
		{"another writer's change 10 minutes ago", all(cases.Changed(10*time.Minute, "99.0"), byOther), cpu(95),
			makes(larger)},
		{"cooldown of zero", all(cases.Changed(10*time.Minute, "99.0"), cases.Cooldown(0)), cpu(93), makes(larger)},
		{"two changes within 24 hours", cases.Both(cases.Changed(3*time.Hour, "99.0"), cases.Changed(20*time.Hour, "99.0")),
			memory(95), holds(autopilot.ReasonBudgetSpent, 4*time.Hour,
				"The flavor changed 2 times in 24 hours, as often as spec.flavor.maxChangesPerDay allows")},
		{"one change within 24 hours, and one is allowed", all(cases.Changed(3*time.Hour, "99.0"), daily(1)), memory(95),
			holds(autopilot.ReasonBudgetSpent, 21*time.Hour,
				"The flavor changed once in 24 hours, as often as spec.flavor.maxChangesPerDay allows")},

		// One of the last two changes had an effect.
		{"two changes without effect", cases.Both(cases.Changed(30*time.Hour, "94.0"), cases.Changed(60*time.Hour, "97.0")),
			cpu(95), holds(autopilot.ReasonNoEffect, 7*day-60*time.Hour, "The last two larger flavors did not reduce CPU, ",
				"which is at 95.0 % again. The autopilot tries no third one unless the spec changes")},
		{"two changes for CPU and memory without effect on memory", all(cases.Changed(30*time.Hour, "99.0"),
			cases.Changed(60*time.Hour, "99.0"), forMemoryToo("94.0")), memory(95), holds(autopilot.ReasonNoEffect, 7*day-60*time.Hour)},
		{"two changes for CPU and memory with an effect on memory only", all(cases.Changed(30*time.Hour, "94.0"),
			cases.Changed(60*time.Hour, "97.0"), forMemoryToo("100.0")), memory(95), makes(larger)},
		{"two changes for CPU and memory, and the value of memory is not known", all(cases.Changed(30*time.Hour, "94.0"),
			cases.Changed(60*time.Hour, "97.0"), forMemoryToo()), memory(95), makes(larger)},
		{"one change without effect", cases.Changed(30*time.Hour, "94.0"), cpu(93), makes(larger)},
		{"two changes, the older one lowered the usage by 5 points", all(cases.Changed(30*time.Hour, "90.9"),
			cases.Changed(60*time.Hour, "96.0")), cpu(93), makes(larger)},
		{"two changes without effect, but another spec", all(cases.Changed(30*time.Hour, "94.0"),
			cases.Changed(60*time.Hour, "97.0"), newSpec), cpu(93), makes(larger)},

		// No other writer reverts our change.
		{"size reverted half a minute ago", cases.LostVolume, storage(92), holds(autopilot.ReasonContested, 30*time.Second,
			"Field manager \"a-gitops-tool\" reset the size from 110 to 100 GB. Retrying at longer intervals")},
		{"size reverted for the second time, 5 minutes less a second ago",
			all(cases.LostVolume, times(2), completed(299*time.Second)),
			storage(92), holds(autopilot.ReasonContested, time.Second)},
		{"size reverted for the ninth time", all(cases.LostVolume, times(9)), storage(92),
			holds(autopilot.ReasonContested, 14*time.Minute+30*time.Second)},
		{"size reverted within 2 GB of read-only", all(cases.LostVolume, completed(0)), storage(93),
			holds(autopilot.ReasonContested, 10*time.Second)},
		{"size reverted for the third time while read-only", all(cases.LostVolume, cases.ReadOnly, times(3), completed(0)),
			storage(92), holds(autopilot.ReasonContested, time.Minute)},
		{"size reverted, but another spec", all(cases.LostVolume, newSpec), storage(92), makes("110")},
		{"flavor no longer contested: the Rds requests ours again", cases.Both(cases.Changed(2*time.Hour, "99.0"),
			cases.MadeSmaller(time.Hour)), cpu(95), makes(larger)},
		{"flavor no longer contested: another writer made it larger",
			all(cases.Changed(2*time.Hour, "99.0"), flavored(larger)),
			cpu(95), makes("rds.mysql.n1.8xlarge.4")},

		// The window is open, and the mode is Auto.
		{"window closed", cases.InWindow("Sat", "01:00", "05:00"), cpu(95), holds(autopilot.ReasonOutsideWindow, 13*time.Hour,
			"The window is closed. The flavor change is kept until it opens")},
		{"cooldown, budget, window and places stop no growth", all(cases.Changed(time.Minute, "95.0"),
			cases.Changed(20*time.Hour, "95.0"), cases.InWindow("Sat", "01:00", "05:00"), noPlace), storage(93), makes("110")},
		{"deferred change and the window is open", cases.Deferred("cpu", "memory"), nil,
			makes(larger, flavorText+"CPU"+deferredText+"; memory"+deferredText)},
		{"deferred change, the window is open and the same alarm is in force", cases.Deferred("cpu"), cpu(95),
			makes(larger, flavorText+"95.0 % CPU used, alarm at 90 %")},
		{"deferred change of a week ago", all(cases.Deferred("cpu"), later(8*day)), nil, undecided(0)},
		{"deferred change, but the flavor has changed since", all(cases.Deferred("cpu"), changedFlavor(time.Hour)), nil,
			undecided(0)},
		{"deferred change without a window",
			all(cases.Deferred("cpu"), func(c *autopilot.Case) { c.Spec.Flavor.Window = nil }), nil, undecided(0)},
		{"deferred change of a metric that is disabled now", all(cases.Deferred("cpu"), metricOff), nil, undecided(0)},
		{"deferred change below the present threshold",
			all(cases.Deferred("cpu"), func(c *autopilot.Case) { c.Spec.Flavor.CPU.ThresholdPercent = 96 }), nil, undecided(0)},
		{"mode Recommend, storage in alarm", cases.Recommend, storage(93.1),
			outcome{reason: autopilot.ReasonRecommend, to: "110",
				message: "Storage 100 → 110 GB: 93.1 % used, alarm at 85 % (recommended only)"}},

		// The change has a place among those of the cluster, and the instance's own list has a larger flavor.
		{"no place", noPlace, cpu(95), stops(autopilot.ReasonFleetBrake, time.Minute,
			"The flavor waits, because as many flavors as --max-flavor-changes allows are changing in the cluster")},
		{"resize list cannot be read", failing(resizeList), cpu(95), stops(autopilot.ReasonNoData, time.Minute,
			"The flavors that the instance can change to could not be read")},
		{"resize list has only one above the cap", all(flavorCap(16), offered("rds.mysql.n1.8xlarge.4")), cpu(95),
			stops(autopilot.ReasonCapReached, 0,
				"No larger flavor: rds.mysql.n1.8xlarge.4 is above the caps of 16 vCPUs and 128 GB")},
		{"no resize list for the engine", notOffered, cpu(95), makes(larger, flavorText+"95.0 % CPU used, alarm at 90 %; ",
			"only the same family counts, because the cloud has no resize list for the instance: DBS.200040")},
		{"no resize list for the engine and no larger one of the family", all(notOffered, otherFamily), cpu(95),
			stops(autopilot.ReasonNoLargerFlavor, 5*time.Minute, "No larger flavor: the cloud has none above "+present+
				" for this instance; only the same family counts, because the cloud has no resize list for the instance: DBS.200040")},
	}
}

// rowsOfOneApply returns cases whose decision depends on spec.apply.
func rowsOfOneApply() []row {
	contested := cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.Restored)
	const contestText = " replaced flavor " + present + " by rds.mysql.n1.xlarge.4. The flavor stays for 7 days unless the spec changes"
	refused := func(pending cases.Alteration, r autopilot.Reason) func(*autopilot.Case) {
		return cases.CloudRefuses(pending, r)
	}
	soon := cases.PendingVolume(time.Minute)
	found := []row{
		{"Rds whose instance is gone", func(c *autopilot.Case) { c.Instance = nil }, storage(93),
			stops(autopilot.ReasonInstanceUnknown, recheck, "The cloud has no instance with the id in status.id of the Rds")},
		{"spec.instanceID of an instance that is gone", func(c *autopilot.Case) { c.Instance, c.NoRds = nil, true },
			storage(93),
			stops(autopilot.ReasonInstanceUnknown, recheck, "The cloud has no instance with the id in spec.instanceID")},
		{"spec.instanceID of a node", func(c *autopilot.Case) { c.Instance, c.NoRds, c.NodeOf = nil, true, "1234in01" },
			storage(93), stops(autopilot.ReasonInstanceUnknown, recheck,
				"The id in spec.instanceID is that of a node. Use the id of its instance: 1234in01")},
		{"volume pending for 15 minutes", cases.PendingVolume(15 * time.Minute), storage(93),
			stops(autopilot.ReasonStalled, recheck,
				"Storage 100 → 110 GB was requested at 2026-11-20T11:45:00Z, and the operator has not made it, although the instance is ACTIVE. ",
				"Check the operator, or go round it: in the cloud's console, or with an RdsAutopilot of another name and instanceID")},
		{"volume pending for 15 minutes, nearly read-only, and a larger size is needed", cases.PendingVolume(15 * time.Minute),
			storage(99), makes("120")},
		{"the same, and no larger size is needed", cases.PendingVolume(15 * time.Minute), storage(94),
			stops(autopilot.ReasonStalled, recheck)},
		{"volume without an answer of the cloud for half a minute", all(cases.PendingVolume(time.Minute/2), cases.WithoutRds), storage(93),
			stops(autopilot.ReasonChangePending, recheck)},
		{"volume without an answer of the cloud for a minute", all(cases.PendingVolume(time.Minute), cases.WithoutRds), storage(93),
			makes("110")},
		{"flavor without an answer of the cloud", all(cases.PendingFlavor(10*time.Minute), cases.WithoutRds), cpu(95),
			stops(autopilot.ReasonChangePending, recheck)},
		{"job of the cloud has run for an hour", cases.RunningFor(time.Hour), storage(93),
			stops(autopilot.ReasonStalled, recheck,
				"Storage 100 → 110 GB has been in progress since 2026-11-20T11:00:00Z, and the cloud's job j1 has not ended. ",
				"Contact the cloud's support")},
		{"Rds requests a smaller size than the cloud has", wantedGB(40), storage(93), makes("110")},
		{"Rds requests a larger size than the cloud has", wantedGB(120), storage(93),
			stops(autopilot.ReasonChangePending, recheck,
				"The Rds requests 120 GB and the cloud still has 100 GB. That change comes first")},
		{"Rds has requested a larger size for 15 minutes", unfulfilled(volume, "105"), storage(92),
			stops(autopilot.ReasonStalled, recheck,
				"The Rds has requested 105 GB since 2026-11-20T11:45:00Z and the cloud still ",
				"has 100 GB, although the instance is ACTIVE. Check the operator, or correct spec.volumesize")},
		{"the same within 2 GB of read-only", unfulfilled(volume, "105"), storage(94), makes("110")},
		{"the same in STORAGE FULL", all(unfulfilled(volume, "105"), cases.InStatus(autopilot.StatusStorageFull)),
			storage(99.5), makes("120")},
		{"a stalled size that is not a multiple of 10, larger than ours", unfulfilled(volume, "133"), storage(99.5),
			makes("140")},
		{"a stalled size that the cloud can make, larger than ours", unfulfilled(volume, "130"), storage(99.5),
			stops(autopilot.ReasonStalled, recheck)},
		{"Rds requests another flavor than the cloud has", otherFlavor, cpu(95), stops(autopilot.ReasonChangePending, recheck,
			"The Rds requests rds.mysql.n1.large.4 and the cloud still has "+present+". That change comes first")},
		{"Rds has requested another flavor for 15 minutes", unfulfilled(flavor, "rds.mysql.n1.large.4"), cpu(95),
			stops(autopilot.ReasonStalled, recheck,
				"The Rds has requested rds.mysql.n1.large.4 since 2026-11-20T11:45:00Z and the ",
				"cloud still has "+present+", although the instance is ACTIVE. Check the operator, or correct spec.flavorref")},
		{"the same while the instance is busy", all(unfulfilled(flavor, "rds.mysql.n1.large.4"), cases.InStatus("MODIFYING")),
			cpu(95), stops(autopilot.ReasonChangePending, recheck)},

		{"flavor replaced by a smaller one", contested, cpu(95),
			stops(autopilot.ReasonContested, 7*day, "Field manager \"a-gitops-tool\""+contestText)},
		{"flavor replaced, and the writer cannot be read", cases.Both(contested, failing(flavorWriter)), cpu(95),
			stops(autopilot.ReasonContested, 7*day, "Another writer"+contestText)},
		{"flavor replaced 48 hours ago", all(cases.Changed(50*time.Hour, "99.0"), replacedFlavor(48*time.Hour), cases.Restored),
			cpu(95), holds(autopilot.ReasonContested, 5*day)},
		{"flavor replaced more than a day after our change", cases.Both(cases.Changed(25*time.Hour, "95.0"), cases.Restored),
			cpu(99), makes(present)},
		{"flavor replaced, but another spec", all(contested, newSpec), cpu(99), makes(present)},

		{"patch refused half a minute ago", cases.RefusedPatch, storage(93), holds(autopilot.ReasonRefused, 30*time.Second,
			"The Kubernetes API refuses the patch (Storage 100 → 110 GB): not on Fridays")},
		{"cloud refused a smaller growth, and the next attempt is due", all(refused(cases.PendingVolume(time.Hour),
			autopilot.ReasonCloudRefused), later(time.Minute)), storage(99), makes("120")},
		{"cloud refused a flavor: sold out", refused(cases.PendingFlavor(time.Minute), autopilot.ReasonSoldOut), cpu(95),
			stops(autopilot.ReasonSoldOut, time.Minute, "The cloud does not offer the requested size or flavor (Flavor ",
				present+" → "+larger+"): in its words")},
		{"cloud refused a flavor, storage in alarm", refused(cases.PendingFlavor(time.Minute), autopilot.ReasonSoldOut),
			storage(93), makes("110")},
		{"cloud refused: STORAGE FULL", refused(all(cases.InStatus(autopilot.StatusStorageFull), soon),
			autopilot.ReasonStorageFull),
			storage(93), stops(autopilot.ReasonStorageFull, time.Minute,
				"The cloud refuses the change while the storage is full (Storage 100 → 110 GB): in its words")},
	}
	for _, answer := range []struct {
		reason autopilot.Reason
		again  time.Duration
		text   string
	}{
		{autopilot.ReasonQuotaExceeded, time.Minute, "The cloud's quota does not allow the change"},
		{autopilot.ReasonPaymentRequired, time.Minute, "The cloud makes no changes until the account is paid"},
		{autopilot.ReasonNotPermitted, time.Minute, "The credentials do not permit the change"},
		{autopilot.ReasonInstanceBusy, time.Minute, "The cloud is busy with the instance"},
		{autopilot.ReasonCloudRefused, time.Minute, "The cloud refuses the change"},
		{autopilot.ReasonJobFailed, time.Minute, "The cloud started the change and failed"},
		{autopilot.CloudUnreachable, time.Minute, "The cloud gave no clear answer to the request"},
	} {
		found = append(found, row{"cloud answered " + string(answer.reason), refused(soon, answer.reason), storage(93),
			stops(answer.reason, answer.again, answer.text, " (Storage 100 → 110 GB): in its words")})
	}
	return found
}

// The cases of rows are also decided with apply: Cloud, unless the Rds is part of the case.
func TestDecide(t *testing.T) {
	stated := map[autopilot.Reason]bool{}
	for _, tc := range slices.Concat(rows(), rowsOfOneApply()) {
		if tc.want.message != "" {
			stated[tc.want.reason] = true
		}
		t.Run(tc.name, func(t *testing.T) { tc.check(t, tc.build()) })
	}
	for _, g := range Table() {
		for _, r := range g.Reasons {
			if !stated[r] {
				t.Errorf("no row has the sentence of %s (%s)", r, g.Name)
			}
		}
	}
	for _, tc := range rows() {
		c := tc.build()
		isPending := change.AnyPending(c.Status.Changes)
		for i, ch := range c.Status.Changes {
			if change.IsPending(ch) {
				c.Status.Changes[i].State, c.Status.Changes[i].StartTime = v1alpha1.StateStarted, ch.RequestTime
			}
		}
		now := autopilot.Wanted{VolumeGB: c.Instance.VolumeGB, Flavor: c.Instance.Flavor}
		if c.Wanted == now || isPending {
			c.Wanted, c.NoRds, c.Spec.Apply = now, true, v1alpha1.ApplyCloud
			t.Run(tc.name+", apply Cloud", func(t *testing.T) { tc.check(t, c) })
		}
	}
}

// build returns the case of the row.
func (r row) build() autopilot.Case {
	c := cases.Quiet(slices.Clone(r.alarms)...)
	if r.alter != nil {
		r.alter(&c)
	}
	return c
}

// check decides on a case and compares the verdict with the row.
func (r row) check(t *testing.T, c autopilot.Case) {
	t.Helper()
	v := verdictOf(c)
	if v.RequeueAfter != r.want.again {
		t.Errorf("next check in %s, want %s", v.RequeueAfter, r.want.again)
	}
	if r.want.reason == "" {
		if len(v.Decisions) > 0 || v.Change != nil {
			t.Errorf("%+v, want no decision", v)
		}
		return
	}
	if len(v.Decisions) == 0 {
		t.Fatalf("no decision, want %s", r.want.reason)
	}
	d := v.Decisions[0]
	if d.Reason != r.want.reason || d.To != r.want.to {
		t.Errorf("%s to %q (%s), want %s to %q", d.Reason, d.To, d.Message, r.want.reason, r.want.to)
	}
	if d.Reason == autopilot.ReasonCapReached && !d.Capped {
		t.Error("at a cap, and not Limited")
	}
	isVolume := d.Metric == v1alpha1.MetricStorage
	if acts := d.To != ""; acts != d.Acts() && d.Reason != autopilot.ReasonRecommend || acts && isVolume != (d.Action == autopilot.ActionGrowVolume) {
		t.Errorf("action %s to %q", d.Action, d.To)
	}
	if intended := v.Change != nil && v.Change.To == r.want.to; intended != (d.Reason == autopilot.ReasonAlarmInForce) {
		t.Errorf("intent %+v with reason %s", v.Change, d.Reason)
	}
	i := slices.IndexFunc(Table(), func(g Guard) bool { return g.Name == d.Guard })
	if d.Acts() != (i < 0) || i >= 0 && !slices.Contains(Table()[i].Reasons, d.Reason) {
		t.Errorf("%s by the guard %q, whose row lacks the reason", d.Reason, d.Guard)
	}
	if d.Message == "" || r.want.message != "" && d.Message != r.want.message && c.Spec.Apply != v1alpha1.ApplyCloud {
		t.Errorf("%q\nwant %q", d.Message, r.want.message)
	}
	if !r.want.ends {
		return
	}
	if early := verdictOf(cases.Later(c, r.want.again-time.Second)).Decisions[0]; early.Reason != r.want.reason {
		t.Errorf("a second earlier it is %s: %s", early.Reason, early.Message)
	}
	if then := verdictOf(cases.Later(c, r.want.again)).Decisions[0]; then.Reason == r.want.reason {
		t.Errorf("then it is still %s: %s", then.Reason, then.Message)
	}
}
