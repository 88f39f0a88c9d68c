// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// inCloud is a change of the volume that the cloud makes by a job.
func inCloud(noRds bool) Case {
	c := quiet()
	runningFor(10 * time.Minute)(&c)
	c.Instance.Status, c.NoRds = StatusActive, noRds
	return c
}

func TestFollowUpEndsAnIntentByItsJob(t *testing.T) {
	for name, tc := range map[string]struct {
		alter   func(*Case)
		outcome v1alpha1.Outcome // of the change; empty: it goes on
		reason  string           // why it is not being made
		asks    bool             // the cloud, at once
	}{
		"it runs":                             {func(c *Case) { c.Instance.Status, c.Jobs = "MODIFYING", map[string]Job{"j1": {}} }, "", "", false},
		"it cannot be read":                   {func(c *Case) {}, "", "", false},
		"it is done":                          {func(c *Case) { c.Instance.VolumeGB, c.Jobs = 110, map[string]Job{"j1": {State: JobDone}} }, v1alpha1.OutcomeCompleted, "", false},
		"it is done, and the disk full again": {func(c *Case) { c.Instance.VolumeGB, c.Instance.Status = 110, StatusStorageFull }, v1alpha1.OutcomeCompleted, "", false},
		"it is done without effect":           {func(c *Case) { c.Jobs = map[string]Job{"j1": {State: JobDone}} }, "", "JobFailed", false},
		"it has failed":                       {func(c *Case) { c.Jobs = map[string]Job{"j1": {JobFailed, "no disk"}} }, "", "JobFailed", false},
		"the cloud knows it no more":          {func(c *Case) { c.Jobs = map[string]Job{"j1": {State: JobUnknown}} }, "", "", true},
		"it does nothing for 15 minutes":      {func(c *Case) { began := ago(15 * time.Minute); c.Status.Pending.JobTime = &began }, "", "", true},
	} {
		for _, noRds := range []bool{false, true} {
			c := inCloud(noRds)
			if noRds {
				c.Wanted = Wanted{c.Instance.VolumeGB, c.Instance.Flavor}
			}
			tc.alter(&c)
			f := FollowUp(c)
			c.Status = f.Status
			outcome, reason := v1alpha1.Outcome(""), ""
			if len(f.Ended) > 0 {
				outcome = f.Ended[0].Outcome
			}
			if p := f.Status.Pending; p != nil && p.Refused() != nil {
				reason = p.Refused().Reason
			}
			if outcome != tc.outcome || reason != tc.reason || (reason != "") != (len(f.Failed) > 0) || (outcome == "") != (f.Status.Pending != nil) {
				t.Errorf("%s, without an Rds %t: outcome %q, reason %q, pending %+v", name, noRds, outcome, reason, f.Status.Pending)
			}
			if asks := c.NextCloudRequest() != nil; asks != tc.asks {
				t.Errorf("%s, without an Rds %t: the cloud is asked %t", name, noRds, asks)
			}
		}
	}
}

// The cloud is asked for nothing that the policy, or somebody else, has overtaken.
func TestNextCloudRequestIsNilUnlessTheChangeIsDue(t *testing.T) {
	waits := func(pending func(time.Duration) func(*Case), alter func(*Case)) Case {
		c := quiet()
		c.Spec.Apply = v1alpha1.ApplyCloud
		pending(time.Minute)(&c)
		c.Status.Pending.AskedTime = &c.Status.Pending.DecisionTime
		alter(&c)
		return c
	}
	nothing := func(*Case) {}
	if waits(pendingVolume, nothing).NextCloudRequest() == nil || waits(pendingFlavor, nothing).NextCloudRequest() == nil {
		t.Fatal("the cloud is asked for nothing at all")
	}
	for name, alter := range map[string]func(*Case){
		"the operator is to do it": func(c *Case) { c.Spec.Apply = v1alpha1.ApplyOperator },
		"recommend only":           func(c *Case) { c.Mode = v1alpha1.ModeRecommend },
		"off":                      func(c *Case) { c.Mode = v1alpha1.ModeOff },
		"it is being deleted":      func(c *Case) { c.Enabled = false },
		"shared":                   func(c *Case) { c.ClaimedBy = "shop/orders" },
		"no instance":              func(c *Case) { c.Instance = nil },
		"busy":                     busy("MODIFYING"),
		"a job runs":               func(c *Case) { c.Status.Pending.JobID, c.Status.Pending.JobTime = "j1", c.Status.Pending.AskedTime },
		"refused a moment ago":     func(c *Case) { c.Status.Pending = c.refused(c.Status.Pending, ReasonQuotaExceeded, "no") },
		"the Rds asks no more":     func(c *Case) { c.Wanted = Wanted{c.Instance.VolumeGB, c.Instance.Flavor} },
		"it has it":                func(c *Case) { c.Instance.VolumeGB, c.Instance.Flavor = 110, "rds.mysql.n1.4xlarge.4" },
	} {
		if i := waits(pendingVolume, alter).NextCloudRequest(); i != nil {
			t.Errorf("%s: asked for %+v", name, i)
		}
		if i := waits(pendingFlavor, alter).NextCloudRequest(); i != nil {
			t.Errorf("%s: asked for %+v", name, i)
		}
	}
	if i := waits(pendingVolume, func(c *Case) { c.Spec.Storage.MaxGB = 100 }).NextCloudRequest(); i != nil {
		t.Errorf("a lower cap: asked for %+v", i)
	}
	for name, alter := range map[string]func(*Case){
		"the window is closed":                inWindow("Sat", "01:00", "05:00"),
		"a lower cap":                         func(c *Case) { c.Generation++; c.Spec.Flavor.MaxVCPUs = new(int32(8)) },
		"another policy and no catalogue":     func(c *Case) { c.Generation++; c.Catalogue = nil },
		"somebody has changed it, and back":   func(c *Case) { contestedFor(time.Second)(c) },
		"somebody has made something else of": func(c *Case) { c.Instance.Flavor = "rds.mysql.n1.8xlarge.4" },
	} {
		if i := waits(pendingFlavor, alter).NextCloudRequest(); i != nil {
			t.Errorf("%s: asked for %+v", name, i)
		}
	}
}

// The cloud has failed for two hours, and begins once more; the listing of instances may be from just before that.
func TestIsStalledCountsFromTheBeginOfTheJob(t *testing.T) {
	for since, want := range map[time.Duration]bool{10 * time.Second: false, 14 * time.Minute: false, 15 * time.Minute: true} {
		began, asked := ago(since), ago(2*time.Hour)
		i := v1alpha1.Intent{AskedTime: &asked, JobID: "j7", JobTime: &began}
		inst := &v1alpha1.Instance{Status: StatusActive, ActiveSince: &metav1.Time{Time: ago(3 * time.Hour).Time}}
		if got := IsStalled(i, inst, noon()); got != want {
			t.Errorf("a job of %v: overdue %t, want %t", since, got, want)
		}
		if i.JobTime = nil; !IsStalled(i, inst, noon()) {
			t.Error("without a job it is not overdue after two hours")
		}
	}
}
