// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// inCloud is a change of the volume that the cloud makes by a job.
func inCloud(noRds bool) autopilot.Case {
	c := cases.Quiet()
	cases.RunningFor(10 * time.Minute)(&c)
	c.Instance.Status, c.NoRds = autopilot.StatusActive, noRds
	return c
}

func TestFollowUpEndsAnIntentByItsJob(t *testing.T) {
	reverted := func(c *autopilot.Case) { c.Wanted.VolumeGB = 100 }
	justDone := autopilot.Job{State: autopilot.JobDone, EndTime: cases.Noon().Add(-time.Minute)}
	for name, tc := range map[string]struct {
		alter   func(*autopilot.Case)
		outcome v1alpha1.Outcome // of the change; empty: it goes on
		reason  string           // why it is not being made
		asks    bool             // the cloud, at once
	}{
		"it runs":           {func(c *autopilot.Case) { c.Instance.Status, c.Jobs = "MODIFYING", map[string]autopilot.Job{"j1": {}} }, "", "", false},
		"it cannot be read": {func(c *autopilot.Case) {}, "", "", false},
		"it is done": {func(c *autopilot.Case) {
			c.Instance.VolumeGB, c.Jobs = 110, map[string]autopilot.Job{"j1": {State: autopilot.JobDone}}
		}, v1alpha1.OutcomeCompleted, "", false},
		"it is done, and the disk full again": {func(c *autopilot.Case) { c.Instance.VolumeGB, c.Instance.Status = 110, autopilot.StatusStorageFull }, v1alpha1.OutcomeCompleted, "", false},
		"it is done without effect":           {func(c *autopilot.Case) { c.Jobs = map[string]autopilot.Job{"j1": {State: autopilot.JobDone}} }, "", "JobFailed", false},
		"it is done, and the list is older":   {func(c *autopilot.Case) { c.Jobs = map[string]autopilot.Job{"j1": justDone} }, "", "", false},
		"it has failed": {func(c *autopilot.Case) {
			c.Jobs = map[string]autopilot.Job{"j1": {State: autopilot.JobFailed, Message: "no disk"}}
		}, "", "JobFailed", false},
		"the cloud does not know it yet":        {cases.Both(jobSince(time.Minute), func(c *autopilot.Case) { c.Jobs = map[string]autopilot.Job{"j1": {State: autopilot.JobUnknown}} }), "", "", false},
		"the cloud knows it no more":            {func(c *autopilot.Case) { c.Jobs = map[string]autopilot.Job{"j1": {State: autopilot.JobUnknown}} }, "", "", true},
		"it does nothing for 15 minutes":        {cases.Both(jobSince(15*time.Minute), func(c *autopilot.Case) {}), "", "Stalled", false},
		"it does nothing, and the disk is full": {cases.Both(jobSince(15*time.Minute), cases.InStatus(autopilot.StatusStorageFull)), "", "Stalled", false},
		"it is done without effect, and full": {
			cases.Both(cases.InStatus(autopilot.StatusStorageFull), func(c *autopilot.Case) { c.Jobs = map[string]autopilot.Job{"j1": {State: autopilot.JobDone}} }), "", "JobFailed", false,
		},
		"it runs for 59 minutes, not to be seen": {cases.Both(jobSince(59*time.Minute), func(c *autopilot.Case) { c.Jobs = map[string]autopilot.Job{"j1": {}} }), "", "", false},
		"it runs for an hour, not to be seen":    {cases.Both(jobSince(time.Hour), func(c *autopilot.Case) { c.Jobs = map[string]autopilot.Job{"j1": {}} }), "", "Stalled", false},
	} {
		for _, noRds := range []bool{false, true} {
			c := inCloud(noRds)
			if noRds {
				c.Wanted = autopilot.Wanted{VolumeGB: c.Instance.VolumeGB, Flavor: c.Instance.Flavor}
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
			if asks := outcome == "" && verdictOf(cases.With(c, cases.StorageAt(93))).Intent != nil; asks != tc.asks {
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
	if !mayHaveStarted(*f.Status.Pending, c.Spec.Apply) {
		t.Error("and it no longer counts as in progress")
	}
	c.Jobs = map[string]autopilot.Job{"j1": {State: autopilot.JobFailed, Message: "no disk"}}
	if f = FollowUp(c); len(f.Failed) != 1 || f.Failed[0].Refusal.Message != "no disk" {
		t.Errorf("nobody hears that the job failed: %+v", f)
	}
}

func jobSince(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) { began := cases.Ago(age); c.Status.Pending.JobTime = &began }
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
		c := cases.Quiet()
		cases.PendingFlavor(10 * time.Minute)(&c)
		c.Spec.Apply, c.Instance.Flavor = v1alpha1.ApplyCloud, tc.has
		c.Status.Pending.JobID, c.Status.Pending.JobTime = "j1", new(cases.Ago(9*time.Minute))
		c.Jobs = map[string]autopilot.Job{"j1": {State: autopilot.JobDone, EndTime: cases.Noon().Add(-tc.ended)}}
		f := FollowUp(c)
		var got []v1alpha1.Outcome
		for _, ch := range f.Status.Changes {
			got = append(got, ch.Outcome)
			// A freeze of changes may lie between the decision and the start, from which a change counts.
			if ch.By == v1alpha1.ByAutopilot && !ch.StartTime.Equal(c.Status.Pending.JobTime) {
				t.Errorf("%s: started at %s, want the time of the job", name, ch.StartTime)
			}
		}
		if !slices.Equal(got, tc.want) || (f.Status.Pending == nil) != (tc.want != nil) || len(f.Failed) > 0 {
			t.Errorf("%s: outcomes %v, pending %+v, failed %+v", name, got, f.Status.Pending, f.Failed)
		}
	}
}
