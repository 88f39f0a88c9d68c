// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// sentences has one row for every reason and every way to come to it: what a person reads, and when it is looked at again.
// A guard that ends by time alone holds until exactly then.
func sentences() []sentence {
	cpu, memory := []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, []Alarm{usageAt(v1alpha1.MetricMemory, 95.25)}
	disk := []Alarm{storageAt(93.1)}
	over := Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}
	const recheck, ends = 30 * time.Second, true
	return []sentence{
		{ReasonAlarmInForce, nil, disk, "Storage 100 → 110 GB: 93.1 % used, alarm at 90 %", 0, false},
		{ReasonAlarmInForce, steps(50, 120), disk, "Storage 100 → 120 GB: 93.1 % used, alarm at 90 %; 150 GB are needed, clamped to spec.storage.maxGB", 0, false},
		{ReasonAlarmInForce, nil, cpu, "Flavor rds.mysql.n1.2xlarge.4 (8 vCPUs, 32 GB) → rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB): 95.0 % CPU used, alarm at 90 %", 0, false},
		{ReasonAlarmInForce, nil, memory, "Flavor rds.mysql.n1.2xlarge.4 (8 vCPUs, 32 GB) → rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB): 95.2 % memory used, alarm at 90 %", 0, false},
		{ReasonAlarmInForce, wished("cpu", "memory"), nil, "Flavor rds.mysql.n1.2xlarge.4 (8 vCPUs, 32 GB) → rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB): CPU was in alarm at 2026-11-18T13:00:00Z, and the window is open; memory was in alarm at 2026-11-18T13:00:00Z, and the window is open", 0, false},
		{ReasonRecommend, recommend, disk, "Storage 100 → 110 GB: 93.1 % used, alarm at 90 % (recommended only)", 0, false},
		{ReasonPolicyInvalid, steps(15, 4000), disk, "The policy is invalid, so the autopilot ignores the storage alarm: spec.storage.stepGB: 15 is not a multiple of 10", 0, false},
		{ReasonNotEnabled, func(c *Case) { c.Mode = v1alpha1.ModeOff }, disk, "Autopilot is off for this database: the mode is Off", 0, false},
		{ReasonNotEnabled, func(c *Case) { c.Enabled = false }, disk, "Autopilot is off for this database: spec.autopilot of the Rds was set to false, or the Rds or RdsAutopilot is being deleted", 0, false},
		{ReasonNotEnabled, func(c *Case) { c.Spec.Flavor.CPU.Enabled = new(false) }, cpu, "The CPU alarm is switched off: spec.flavor.cpu.enabled is false", 0, false},
		{ReasonInstanceUnknown, func(c *Case) { c.Instance = nil }, disk, "The cloud has no instance with the id in status.id of the Rds. Next check in 30 seconds", recheck, false},
		{ReasonInstanceUnknown, func(c *Case) { c.ClaimedBy = "shop/orders" }, disk, "shop/orders names the same instance and was first, so it alone manages the instance. Remove the id from one of the two objects. Next check in 30 seconds", recheck, false},
		{ReasonNotAllowed, func(c *Case) { c.NotAllowed = "--allowed-instances does not allow it" }, disk, "--allowed-instances does not allow it", 0, false},
		{ReasonAlarmCleared, nil, []Alarm{signalled(over, v1alpha1.StateAlarm, 3*time.Minute, "93")}, "The storage alarm of 2026-11-20T11:57:00Z (93 %) had ended before the check: Cloud Eye reports ok", 0, false},
		{ReasonNoData, nil, []Alarm{signalled(storageAt(93).without("state"), v1alpha1.StateAlarm, 31*time.Minute, "93")}, "Cloud Eye does not report whether the storage alarm of 2026-11-20T11:29:00Z is still in force. Next check in 1 minute", time.Minute, false},
		{ReasonNoData, nil, []Alarm{storageAt(93).without("evidence")}, "The storage alarm is in force, but Cloud Eye has no measurement to decide on. Next check in 1 minute", time.Minute, false},
		{ReasonNoData, func(c *Case) { c.Catalogue = nil }, cpu, "The cloud's flavors could not be read. Next check in 1 minute", time.Minute, false},
		{ReasonBelowThreshold, nil, []Alarm{storageAt(89)}, "Storage stays at 100 GB: 89.0 % used, alarm at 90 %. Next check in 1 minute", time.Minute, false},
		{ReasonBelowThreshold, nil, []Alarm{usageAt(v1alpha1.MetricCPU, 89.9)}, "The flavor stays rds.mysql.n1.2xlarge.4: 89.9 % CPU used, alarm at 90 %. Next check in 1 minute", time.Minute, false},
		{ReasonStaleEvidence, nil, []Alarm{storageAt(93).measured(31 * time.Minute)}, "The newest storage value is from 2026-11-20T11:29:00Z, which is too old to decide on. Next check in 1 minute", time.Minute, false},
		{ReasonChangePending, pendingVolume(time.Minute), disk, "Storage 100 → 110 GB is in progress. Next check in 30 seconds", recheck, false},
		{ReasonChangePending, pendingFlavor(9 * time.Minute), disk, "Flavor rds.mysql.n1.2xlarge.4 → rds.mysql.n1.4xlarge.4 is in progress. Next check in 30 seconds", recheck, false},
		{ReasonChangePending, func(c *Case) { c.Wanted.VolumeGB = 120 }, disk, "The Rds requests 120 GB and the cloud still has 100 GB. That change comes first. Next check in 30 seconds", recheck, false},
		{ReasonChangePending, func(c *Case) { c.Wanted.Flavor = "rds.mysql.n1.large.4" }, cpu, "The Rds requests rds.mysql.n1.large.4 and the cloud still has rds.mysql.n1.2xlarge.4. That change comes first. Next check in 30 seconds", recheck, false},
		{ReasonStalled, pendingVolume(15 * time.Minute), disk, "Storage 100 → 110 GB was requested at 2026-11-20T11:45:00Z and is not done, although the instance is ACTIVE. Check the operator. Next check in 30 seconds", recheck, false},
		{ReasonInstanceBusy, busy("MODIFYING"), disk, "The instance is in MODIFYING: storage grows once it is ACTIVE. Next check in 30 seconds", recheck, false},
		{ReasonInstanceBusy, busy("MODIFYING"), cpu, "The instance is in MODIFYING: the flavor changes once it is ACTIVE. Next check in 30 seconds", recheck, false},
		{ReasonInstanceBusy, activeFor(14 * time.Minute), cpu, "The flavor stays rds.mysql.n1.2xlarge.4 until the instance has been ACTIVE for 15 minutes. Next check in 1 minute", time.Minute, ends},
		{ReasonInstanceBusy, both(activeFor(time.Minute), cooldown(90)), cpu, "The flavor stays rds.mysql.n1.2xlarge.4 until the instance has been ACTIVE for 2 minutes. Next check in 30 seconds", recheck, ends},
		{ReasonStorageFull, both(busy(StatusStorageFull), pendingVolume(time.Minute)), disk, "The instance is in STORAGE FULL. Storage 100 → 110 GB was requested, and the cloud may refuse it. Next check in 30 seconds", recheck, false},
		{ReasonContested, both(rival, lostVolume), []Alarm{storageAt(92)}, "Field manager \"a-gitops-tool\" reset the size from 110 to 100 GB (once). Retrying at longer intervals. Next check in 30 seconds", 30 * time.Second, ends},
		{ReasonRefused, refusedOnce, disk, "The Kubernetes API refuses the patch (Storage 100 → 110 GB): not on Fridays. Next check in 30 seconds", 30 * time.Second, ends},
		{ReasonSoldOut, cloudRefuses(pendingFlavor(time.Minute), ReasonSoldOut), cpu, "The cloud has no capacity left (Flavor rds.mysql.n1.2xlarge.4 → rds.mysql.n1.4xlarge.4): in its words. Next check in 1 minute", time.Minute, false},
		{ReasonAlarmInForce, cloudRefuses(pendingFlavor(time.Minute), ReasonSoldOut), disk, "Storage 100 → 110 GB: 93.1 % used, alarm at 90 %", 0, false},
		{ReasonQuotaExceeded, cloudRefuses(pendingVolume(time.Minute), ReasonQuotaExceeded), disk, "The cloud's quota does not allow the change (Storage 100 → 110 GB): in its words. Next check in 1 minute", time.Minute, false},
		{ReasonPaymentRequired, cloudRefuses(pendingVolume(time.Minute), ReasonPaymentRequired), disk, "The cloud makes no changes until the account is paid (Storage 100 → 110 GB): in its words. Next check in 1 minute", time.Minute, false},
		{ReasonNotPermitted, cloudRefuses(pendingVolume(time.Minute), ReasonNotPermitted), disk, "The credentials do not permit the change (Storage 100 → 110 GB): in its words. Next check in 1 minute", time.Minute, false},
		{ReasonInstanceBusy, cloudRefuses(pendingVolume(time.Minute), ReasonInstanceBusy), disk, "The cloud is busy with the instance (Storage 100 → 110 GB): in its words. Next check in 30 seconds", recheck, false},
		{ReasonStorageFull, cloudRefuses(both(busy(StatusStorageFull), pendingVolume(time.Minute)), ReasonStorageFull), disk, "The cloud refuses the change while the storage is full (Storage 100 → 110 GB): in its words. Next check in 1 minute", time.Minute, false},
		{ReasonCloudRefused, cloudRefuses(pendingVolume(time.Minute), ReasonCloudRefused), disk, "The cloud refuses the change (Storage 100 → 110 GB): in its words. Next check in 1 minute", time.Minute, false},
		{ReasonJobFailed, cloudRefuses(pendingVolume(time.Minute), ReasonJobFailed), disk, "The cloud started the change and failed (Storage 100 → 110 GB): in its words. Next check in 1 minute", time.Minute, false},
		{Reason(CloudUnreachable), cloudRefuses(pendingVolume(time.Minute), CloudUnreachable), disk, "The cloud gave no clear answer to the request (Storage 100 → 110 GB): in its words. Next check in 10 seconds", 10 * time.Second, false},
		{ReasonInstanceUnknown, func(c *Case) { c.Instance, c.NoRds = nil, true }, disk, "The cloud has no instance with the id in spec.instanceID. Next check in 30 seconds", recheck, false},
		{ReasonStalled, runningFor(time.Hour), disk, "Storage 100 → 110 GB has been in progress since 2026-11-20T11:00:00Z, and the cloud's job j1 has not ended. Contact the cloud's support. Next check in 30 seconds", recheck, false},
		{ReasonCauseNotData, func(c *Case) {
			c.Spec.Storage.CauseMaxGB = new(int32(100))
			c.Status.Cause = &v1alpha1.Cause{Name: v1alpha1.CauseWAL, Message: "41 GB of it are WAL: growing does not fix this", Time: *seconds(noon())}
		}, []Alarm{storageAt(92)}, "Storage stays at 100 GB: 92.0 % used, and spec.storage.causeMaxGB is 100. 41 GB of it are WAL: growing does not fix this. Next check in 1 minute", time.Minute, false},
		{ReasonCapReached, steps(10, 100), disk, "Storage stays at 100 GB: 93.1 % used, but spec.storage.maxGB is 100", 0, false},
		{ReasonCapReached, func(c *Case) { c.Spec.Flavor.MaxVCPUs = new(int32(8)) }, cpu, "No larger flavor: rds.mysql.n1.4xlarge.4 is above the caps of 8 vCPUs and 128 GB", 0, false},
		{ReasonNoLargerFlavor, func(c *Case) { c.Catalogue = c.Catalogue[:min(3, len(c.Catalogue))] }, cpu, "No larger flavor: the cloud has none above rds.mysql.n1.2xlarge.4 for this instance. Next check in 5 minutes", 5 * time.Minute, false},
		{ReasonSoldOut, soldOut("eu-de-02"), cpu, "No larger flavor: rds.mysql.n1.4xlarge.4 is sold out in eu-de-02. Next check in 5 minutes", 5 * time.Minute, false},
		{ReasonSoldOut, zoneState("eu-de-02", "unsupported"), cpu, "No larger flavor: rds.mysql.n1.4xlarge.4 is unsupported in eu-de-02. Next check in 5 minutes", 5 * time.Minute, false},
		{ReasonSoldOut, zoneState("eu-de-02", ""), cpu, "No larger flavor: rds.mysql.n1.4xlarge.4 is not sold in eu-de-02. Next check in 5 minutes", 5 * time.Minute, false},
		{ReasonReplicaTooSmall, replica("PostgreSQL"), cpu, "rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB) is larger than the read replica reader (8 vCPUs, 32 GB): enlarge the replica first. Next check in 5 minutes", 5 * time.Minute, false},
		{ReasonCooldown, changed(23*time.Minute, "99.0"), cpu, "The flavor changed at 2026-11-20T11:37:00Z, and the cooldown is 1 hour. Next check at 2026-11-20T12:37:00Z", 37 * time.Minute, ends},
		{ReasonBudgetSpent, both(changed(3*time.Hour, "99.0"), changed(20*time.Hour, "99.0")), memory, "The flavor changed 2 times in 24 hours, as often as spec.flavor.maxChangesPerDay allows. Next check at 2026-11-20T16:00:00Z", 4 * time.Hour, ends},
		{ReasonBudgetSpent, both(changed(3*time.Hour, "99.0"), daily(1)), memory, "The flavor changed once in 24 hours, as often as spec.flavor.maxChangesPerDay allows. Next check at 2026-11-21T09:00:00Z", 21 * time.Hour, ends},
		{ReasonNoEffect, both(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "97.0")), cpu, "The last two larger flavors did not reduce CPU, which is at 95.0 % again. The autopilot tries no third one unless the spec changes. Next check at 2026-11-25T00:00:00Z", 7*24*time.Hour - 60*time.Hour, ends},
		{ReasonContested, both(changed(2*time.Hour, "99.0"), undone), cpu, "Field manager \"a-gitops-tool\" replaced flavor rds.mysql.n1.2xlarge.4 by rds.mysql.n1.xlarge.4. The flavor stays for 7 days unless the spec changes. Next check at 2026-11-27T12:00:00Z", 7 * 24 * time.Hour, false},
		{ReasonContested, both(both(changed(2*time.Hour, "99.0"), undone), func(c *Case) { c.OtherWriter = "" }), cpu, "Another writer replaced flavor rds.mysql.n1.2xlarge.4 by rds.mysql.n1.xlarge.4. The flavor stays for 7 days unless the spec changes. Next check at 2026-11-27T12:00:00Z", 7 * 24 * time.Hour, false},
		{ReasonContested, both(both(changed(50*time.Hour, "99.0"), undone), contestedFor(48*time.Hour)), cpu, "Field manager \"a-gitops-tool\" replaced flavor rds.mysql.n1.2xlarge.4 by rds.mysql.n1.xlarge.4. The flavor stays for 7 days unless the spec changes. Next check at 2026-11-25T12:00:00Z", 5 * 24 * time.Hour, ends},
		{ReasonRolledBack, both(changed(3*time.Hour, "99.0"), rolledBackFor(2*time.Hour)), cpu, "The cloud reverted the flavor from rds.mysql.n1.2xlarge.4 to rds.mysql.n1.xlarge.4 at 2026-11-20T10:00:00Z, although the Rds requested the former. The flavor stays for 24 hours. Next check at 2026-11-21T10:00:00Z", 22 * time.Hour, ends},
		{ReasonIOBound, onlyIfItHelps(enginePostgreSQL, waitsForDisk()), cpu, "The flavor stays rds.mysql.n1.2xlarge.4: 95.0 % CPU used, alarm at 90 %. The I/O is at 98 %, and the CPU waits for it 70 % of the time, so a larger flavor does not help (spec.flavor.onlyIfItHelps). Next check in 5 minutes", 5 * time.Minute, false},
		{ReasonLockBound, onlyIfItHelps(engineMySQL, Series{mysqlLockWaits: lastHour(9)}), cpu, "The flavor stays rds.mysql.n1.2xlarge.4: 95.0 % CPU used, alarm at 90 %. 9 sessions wait for locks, and the instance has 8 vCPUs, so a larger flavor does not help (spec.flavor.onlyIfItHelps). Next check in 5 minutes", 5 * time.Minute, false},
		{ReasonMemoryNotShort, onlyIfItHelps(engineMySQL, enoughMemory()), []Alarm{usageAt(v1alpha1.MetricMemory, 95)}, "The flavor stays rds.mysql.n1.2xlarge.4: 95.0 % memory used, alarm at 90 %. No memory is swapped, and the buffer pool has a stable hit ratio of 100 %, so a larger flavor does not help (spec.flavor.onlyIfItHelps). Next check in 5 minutes", 5 * time.Minute, false},
		{ReasonFleetBrake, func(c *Case) { c.FleetBusy = true }, cpu, "The flavor waits, because as many flavors as --max-flavor-changes allows are changing in the cluster. Next check in 1 minute", time.Minute, false},
		{ReasonOutsideWindow, inWindow("Sat", "01:00", "05:00"), cpu, "The window is closed. The flavor change is kept until it opens. Next check at 2026-11-21T01:00:00Z", 13 * time.Hour, ends},
	}
}

