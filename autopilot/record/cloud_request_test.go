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

// runningJob returns a case with a growth that a job of the cloud has been making for 10 minutes.
func runningJob(noRds bool) autopilot.Case {
	c := cases.Quiet()
	cases.RunningFor(10 * time.Minute)(&c)
	c.Instance.Status, c.NoRds = autopilot.StatusActive, noRds
	return c
}

func TestFollowUpEndsAnIntentByItsJob(t *testing.T) {
	job := func(j autopilot.Job) func(*autopilot.Case) {
		return func(c *autopilot.Case) { c.Jobs = map[string]autopilot.Job{"j1": j} }
	}
	done, running, unknown := job(autopilot.Job{State: autopilot.JobDone}), job(autopilot.Job{}), job(autopilot.Job{State: autopilot.JobUnknown})
	for name, tc := range map[string]struct {
		alter   func(*autopilot.Case)
		outcome v1alpha1.Outcome // empty if the change continues
		reason  string           // of the refusal
		asks    bool             // the cloud is requested again at once
	}{
		"job runs":              {cases.Both(running, cases.InStatus("MODIFYING")), "", "", false},
		"job cannot be read":    {func(*autopilot.Case) {}, "", "", false},
		"job is done":           {cases.Both(done, cases.Sized(110)), v1alpha1.OutcomeCompleted, "", false},
		"job without an effect": {done, "", "JobFailed", false},
		"done, and the disk is full again": {cases.Both(cases.Sized(110), cases.InStatus(autopilot.StatusStorageFull)),
			v1alpha1.OutcomeCompleted, "", false},
		"done, and the list of instances is older": {
			job(autopilot.Job{State: autopilot.JobDone, EndTime: cases.Noon().Add(-time.Minute)}), "", "", false},
		"job has failed":                       {job(autopilot.Job{State: autopilot.JobFailed, Message: "no disk"}), "", "JobFailed", false},
		"unknown for less than 2 minutes":      {cases.Both(jobSince(time.Minute), unknown), "", "", false},
		"unknown":                              {unknown, "", "", true},
		"nothing happens for 15 minutes":       {jobSince(15 * time.Minute), "", "Stalled", false},
		"STORAGE FULL for 15 minutes":          {cases.Both(jobSince(15*time.Minute), cases.InStatus(autopilot.StatusStorageFull)), "", "Stalled", false},
		"without an effect, and STORAGE FULL":  {cases.Both(cases.InStatus(autopilot.StatusStorageFull), done), "", "JobFailed", false},
		"ACTIVE for 59 minutes, but job runs":  {cases.Both(jobSince(59*time.Minute), running), "", "", false},
		"ACTIVE for an hour, but the job runs": {cases.Both(jobSince(time.Hour), running), "", "Stalled", false},
	} {
		for _, noRds := range []bool{false, true} {
			c := runningJob(noRds)
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
				t.Errorf("%s, without an Rds %t: requested again %t", name, noRds, asks)
			}
		}
	}

	c := runningJob(false)
	c.Wanted.VolumeGB = 100
	f := FollowUp(c)
	if len(f.Ended) > 0 || f.Status.Pending == nil {
		t.Fatalf("a reverted Rds ends a running job: ended %+v, pending %+v", f.Ended, f.Status.Pending)
	}
	if !mayHaveStarted(*f.Status.Pending, c.Spec.Apply) {
		t.Error("the running job does not count as in progress")
	}
	c.Jobs = map[string]autopilot.Job{"j1": {State: autopilot.JobFailed, Message: "no disk"}}
	if f = FollowUp(c); len(f.Failed) != 1 || f.Failed[0].Refusal.Message != "no disk" {
		t.Errorf("the failed job is not reported: %+v", f)
	}
}

// jobSince returns the alteration that the job began that long ago.
func jobSince(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) { began := cases.Ago(age); c.Status.Pending.JobTime = &began }
}

// The list of instances may be older than the state of the job. Without the wait, the change would look reverted.
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
			// A change counts from its start, which may be days after the decision.
			if ch.By == v1alpha1.ByAutopilot && !ch.StartTime.Equal(c.Status.Pending.JobTime) {
				t.Errorf("%s: started at %s, want the time of the job", name, ch.StartTime)
			}
		}
		if !slices.Equal(got, tc.want) || (f.Status.Pending == nil) != (tc.want != nil) || len(f.Failed) > 0 {
			t.Errorf("%s: outcomes %v, pending %+v, failed %+v", name, got, f.Status.Pending, f.Failed)
		}
	}
}
