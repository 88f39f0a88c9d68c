// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// row is a row of the tables in package autopilot, by the same name, or one that only the cloud can give.
type row struct {
	name   string
	stage  func(*scene)
	metric v1alpha1.Metric // empty: the reason is that of the condition Armed
	reason string          // empty: nothing is to be said
	to     []string        // the sizes and flavors that the cloud is to make of it, each once
	waits  bool            // a change of ours is still wanted in the end
	rds    bool            // it is about what an Rds asks for, or does not
	says   string          // part of the sentence
}

const (
	onStorage = v1alpha1.MetricStorage
	onCPU     = v1alpha1.MetricCPU
	onMemory  = v1alpha1.MetricMemory
	acts      = "AlarmInForce"
)

func grows(gb string) []string { return []string{gb} }

func storageRows() []row {
	step := func(stepGB, maxGB int32) func(*scene) {
		return func(s *scene) { s.spec.Storage.StepGB, s.spec.Storage.MaxGB = stepGB, maxGB }
	}
	threshold := func(s *scene) { s.spec.Storage.ThresholdPercent = 60 }
	theirs := func(gb int) func(*scene) {
		return unfulfilledFor(20*time.Minute, v1alpha1.KindVolume, "volumesize", gb)
	}
	return []row{
		{name: "a full volume grows", stage: disk(93.1), metric: onStorage, reason: acts, to: grows("110")},
		{name: "storage full grows once", stage: disk(99), metric: onStorage, reason: acts, to: grows("120")},
		{name: "the example of 40 GB at 76 %", stage: all(volume(40), disk(76)), metric: onStorage, reason: acts, to: grows("50")},
		{name: "the example of 100 GB at 92 %", stage: disk(92), metric: onStorage, reason: acts, to: grows("110")},
		{name: "the example of 100 GB at 99 %, read-only", stage: disk(99), metric: onStorage, reason: acts, to: grows("120")},
		{name: "the example of 1000 GB at 91 %", stage: all(volume(1000), disk(91)), metric: onStorage, reason: acts, to: grows("1020")},
		{name: "the example of 500 GB at 97.5 %, read-only", stage: all(volume(500), disk(97.5)), metric: onStorage, reason: acts, to: grows("570")},
		{name: "at 40 GB the alarm is at 75 %", stage: all(volume(40), disk(75)), metric: onStorage, reason: acts, to: grows("50")},
		{name: "at 50 GB the alarm is at 80 %", stage: all(volume(50), disk(80)), metric: onStorage, reason: acts, to: grows("60")},
		{name: "a lower threshold of the policy counts", stage: all(threshold, disk(61)), metric: onStorage, reason: acts, to: grows("110")},
		{name: "at the cap", stage: all(step(10, 100), disk(93)), metric: onStorage, reason: "CapReached"},
		{name: "the last step is clamped", stage: all(step(50, 120), disk(93)), metric: onStorage, reason: acts, to: grows("120")},
		{name: "above the cap by somebody's hand nothing shrinks", stage: all(step(10, 60), disk(99)), metric: onStorage, reason: "CapReached"},
		{name: "recommend only, storage", stage: all(mode(v1alpha1.ModeRecommend), disk(93)), metric: onStorage, reason: "Recommend"},
		{name: "the window is not for storage", stage: all(window(3), disk(93)), metric: onStorage, reason: acts, to: grows("110")},
		{name: "ACTIVE for too short a time does not hold storage back", stage: all(activeFor(0), disk(93)), metric: onStorage, reason: acts, to: grows("110")},
		{name: "busy", stage: all(instanceIn("MODIFYING"), disk(93)), metric: onStorage, reason: "InstanceBusy"},
		{name: "cooldown does not hold storage back", stage: all(changed(time.Minute, "95.0"), disk(93)), metric: onStorage, reason: acts, to: grows("110")},
		{name: "the budget does not hold storage back", stage: all(changed(3*time.Hour, "95.0"), changed(20*time.Hour, "95.0"), disk(93)), metric: onStorage, reason: acts, to: grows("110")},
		{name: "a contest does not hold storage back", stage: all(changed(2*time.Hour, "99.0"), undone, disk(93)), metric: onStorage, reason: acts, to: grows("110")},

		{name: "an intent that was never patched is decided anew", stage: all(pendingVolume(time.Minute), unasked, disk(93)), metric: onStorage, reason: acts, to: grows("110")},
		{name: "a volume change is under way", stage: all(pendingVolume(time.Minute), instanceIn("MODIFYING"), disk(93)), metric: onStorage, reason: "ChangePending", waits: true},
		{name: "not stalled while the instance is busy", stage: all(pendingVolume(20*time.Minute), instanceIn("MODIFYING"), disk(93)), metric: onStorage, reason: "ChangePending", waits: true},
		{name: "a flavor change holds storage back at first", stage: all(pendingFlavor(time.Minute), instanceIn("MODIFYING"), disk(93)), metric: onStorage, reason: "ChangePending", waits: true},
		{name: "a job that the cloud does not end", stage: all(pendingVolume(2*time.Hour), jobSince(2*time.Hour), instanceIn("MODIFYING"), disk(93)), metric: onStorage, reason: "Stalled", waits: true},
		{name: "a volume change is stalled", stage: all(pendingVolume(20*time.Minute), disk(93), early), metric: onStorage, reason: "Stalled", says: "the cloud is asked for it again", to: grows("110")},
		{name: "not stalled when the instance became ACTIVE just now", stage: all(pendingVolume(3*time.Hour), activeFor(0), disk(93), early), metric: onStorage, reason: "ChangePending", to: grows("110")},
		{name: "but not for ever", stage: all(pendingFlavor(time.Hour), disk(93)), metric: onStorage, reason: acts, to: []string{"110", nextCPU}},
		{name: "storage full, asked for once", stage: all(pendingVolume(time.Minute), disk(99)), to: []string{"110", "120"}},

		{name: "the Rds asks for more than the cloud has", stage: all(asks("volumesize", 120), disk(93)), metric: onStorage, reason: "ChangePending", rds: true},
		{name: "the cloud grew by itself", stage: all(asks("volumesize", 40), disk(93)), metric: onStorage, reason: acts, to: grows("110"), rds: true},
		{name: "not urgent", stage: all(theirs(105), disk(92)), metric: onStorage, reason: "Stalled", rds: true},
		{name: "nearly read-only", stage: all(theirs(105), disk(94)), metric: onStorage, reason: acts, to: grows("110"), rds: true},
		{name: "read-only", stage: all(theirs(105), disk(99.5)), metric: onStorage, reason: acts, to: grows("120"), rds: true},
		{name: "theirs is larger than ours would be", stage: all(theirs(133), disk(99.5)), metric: onStorage, reason: acts, to: grows("140"), rds: true},
		{name: "theirs is a size the cloud could have", stage: all(theirs(130), disk(99.5)), metric: onStorage, reason: "Stalled", rds: true},

		{name: "the cloud refuses a size: quota", stage: all(refused("EnlargeVolume", "quota"), disk(93)), metric: onStorage, reason: "QuotaExceeded", waits: true},
		{name: "the cloud refuses a size: money", stage: all(refused("EnlargeVolume", "money"), disk(93)), metric: onStorage, reason: "PaymentRequired", waits: true},
		{name: "the cloud refuses a size: permission", stage: all(refused("EnlargeVolume", "permission"), disk(93)), metric: onStorage, reason: "NotPermitted", waits: true},
		{name: "the cloud refuses a size: full", stage: all(refused("EnlargeVolume", "full"), disk(99)), metric: onStorage, reason: "StorageFull", waits: true},
		{name: "the cloud refuses a size: parameter", stage: all(refused("EnlargeVolume", "parameter"), disk(93)), metric: onStorage, reason: "CloudRefused", waits: true},
		{name: "the cloud's answer is lost", stage: all(replyLost("EnlargeVolume"), disk(93)), metric: onStorage, reason: "CloudUnreachable", to: grows("110")},
		{name: "the cloud begins a size and fails", stage: all(failsOnce, disk(93)), metric: onStorage, reason: "JobFailed", says: "simulated failure", to: grows("110")},
	}
}

