// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// sentences returns a row for each reason and each way to come to it: what a person reads, and when the next check is.
// A guard that ends by time alone holds until exactly then.
func sentences() []sentence {
	cpu, memory := []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricMemory, 95.25)}
	disk := []autopilot.Alarm{cases.StorageAt(93.1)}
	over := autopilot.Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}
	const recheck, ends = 30 * time.Second, true
	return []sentence{
		{autopilot.ReasonAlarmInForce, nil, disk, "Storage 100 → 110 GB: 93.1 % used, alarm at 85 %", 0, false},
		{autopilot.ReasonAlarmInForce, cases.Steps(50, 120), disk, "Storage 100 → 120 GB: 93.1 % used, alarm at 85 %; 150 GB are needed, clamped to spec.storage.maxGB", 0, false},
		{autopilot.ReasonAlarmInForce, nil, cpu, "Flavor rds.mysql.n1.2xlarge.4 (8 vCPUs, 32 GB) → rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB): 95.0 % CPU used, alarm at 90 %", 0, false},
		{autopilot.ReasonAlarmInForce, nil, memory, "Flavor rds.mysql.n1.2xlarge.4 (8 vCPUs, 32 GB) → rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB): 95.2 % memory used, alarm at 90 %", 0, false},
		{autopilot.ReasonAlarmInForce, cases.Deferred("cpu", "memory"), nil, "Flavor rds.mysql.n1.2xlarge.4 (8 vCPUs, 32 GB) → rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB): CPU was in alarm at 2026-11-18T13:00:00Z, and the window is open; memory was in alarm at 2026-11-18T13:00:00Z, and the window is open", 0, false},
		{autopilot.ReasonRecommend, cases.Recommend, disk, "Storage 100 → 110 GB: 93.1 % used, alarm at 85 % (recommended only)", 0, false},
		{autopilot.ReasonPolicyInvalid, cases.Steps(15, 4000), disk, "The policy is invalid, so the autopilot ignores the storage alarm: spec.storage.stepGB: 15 is not a multiple of 10", 0, false},
		{autopilot.ReasonNotEnabled, off(autopilot.ReasonNotEnabled, "The mode is Off"), disk, "The mode is Off", 0, false},
		{autopilot.ReasonNotEnabled, off(autopilot.ReasonNotEnabled, "The Rds is being deleted"), disk, "The Rds is being deleted", 0, false},
		{autopilot.ReasonNotEnabled, func(c *autopilot.Case) { c.Spec.Flavor.CPU.Enabled = new(false) }, cpu, "The CPU alarm is switched off: spec.flavor.cpu.enabled is false", 0, false},
		{autopilot.ReasonInstanceUnknown, func(c *autopilot.Case) { c.Instance = nil }, disk, "The cloud has no instance with the id in status.id of the Rds", recheck, false},
		{autopilot.ReasonInstanceUnknown, func(c *autopilot.Case) { c.Instance, c.NoRds, c.NodeOf = nil, true, "1234in01" }, disk, "The id in spec.instanceID is that of a node. Use the id of its instance: 1234in01", recheck, false},
		{autopilot.ReasonInstanceUnknown, func(c *autopilot.Case) { c.ClaimedBy = "shop/orders" }, disk, "shop/orders names the same instance and was first, so it alone manages the instance. Remove the id from one of the two objects", recheck, false},
		{autopilot.ReasonNotAllowed, off(autopilot.ReasonNotAllowed, "--allowed-instances does not allow it"), disk, "--allowed-instances does not allow it", 0, false},
		{autopilot.ReasonAlarmCleared, nil, []autopilot.Alarm{cases.Signalled(over, v1alpha1.StateAlarm, 3*time.Minute, "93")}, "The storage alarm of 2026-11-20T11:57:00Z (93 %) had ended before the check: Cloud Eye reports ok", 0, false},
		{autopilot.ReasonNoData, nil, []autopilot.Alarm{cases.Signalled(cases.WithoutState(cases.StorageAt(93)), v1alpha1.StateAlarm, 31*time.Minute, "93")}, "Cloud Eye does not report whether the storage alarm of 2026-11-20T11:29:00Z is still in force", time.Minute, false},
		{autopilot.ReasonNoData, nil, []autopilot.Alarm{cases.WithoutEvidence(cases.StorageAt(93))}, "The storage alarm is in force, but Cloud Eye has no measurement to decide on", time.Minute, false},
		{autopilot.ReasonNoData, func(c *autopilot.Case) { c.Catalogue = nil }, cpu, "The cloud's flavors could not be read", time.Minute, false},
		{autopilot.ReasonBelowThreshold, nil, []autopilot.Alarm{cases.StorageAt(84)}, "Storage stays at 100 GB: 84.0 % used, alarm at 85 %", time.Minute, false},
		{autopilot.ReasonBelowThreshold, nil, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 89.9)}, "The flavor stays rds.mysql.n1.2xlarge.4: 89.9 % CPU used, alarm at 90 %", time.Minute, false},
		{autopilot.ReasonStaleEvidence, nil, []autopilot.Alarm{cases.MeasuredAgo(cases.StorageAt(93), 31*time.Minute)}, "The newest storage value is from 2026-11-20T11:29:00Z, which is too old to decide on", time.Minute, false},
		{autopilot.ReasonChangePending, cases.PendingVolume(time.Minute), disk, "Storage 100 → 110 GB is in progress", recheck, false},
		{autopilot.ReasonChangePending, cases.PendingFlavor(9 * time.Minute), disk, "Flavor rds.mysql.n1.2xlarge.4 → rds.mysql.n1.4xlarge.4 is in progress", recheck, false},
		{autopilot.ReasonChangePending, func(c *autopilot.Case) { c.Wanted.VolumeGB = 120 }, disk, "The Rds requests 120 GB and the cloud still has 100 GB. That change comes first", recheck, false},
		{autopilot.ReasonChangePending, func(c *autopilot.Case) { c.Wanted.Flavor = "rds.mysql.n1.large.4" }, cpu, "The Rds requests rds.mysql.n1.large.4 and the cloud still has rds.mysql.n1.2xlarge.4. That change comes first", recheck, false},
		{autopilot.ReasonStalled, cases.PendingVolume(15 * time.Minute), disk, "Storage 100 → 110 GB was requested at 2026-11-20T11:45:00Z and is not done, although the instance is ACTIVE. Check the operator", recheck, false},
		{autopilot.ReasonStalled, unfulfilled(volume, "105"), []autopilot.Alarm{cases.StorageAt(92)}, "The Rds has requested 105 GB since 2026-11-20T11:45:00Z and the cloud still has 100 GB, although the instance is ACTIVE. Check the operator, or correct spec.volumesize", recheck, false},
		{autopilot.ReasonStalled, unfulfilled(flavor, "rds.mysql.n1.large.4"), cpu, "The Rds has requested rds.mysql.n1.large.4 since 2026-11-20T11:45:00Z and the cloud still has rds.mysql.n1.2xlarge.4, although the instance is ACTIVE. Check the operator, or correct spec.flavorref", recheck, false},
		{autopilot.ReasonInstanceBusy, cases.InStatus("MODIFYING"), disk, "The instance is in MODIFYING: storage grows once it is ACTIVE", recheck, false},
		{autopilot.ReasonInstanceBusy, cases.InStatus("MODIFYING"), cpu, "The instance is in MODIFYING: the flavor changes once it is ACTIVE", recheck, false},
		{autopilot.ReasonInstanceBusy, cases.ActiveFor(14 * time.Minute), cpu, "The flavor stays rds.mysql.n1.2xlarge.4 until the instance has been ACTIVE for 15 minutes", time.Minute, ends},
		{autopilot.ReasonInstanceBusy, cases.Both(cases.ActiveFor(time.Minute), cases.Cooldown(90)), cpu, "The flavor stays rds.mysql.n1.2xlarge.4 until the instance has been ACTIVE for 2 minutes", recheck, ends},
		{autopilot.ReasonStorageFull, cases.Both(cases.InStatus(autopilot.StatusStorageFull), cases.PendingVolume(time.Minute)), disk, "The instance is in STORAGE FULL. Storage 100 → 110 GB was requested, and the cloud may refuse it", recheck, false},
		{autopilot.ReasonContested, cases.LostVolume, []autopilot.Alarm{cases.StorageAt(92)}, "Field manager \"a-gitops-tool\" reset the size from 110 to 100 GB (once). Retrying at longer intervals", 30 * time.Second, ends},
		{autopilot.ReasonRefused, cases.RefusedPatch, disk, "The Kubernetes API refuses the patch (Storage 100 → 110 GB): not on Fridays", 30 * time.Second, ends},
		{autopilot.ReasonSoldOut, cases.CloudRefuses(cases.PendingFlavor(time.Minute), autopilot.ReasonSoldOut), cpu, "The cloud does not offer the requested size or flavor (Flavor rds.mysql.n1.2xlarge.4 → rds.mysql.n1.4xlarge.4): in its words", time.Minute, false},
		{autopilot.ReasonAlarmInForce, cases.CloudRefuses(cases.PendingFlavor(time.Minute), autopilot.ReasonSoldOut), disk, "Storage 100 → 110 GB: 93.1 % used, alarm at 85 %", 0, false},
		{autopilot.ReasonQuotaExceeded, cases.CloudRefuses(cases.PendingVolume(time.Minute), autopilot.ReasonQuotaExceeded), disk, "The cloud's quota does not allow the change (Storage 100 → 110 GB): in its words", time.Minute, false},
		{autopilot.ReasonPaymentRequired, cases.CloudRefuses(cases.PendingVolume(time.Minute), autopilot.ReasonPaymentRequired), disk, "The cloud makes no changes until the account is paid (Storage 100 → 110 GB): in its words", time.Minute, false},
		{autopilot.ReasonNotPermitted, cases.CloudRefuses(cases.PendingVolume(time.Minute), autopilot.ReasonNotPermitted), disk, "The credentials do not permit the change (Storage 100 → 110 GB): in its words", time.Minute, false},
		{autopilot.ReasonInstanceBusy, cases.CloudRefuses(cases.PendingVolume(time.Minute), autopilot.ReasonInstanceBusy), disk, "The cloud is busy with the instance (Storage 100 → 110 GB): in its words", recheck, false},
		{autopilot.ReasonStorageFull, cases.CloudRefuses(cases.Both(cases.InStatus(autopilot.StatusStorageFull), cases.PendingVolume(time.Minute)), autopilot.ReasonStorageFull), disk, "The cloud refuses the change while the storage is full (Storage 100 → 110 GB): in its words", time.Minute, false},
		{autopilot.ReasonCloudRefused, cases.CloudRefuses(cases.PendingVolume(time.Minute), autopilot.ReasonCloudRefused), disk, "The cloud refuses the change (Storage 100 → 110 GB): in its words", time.Minute, false},
		{autopilot.ReasonJobFailed, cases.CloudRefuses(cases.PendingVolume(time.Minute), autopilot.ReasonJobFailed), disk, "The cloud started the change and failed (Storage 100 → 110 GB): in its words", time.Minute, false},
		{autopilot.Reason(autopilot.CloudUnreachable), cases.CloudRefuses(cases.PendingVolume(time.Minute), autopilot.CloudUnreachable), disk, "The cloud gave no clear answer to the request (Storage 100 → 110 GB): in its words", 10 * time.Second, false},
		{autopilot.ReasonInstanceUnknown, func(c *autopilot.Case) { c.Instance, c.NoRds = nil, true }, disk, "The cloud has no instance with the id in spec.instanceID", recheck, false},
		{autopilot.ReasonStalled, cases.RunningFor(time.Hour), disk, "Storage 100 → 110 GB has been in progress since 2026-11-20T11:00:00Z, and the cloud's job j1 has not ended. Contact the cloud's support", recheck, false},
		{autopilot.ReasonCapReached, cases.Steps(10, 100), disk, "Storage stays at 100 GB: 93.1 % used, but spec.storage.maxGB is 100", 0, false},
		{autopilot.ReasonCapReached, func(c *autopilot.Case) { c.Spec.Flavor.MaxVCPUs = new(int32(8)) }, cpu, "No larger flavor: rds.mysql.n1.4xlarge.4 is above the caps of 8 vCPUs and 128 GB", 0, false},
		{autopilot.ReasonNoLargerFlavor, func(c *autopilot.Case) { c.Catalogue = c.Catalogue[:min(3, len(c.Catalogue))] }, cpu, "No larger flavor: the cloud has none above rds.mysql.n1.2xlarge.4 for this instance", 5 * time.Minute, false},
		{autopilot.ReasonSoldOut, cases.SoldOut("eu-de-02"), cpu, "No larger flavor: rds.mysql.n1.4xlarge.4 is sold out in eu-de-02", 5 * time.Minute, false},
		{autopilot.ReasonSoldOut, cases.ZoneState("eu-de-02", "unsupported"), cpu, "No larger flavor: rds.mysql.n1.4xlarge.4 is unsupported in eu-de-02", 5 * time.Minute, false},
		{autopilot.ReasonSoldOut, cases.ZoneState("eu-de-02", ""), cpu, "No larger flavor: rds.mysql.n1.4xlarge.4 is not sold in eu-de-02", 5 * time.Minute, false},
		{autopilot.ReasonReplicaTooSmall, cases.WithReplica("PostgreSQL"), cpu, "rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB) is larger than the read replica reader (8 vCPUs, 32 GB): enlarge the replica first", 5 * time.Minute, false},
		{autopilot.ReasonCooldown, cases.Changed(23*time.Minute, "99.0"), cpu, "The flavor changed at 2026-11-20T11:37:00Z, and the cooldown is 1 hour", 37 * time.Minute, ends},
		{autopilot.ReasonBudgetSpent, cases.Both(cases.Changed(3*time.Hour, "99.0"), cases.Changed(20*time.Hour, "99.0")), memory, "The flavor changed 2 times in 24 hours, as often as spec.flavor.maxChangesPerDay allows", 4 * time.Hour, ends},
		{autopilot.ReasonBudgetSpent, cases.Both(cases.Changed(3*time.Hour, "99.0"), daily(1)), memory, "The flavor changed once in 24 hours, as often as spec.flavor.maxChangesPerDay allows", 21 * time.Hour, ends},
		{autopilot.ReasonNoEffect, cases.Both(cases.Changed(30*time.Hour, "94.0"), cases.Changed(60*time.Hour, "97.0")), cpu, "The last two larger flavors did not reduce CPU, which is at 95.0 % again. The autopilot tries no third one unless the spec changes", 7*24*time.Hour - 60*time.Hour, ends},
		{autopilot.ReasonContested, cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.Restored), cpu, "Field manager \"a-gitops-tool\" replaced flavor rds.mysql.n1.2xlarge.4 by rds.mysql.n1.xlarge.4. The flavor stays for 7 days unless the spec changes", 7 * 24 * time.Hour, false},
		{autopilot.ReasonContested, cases.Both(cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.Restored), func(c *autopilot.Case) { c.FlavorWriter = "" }), cpu, "Another writer replaced flavor rds.mysql.n1.2xlarge.4 by rds.mysql.n1.xlarge.4. The flavor stays for 7 days unless the spec changes", 7 * 24 * time.Hour, false},
		{autopilot.ReasonContested, cases.Both(cases.Both(cases.Changed(50*time.Hour, "99.0"), cases.Restored), cases.MadeSmaller(48*time.Hour)), cpu, "Field manager \"a-gitops-tool\" replaced flavor rds.mysql.n1.2xlarge.4 by rds.mysql.n1.xlarge.4. The flavor stays for 7 days unless the spec changes", 5 * 24 * time.Hour, ends},
		{autopilot.ReasonRolledBack, cases.Both(cases.Changed(3*time.Hour, "99.0"), cases.RolledBack(2*time.Hour)), cpu, "The cloud reverted the flavor from rds.mysql.n1.2xlarge.4 to rds.mysql.n1.xlarge.4 at 2026-11-20T10:00:00Z, although the Rds requested the former. The flavor stays for 24 hours", 22 * time.Hour, ends},
		{autopilot.ReasonFleetBrake, func(c *autopilot.Case) { c.HasPlace = false }, cpu, "The flavor waits, because as many flavors as --max-flavor-changes allows are changing in the cluster", time.Minute, false},
		{autopilot.ReasonOutsideWindow, cases.InWindow("Sat", "01:00", "05:00"), cpu, "The window is closed. The flavor change is kept until it opens", 13 * time.Hour, ends},
	}
}

