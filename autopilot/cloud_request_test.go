// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
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
	reverted := func(c *Case) { c.Wanted.VolumeGB = 100 }
	justDone := Job{State: JobDone, EndTime: noon().Add(-time.Minute)}
	for name, tc := range map[string]struct {
		alter   func(*Case)
		outcome v1alpha1.Outcome // of the change; empty: it goes on
		reason  string           // why it is not being made
		asks    bool             // the cloud, at once
	}{
		"it runs":                               {func(c *Case) { c.Instance.Status, c.Jobs = "MODIFYING", map[string]Job{"j1": {}} }, "", "", false},
		"it cannot be read":                     {func(c *Case) {}, "", "", false},
		"it is done":                            {func(c *Case) { c.Instance.VolumeGB, c.Jobs = 110, map[string]Job{"j1": {State: JobDone}} }, v1alpha1.OutcomeCompleted, "", false},
		"it is done, and the disk full again":   {func(c *Case) { c.Instance.VolumeGB, c.Instance.Status = 110, StatusStorageFull }, v1alpha1.OutcomeCompleted, "", false},
		"it is done without effect":             {func(c *Case) { c.Jobs = map[string]Job{"j1": {State: JobDone}} }, "", "JobFailed", false},
		"it is done, and the list is older":     {func(c *Case) { c.Jobs = map[string]Job{"j1": justDone} }, "", "", false},
		"it has failed":                         {func(c *Case) { c.Jobs = map[string]Job{"j1": {State: JobFailed, Message: "no disk"}} }, "", "JobFailed", false},
		"the cloud knows it no more":            {func(c *Case) { c.Jobs = map[string]Job{"j1": {State: JobUnknown}} }, "", "", true},
		"it does nothing for 15 minutes":        {both(jobSince(15*time.Minute), func(c *Case) {}), "", "Stalled", false},
		"it does nothing, and the disk is full": {both(jobSince(15*time.Minute), busy(StatusStorageFull)), "", "Stalled", false},
		"it is done without effect, and full": {
			both(busy(StatusStorageFull), func(c *Case) { c.Jobs = map[string]Job{"j1": {State: JobDone}} }), "", "JobFailed", false,
		},
		"it runs for 59 minutes, not to be seen": {both(jobSince(59*time.Minute), func(c *Case) { c.Jobs = map[string]Job{"j1": {}} }), "", "", false},
		"it runs for an hour, not to be seen":    {both(jobSince(time.Hour), func(c *Case) { c.Jobs = map[string]Job{"j1": {}} }), "", "Stalled", false},
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
			if asks := outcome == "" && Decide(c.with(storageAt(93))).Intent != nil; asks != tc.asks {
				t.Errorf("%s, without an Rds %t: the cloud is asked %t", name, noRds, asks)
			}
		}
	}

	c := inCloud(false)
	reverted(&c)
	f := FollowUp(c)
	if len(f.Ended) > 0 || f.Status.Pending == nil {
		t.Fatalf("a reverted Rds hides a running job: ended %+v, pending %+v", f.Ended, f.Status.Pending)
	}
	if _, holds := MayHaveStarted(*f.Status.Pending, c.Spec.Apply); !holds {
		t.Error("and it no longer counts as in progress")
	}
	c.Jobs = map[string]Job{"j1": {State: JobFailed, Message: "no disk"}}
	if f = FollowUp(c); len(f.Failed) != 1 || f.Failed[0].Refusal.Message != "no disk" {
		t.Errorf("nobody hears that the job failed: %+v", f)
	}
}

func jobSince(age time.Duration) func(*Case) {
	return func(c *Case) { began := ago(age); c.Status.Pending.JobTime = &began }
}

// The state of a job is newer than the list of instances. Reported at once, the change would look reverted.
func TestJobOfAFlavorIsDoneOnceTheListShowsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		ended time.Duration
		has   string
		want  []v1alpha1.Outcome // newest first
	}{
		"the list is older":         {time.Minute, "rds.mysql.n1.2xlarge.4", nil},
		"the list shows it":         {time.Minute, "rds.mysql.n1.4xlarge.4", []v1alpha1.Outcome{v1alpha1.OutcomeCompleted}},
		"the cloud has reverted it": {3 * time.Minute, "rds.mysql.n1.2xlarge.4", []v1alpha1.Outcome{v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeCompleted}},
		"its clock is hours ahead":  {-3 * time.Hour, "rds.mysql.n1.2xlarge.4", []v1alpha1.Outcome{v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeCompleted}},
	} {
		c := quiet()
		pendingFlavor(10 * time.Minute)(&c)
		c.Spec.Apply, c.Instance.Flavor = v1alpha1.ApplyCloud, tc.has
		c.Status.Pending.JobID, c.Status.Pending.JobTime = "j1", &c.Status.Pending.DecisionTime
		c.Jobs = map[string]Job{"j1": {State: JobDone, EndTime: noon().Add(-tc.ended)}}
		f := FollowUp(c)
		var got []v1alpha1.Outcome
		for _, ch := range f.Status.Changes {
			got = append(got, ch.Outcome)
		}
		if !slices.Equal(got, tc.want) || (f.Status.Pending == nil) != (tc.want != nil) || len(f.Failed) > 0 {
			t.Errorf("%s: outcomes %v, pending %+v, failed %+v", name, got, f.Status.Pending, f.Failed)
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