func flavorRows() []row {
	spec := func(alter func(*v1alpha1.Flavor)) func(*scene) { return func(s *scene) { alter(&s.spec.Flavor) } }
	switchedOff := spec(func(f *v1alpha1.Flavor) { f.CPU.Enabled = new(false) })
	maxVCPUs := spec(func(f *v1alpha1.Flavor) { f.MaxVCPUs = new(int32(4)) })
	maxMemory := spec(func(f *v1alpha1.Flavor) { f.MaxMemoryGB = new(int32(31)) })
	was := func(vcpus int32) func(*scene) {
		return func(s *scene) {
			s.status.Baseline = &v1alpha1.Baseline{VolumeGB: 100, Flavor: present, VCPUs: vcpus, MemoryGB: 16}
		}
	}
	return []row{
		{name: "a busy CPU gets the next flavor", stage: cpu(95), metric: onCPU, reason: acts, to: []string{nextCPU}},
		{name: "full memory gets the next flavor", stage: mem(95), metric: onMemory, reason: acts, to: []string{nextMemory}},
		{name: "CPU and memory get one that serves both", stage: all(cpu(95), mem(97)), metric: onMemory, reason: acts, to: []string{nextMemory}},
		{name: "storage goes before flavors", stage: all(cooldown(1), cpu(95), disk(93)), metric: onCPU, reason: acts, to: []string{"110", nextCPU}},
		{name: "exactly at the threshold", stage: cpu(90), metric: onCPU, reason: acts, to: []string{nextCPU}},
		{name: "a message is not needed: Cloud Eye says alarm", stage: mem(91), metric: onMemory, reason: acts, to: []string{nextMemory}},
		{name: "CPU measured after the last change of flavor", stage: all(changed(2*time.Minute, ""), newest(byOther), cpu(95)), metric: onCPU, reason: acts, to: []string{nextCPU}},
		{name: "that metric is switched off", stage: all(switchedOff, cpu(95))},
		{name: "recommend only, flavor", stage: all(mode(v1alpha1.ModeRecommend), cpu(95)), metric: onCPU, reason: "Recommend"},

		{name: "a volume change holds flavors back", stage: all(pendingVolume(time.Minute), instanceIn("MODIFYING"), cpu(95)), metric: onCPU, reason: "ChangePending", waits: true},
		{name: "a flavor change is stalled", stage: all(pendingFlavor(20*time.Minute), cpu(95), early), metric: onCPU, reason: "Stalled", says: "the cloud is asked for it again", to: []string{nextCPU}},
		{name: "the Rds asks for another flavor than the cloud has", stage: all(asks("flavorref", former), cpu(95)), metric: onCPU, reason: "ChangePending", rds: true},
		{name: "the Rds has long asked for another flavor than the cloud has", stage: all(unfulfilledFor(20*time.Minute, v1alpha1.KindFlavor, "flavorref", former), cpu(95)), metric: onCPU, reason: "Stalled", rds: true},
		{name: "busy, for flavors", stage: all(instanceIn("BACKING UP"), cpu(95)), metric: onCPU, reason: "InstanceBusy"},
		{name: "storage full holds flavors back", stage: all(instanceIn("STORAGE FULL"), cpu(95)), metric: onCPU, reason: "InstanceBusy"},
		{name: "ACTIVE for too short a time to change the flavor", stage: all(activeFor(time.Minute), cpu(95)), metric: onCPU, reason: "InstanceBusy"},
		{name: "ACTIVE for long enough", stage: all(activeFor(15*time.Minute), cpu(95)), metric: onCPU, reason: acts, to: []string{nextCPU}},
		{name: "ACTIVE for as long as a short cooldown", stage: all(activeFor(time.Minute), cooldown(60), cpu(95)), metric: onCPU, reason: acts, to: []string{nextCPU}},

		{name: "flavor caps", stage: all(maxVCPUs, cpu(95)), metric: onCPU, reason: "CapReached"},
		{name: "a flavor cap in memory", stage: all(maxMemory, mem(95)), metric: onMemory, reason: "CapReached"},
		{name: "without a cap, four times the first is the most", stage: all(was(1), cpu(95)), metric: onCPU, reason: "CapReached"},
		{name: "none larger", stage: all(flavor("rds.mysql.x1.16xlarge.8"), cpu(95)), metric: onCPU, reason: "NoLargerFlavor"},
		{name: "sold out in one of its zones", stage: all(soldOut("rds.pg.n1.xlarge.4.ha", "eu-de-02"), cpu(95)), metric: onCPU, reason: "SoldOut"},
		{name: "sold out elsewhere", stage: all(soldOut("rds.mysql.n1.xlarge.4.ha", "eu-de-03"), cpu(95)), metric: onCPU, reason: acts, to: []string{nextCPU + ".ha"}},
		{name: "catalogue unreadable", stage: all(flavor("rds.mssql.n1.xlarge.4"), cpu(95)), metric: onCPU, reason: "NoData"},
		{name: "a PostgreSQL replica would be smaller", stage: all(replica("rds.pg.n1.xlarge.4"), cpu(95)), metric: onCPU, reason: "ReplicaTooSmall"},
		{name: "a MySQL replica may be smaller", stage: all(replica(present), cpu(95)), metric: onCPU, reason: acts, to: []string{nextCPU}},

		{name: "the cloud refuses a flavor: sold out", stage: all(refused("ResizeFlavor", "sold out"), cpu(95)), metric: onCPU, reason: "SoldOut", waits: true},
		{name: "a flavor that is refused does not hold storage back", stage: all(refused("ResizeFlavor", "sold out"), pendingFlavor(time.Minute), disk(93)), metric: onStorage, reason: acts, to: grows("110"), waits: true},
		{name: "the cloud refuses a flavor: parameter", stage: all(refused("ResizeFlavor", "parameter"), cpu(95)), metric: onCPU, reason: "CloudRefused", waits: true},
		{name: "the cloud's answer about a flavor is lost", stage: all(replyLost("ResizeFlavor"), cpu(95)), metric: onCPU, reason: "CloudUnreachable", to: []string{nextCPU}},
		// Without an Rds it is decided anew, once the instance has been ACTIVE for as long as the cooldown.
		{name: "the cloud begins a flavor and fails", stage: all(failsOnce, cooldown(1), cpu(95)), metric: onCPU, reason: "JobFailed", says: "simulated failure", to: []string{nextCPU}},
	}
}