type sentence struct {
	reason autopilot.Reason
	alter  func(*autopilot.Case)
	alarms []autopilot.Alarm
	says   string
	again  time.Duration
	ends   bool // by time alone, at the next check
}

func TestEveryReasonHasItsMessageAndNextCheck(t *testing.T) {
	said := map[autopilot.Reason]bool{}
	for _, tc := range sentences() {
		said[tc.reason] = true
		t.Run(string(tc.reason)+": "+tc.says, func(t *testing.T) {
			c := cases.Quiet()
			if tc.alter != nil {
				tc.alter(&c)
			}
			c.Alarms = tc.alarms
			v := verdictOf(c)
			if len(v.Decisions) == 0 {
				t.Fatal("no decision")
			}
			if d := v.Decisions[0]; d.Reason != tc.reason || d.Message != tc.says {
				t.Errorf("%s: %q\nwant %s: %q", d.Reason, d.Message, tc.reason, tc.says)
			}
			if v.RequeueAfter != tc.again {
				t.Errorf("next check in %s, want %s", v.RequeueAfter, tc.again)
			}
			if !tc.ends {
				return
			}
			if early := verdictOf(cases.Later(c, tc.again-time.Second)).Decisions[0]; early.Reason != tc.reason {
				t.Errorf("a second earlier it is %s: %s", early.Reason, early.Message)
			}
			if then := verdictOf(cases.Later(c, tc.again)).Decisions[0]; then.Reason == tc.reason {
				t.Errorf("then it is still %s: %s", then.Reason, then.Message)
			}
		})
	}
	for _, g := range Table() {
		for _, r := range g.Reasons {
			if !said[r] {
				t.Errorf("no sentence of %s was read (%s)", r, g.Name)
			}
		}
	}
}

func off(r autopilot.Reason, message string) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Off = autopilot.Off{Reason: r, Message: message} }
}

// unfulfilled returns the alteration that the cloud has not made another writer's change for 15 minutes.
func unfulfilled(kind v1alpha1.ChangeKind, to string) func(*autopilot.Case) {
	return func(c *autopilot.Case) {
		if kind == volume {
			c.Wanted.VolumeGB = autopilot.Gigabytes(to)
		} else {
			c.Wanted.Flavor = to
		}
		c.Status.Unfulfilled = []v1alpha1.Unfulfilled{{Kind: kind, To: to, SinceTime: *autopilot.Seconds(c.Now.Add(-15 * time.Minute))}}
	}
}

func daily(n int32) func(*autopilot.Case) {
	return func(c *autopilot.Case) { c.Spec.Flavor.MaxChangesPerDay = n }
}