type sentence struct {
	reason Reason
	alter  func(*Case)
	alarms []Alarm
	says   string
	again  time.Duration
	ends   bool // by time alone, when it is looked at again
}

func TestEveryReasonHasItsMessageAndNextCheck(t *testing.T) {
	said := map[Reason]bool{}
	for _, tc := range sentences() {
		said[tc.reason] = true
		t.Run(string(tc.reason)+": "+tc.says, func(t *testing.T) {
			c := quiet()
			if tc.alter != nil {
				tc.alter(&c)
			}
			c.Alarms = tc.alarms
			v := Decide(c)
			if len(v.Decisions) == 0 {
				t.Fatal("no decision")
			}
			if d := v.Decisions[0]; d.Reason != tc.reason || d.Message != tc.says {
				t.Errorf("%s: %q\nwant %s: %q", d.Reason, d.Message, tc.reason, tc.says)
			}
			if v.RequeueAfter != tc.again {
				t.Errorf("looking again in %s, want %s", v.RequeueAfter, tc.again)
			}
			if !tc.ends {
				return
			}
			if early := Decide(c.later(tc.again - time.Second)).Decisions[0]; early.Reason != tc.reason {
				t.Errorf("a second earlier it is %s: %s", early.Reason, early.Message)
			}
			if then := Decide(c.later(tc.again)).Decisions[0]; then.Reason == tc.reason {
				t.Errorf("then it is still %s: %s", then.Reason, then.Message)
			}
		})
	}
	for _, r := range reasons(t) {
		if !said[r] {
			t.Errorf("no sentence of %s was read", r)
		}
	}
}