func historyRows() []row {
	const day = 24 * time.Hour
	next := []string{nextCPU}
	twice := all(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "97.0"))
	return []row{
		{name: "cooldown", stage: all(changed(30*time.Minute, "95.0"), cpu(95)), metric: onCPU, reason: "Cooldown"},
		{name: "cooldown over", stage: all(changed(61*time.Minute, "99.0"), cpu(93)), metric: onCPU, reason: acts, to: next},
		{name: "a lost change cools down too", stage: all(changed(30*time.Minute, "95.0"), newest(lostOne), cpu(95)), metric: onCPU, reason: "Cooldown"},
		{name: "a cooldown goes on from the end of a change that took long", stage: all(changed(61*time.Minute, "99.0"), newest(tookUntil(10*time.Minute)), cpu(95)), metric: onCPU, reason: "Cooldown"},
		{name: "a change by somebody else is no cooldown", stage: all(changed(10*time.Minute, "99.0"), newest(byOther), cpu(95)), metric: onCPU, reason: acts, to: next},
		{name: "cooldown of zero", stage: all(changed(10*time.Minute, "99.0"), cooldown(0), cpu(93)), metric: onCPU, reason: acts, to: next},
		{name: "a lost change counts in the budget", stage: all(changed(3*time.Hour, "95.0"), newest(lostOne), changed(20*time.Hour, "95.0"), mem(95)), metric: onMemory, reason: "BudgetSpent"},
		{name: "an older change is not in the budget, which is spent", stage: all(changed(3*time.Hour, "95.0"), changed(20*time.Hour, "95.0"), changed(60*time.Hour, "95.0"), mem(95)), metric: onMemory, reason: "BudgetSpent"},
		{name: "the budget of a day is spent", stage: all(changed(3*time.Hour, "95.0"), changed(20*time.Hour, "95.0"), mem(95)), metric: onMemory, reason: "BudgetSpent"},
		{name: "the budget of yesterday", stage: all(changed(3*time.Hour, "95.0"), changed(25*time.Hour, "95.0"), mem(95)), metric: onMemory, reason: acts, to: []string{nextMemory}},
		{name: "two changes that did not help", stage: all(twice, cpu(93)), metric: onCPU, reason: "NoEffect"},
		{name: "one change that did not help", stage: all(changed(30*time.Hour, "94.0"), cpu(93)), metric: onCPU, reason: acts, to: next},
		{name: "one of two helped", stage: all(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "99.9"), cpu(93)), metric: onCPU, reason: acts, to: next},
		{name: "no effect a week ago", stage: all(changed(30*time.Hour, "94.0"), changed(8*day, "97.0"), cpu(93)), metric: onCPU, reason: acts, to: next},
		{name: "no effect under another spec", stage: all(twice, newSpec, cpu(93)), metric: onCPU, reason: acts, to: next},
		{name: "no effect on CPU says nothing of memory", stage: all(twice, mem(93)), metric: onMemory, reason: acts, to: []string{nextMemory}},
		{name: "somebody put a smaller one in place of ours", stage: all(changed(2*time.Hour, "95.0"), undone, cpu(95)), metric: onCPU, reason: "Contested"},
		{name: "contested by a new spec no more", stage: all(changed(2*time.Hour, "95.0"), undone, newSpec, cpu(99)), metric: onCPU, reason: acts, to: []string{"rds.mysql.n1.xlarge.2"}},
		{name: "contested no more once the Rds asks for ours again", stage: all(changed(2*time.Hour, "99.0"), wentBack(time.Hour, v1alpha1.OutcomeCompleted), cpu(95)), metric: onCPU, reason: acts, to: next},
		{name: "contested no more after a week", stage: all(changed(8*day, "99.0"), undone, wentBack(7*day, v1alpha1.OutcomeCompleted), cpu(99)), metric: onCPU, reason: acts, to: []string{"rds.mysql.n1.xlarge.2"}},
		{name: "smaller a day later is nobody's contest", stage: all(changed(25*time.Hour, "95.0"), undone, cpu(99)), metric: onCPU, reason: acts, to: []string{"rds.mysql.n1.xlarge.2"}},
		{name: "the cloud went back by itself", stage: all(changed(2*time.Hour, "95.0"), wentBack(time.Hour, v1alpha1.OutcomeRolledBack), flavored(former), cpu(95)), metric: onCPU, reason: "RolledBack"},
		{name: "the cloud went back by itself, and came back", stage: all(changed(2*time.Hour, "95.0"), wentBack(23*time.Hour, v1alpha1.OutcomeRolledBack), cpu(95)), metric: onCPU, reason: "RolledBack"},
		{name: "the cloud went back by itself, and came back, a day ago", stage: all(changed(25*time.Hour, "99.0"), wentBack(day, v1alpha1.OutcomeRolledBack), cpu(95)), metric: onCPU, reason: acts, to: next},
		{name: "the cloud went back by itself a day ago", stage: all(changed(25*time.Hour, "99.0"), flavored(former), cpu(95)), metric: onCPU, reason: "ChangePending", rds: true},
		{name: "outside the window", stage: all(window(3), cpu(95)), metric: onCPU, reason: "OutsideWindow"},
		{name: "inside the window", stage: all(window(0), cpu(95)), metric: onCPU, reason: acts, to: next},
	}
}