// reasons are the codes of decisions in the source, so that none is forgotten.
func reasons(t *testing.T) []Reason {
	t.Helper()
	source, err := os.ReadFile("reason.go")
	if err != nil {
		t.Fatal(err)
	}
	var all []Reason
	for _, m := range regexp.MustCompile(`Reason\w+\s+Reason = "(\w+)"`).FindAllSubmatch(source, -1) {
		switch r := Reason(m[1]); r {
		case ReasonNearCap, ReasonCapAhead, ReasonCapSoon, ReasonVolumeDoubled, ReasonReplicaSmaller, ReasonRuleSilent: // warnings, see TestUpdateWarnings, TestCapIsWarnedOfTwice, TestSmallerReplicaIsWarnedOf and TestFullVolumeGrowsWhenItsRuleIsSilent
		case ReasonStatusNotStored, ReasonInternalError: // of failed checks, see the controller
		default:
			all = append(all, r)
		}
	}
	if len(all) < 24 {
		t.Fatalf("only %d reasons found", len(all))
	}
	return all
}

// later is the same case that much later, measured anew.
func (c Case) later(d time.Duration) Case {
	c.Now = c.Now.Add(d)
	c.Alarms = append([]Alarm(nil), c.Alarms...)
	for i := range c.Alarms {
		c.Alarms[i].Evidence.Time = c.Alarms[i].Evidence.Time.Add(d)
	}
	return c
}

func steps(stepGB, maxGB int32) func(*Case) {
	return func(c *Case) { c.Spec.Storage.StepGB, c.Spec.Storage.MaxGB = stepGB, maxGB }
}

func recommend(c *Case) { c.Mode = v1alpha1.ModeRecommend }

func daily(n int32) func(*Case) { return func(c *Case) { c.Spec.Flavor.MaxChangesPerDay = n } }

func lostVolume(c *Case) {
	c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "100", To: "110", Outcome: v1alpha1.OutcomeLost, CompletionTime: ago(30 * time.Second)}}
}

func rival(c *Case) { c.OtherWriter = "a-gitops-tool" }

func refusedOnce(c *Case) {
	c.Status.Pending = intentTo(v1alpha1.KindVolume, "100", "110", time.Minute)
	c.Status.Pending.Refusal = &v1alpha1.Refusal{Count: 1, Time: ago(30 * time.Second), Message: "not on Fridays"}
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 seconds", time.Second: "1 second", 29500 * time.Millisecond: "30 seconds", time.Minute: "1 minute", 61 * time.Second: "2 minutes",
		59*time.Minute + time.Second: "1 hour", time.Hour: "1 hour", 90 * time.Minute: "1 hour 30 minutes", 24 * time.Hour: "24 hours",
		48 * time.Hour: "2 days", 61*time.Hour + time.Minute: "2 days 14 hours", 7*24*time.Hour - time.Nanosecond: "7 days",
	} {
		if got := durationText(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func TestDescribeChange(t *testing.T) {
	at := ago(4 * time.Minute)
	ours := v1alpha1.Change{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "100", To: "110", Outcome: v1alpha1.OutcomeCompleted, DecisionTime: &at, CompletionTime: ago(0)}
	lost, theirs := ours, ours
	lost.Outcome, lost.Kind, lost.From, lost.To = v1alpha1.OutcomeLost, v1alpha1.KindFlavor, "a", "b"
	theirs.By = v1alpha1.ByOther
	for want, ch := range map[string]v1alpha1.Change{
		"Storage 100 → 110 GB is done, 4 minutes after the decision":                         ours,
		"Flavor a → b is lost: the Rds no longer requests it, and the cloud did not make it": lost,
		"Storage 100 → 110 GB: changed by another writer":                                    theirs,
	} {
		if got := DescribeChange(ch); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