func otherRows() []row {
	const fresh, old = 20 * time.Minute, 40 * time.Minute
	hourly := func(s *scene) { s.spec.Flavor.Alarm.PeriodSeconds = 3600 }
	return []row{
		{name: "mode Off", stage: all(mode(v1alpha1.ModeOff), disk(93)), reason: "NotEnabled"},
		{name: "spec.autopilot false", stage: all(asks("autopilot", false), disk(93)), reason: "NotEnabled", rds: true},
		{name: "no such instance", stage: all(removeInstance, disk(93)), reason: "InstanceUnknown"},
		{name: "two Rds with one instance", stage: all(shareInstance, disk(93)), reason: "InstanceUnknown"},

		{name: "a message said alarm, Cloud Eye says ok", stage: told(onStorage, 93, old, old), metric: onStorage, reason: "AlarmCleared"},
		{name: "Cloud Eye does not answer, a fresh message does", stage: unconfirmed(onStorage, 93, fresh, fresh), metric: onStorage, reason: acts, to: grows("110")},
		{name: "Cloud Eye does not answer, the message is old", stage: unconfirmed(onStorage, 93, old, old), metric: onStorage, reason: "NoData"},
		{name: "no data is neither zero nor high", stage: all(unconfirmed(onStorage, 93, 0, 0), func(s *scene) { s.message.noValue = true }), metric: onStorage, reason: "NoData"},
		{name: "data of half an hour ago decides nothing", stage: unconfirmed(onStorage, 93, 0, old), metric: onStorage, reason: "StaleEvidence"},
		{name: "data of half an hour ago still does", stage: unconfirmed(onStorage, 93, 0, fresh), metric: onStorage, reason: acts, to: grows("110")},
		{name: "a datapoint of an hour is as old as its end", stage: all(hourly, unconfirmed(onCPU, 95, 0, 80*time.Minute)), metric: onCPU, reason: acts, to: []string{nextCPU}},
		{name: "a datapoint of an hour that ended long ago", stage: all(hourly, unconfirmed(onCPU, 95, 0, 100*time.Minute)), metric: onCPU, reason: "StaleEvidence"},
		{name: "in force, but below the threshold by now", stage: unconfirmed(onStorage, 89, 0, 0), metric: onStorage, reason: "BelowThreshold"},
		{name: "CPU below the threshold by now", stage: unconfirmed(onCPU, 89.9, 0, 0), metric: onCPU, reason: "BelowThreshold"},
		{name: "the example of 40 GB at 70 %", stage: all(volume(40), unconfirmed(onStorage, 70, 0, 0)), metric: onStorage, reason: "BelowThreshold"},
	}
}
