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

func TestFollowUpEndsAChangeByItsJob(t *testing.T) {
	job := func(j autopilot.Job) func(*autopilot.Case) {
		return func(c *autopilot.Case) { c.Jobs = map[string]autopilot.Job{"j1": j} }
	}
	done, running := job(autopilot.Job{State: autopilot.JobDone}), job(autopilot.Job{})
	for name, tc := range map[string]struct {
		alter   func(*autopilot.Case)
		outcome v1alpha1.Outcome // empty if the change continues
		reason  string           // of the failure
	}{
		"job runs":              {cases.Both(running, cases.InStatus("MODIFYING")), "", ""},
		"job cannot be read":    {func(*autopilot.Case) {}, "", ""},
		"job is done":           {cases.Both(done, cases.Sized(110)), v1alpha1.OutcomeCompleted, ""},
		"job without an effect": {done, v1alpha1.OutcomeFailed, "JobFailed"},
		"done, and the disk is full again": {cases.Both(cases.Sized(110), cases.InStatus(autopilot.StatusStorageFull)),
			v1alpha1.OutcomeCompleted, ""},
		"done, and the list of instances is older": {
			job(autopilot.Job{State: autopilot.JobDone, EndTime: cases.Noon().Add(-time.Minute)}), "", ""},
		"job has failed":                       {job(autopilot.Job{State: autopilot.JobFailed, Message: "no disk"}), v1alpha1.OutcomeFailed, "JobFailed"},
		"nothing happens for 15 minutes":       {jobSince(15 * time.Minute), v1alpha1.OutcomeFailed, "Stalled"},
		"STORAGE FULL for 15 minutes":          {cases.Both(jobSince(15*time.Minute), cases.InStatus(autopilot.StatusStorageFull)), v1alpha1.OutcomeFailed, "Stalled"},
		"without an effect, and STORAGE FULL":  {cases.Both(cases.InStatus(autopilot.StatusStorageFull), done), v1alpha1.OutcomeFailed, "JobFailed"},
		"ACTIVE for 59 minutes, but job runs":  {cases.Both(jobSince(59*time.Minute), running), "", ""},
		"ACTIVE for an hour, but the job runs": {cases.Both(jobSince(time.Hour), running), v1alpha1.OutcomeFailed, "Stalled"},
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
				if r := f.Ended[0].Refusal; r != nil {
					reason = r.Reason
				}
			}
			if outcome != tc.outcome || reason != tc.reason || (outcome == "") != (pendingOf(f.Status) != nil) {
				t.Errorf("%s, without an Rds %t: outcome %q, reason %q, changes %+v", name, noRds, outcome, reason, f.Status.Changes)
			}
			if v := verdictOf(cases.With(c, cases.StorageAt(93))); v.Change != nil && outcome != v1alpha1.OutcomeCompleted {
				t.Errorf("%s, without an Rds %t: requested again at once", name, noRds)
			}
		}
	}
}

// jobSince returns the alteration that the job began that long ago.
func jobSince(age time.Duration) func(*autopilot.Case) {
	return func(c *autopilot.Case) { began := cases.Ago(age); c.Status.Changes[0].StartTime = &began }
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
		"the cloud has reverted it": {3 * time.Minute, "rds.mysql.n1.2xlarge.4", []v1alpha1.Outcome{v1alpha1.OutcomeCompleted, v1alpha1.OutcomeReverted}},
		"its clock is hours ahead":  {-3 * time.Hour, "rds.mysql.n1.2xlarge.4", []v1alpha1.Outcome{v1alpha1.OutcomeCompleted, v1alpha1.OutcomeReverted}},
	} {
		c := cases.Quiet()
		cases.PendingFlavor(10 * time.Minute)(&c)
		c.Spec.Apply, c.Instance.Flavor = v1alpha1.ApplyCloud, tc.has
		c.Status.Changes[0].JobID, c.Status.Changes[0].StartTime = "j1", new(cases.Ago(9*time.Minute))
		c.Jobs = map[string]autopilot.Job{"j1": {State: autopilot.JobDone, EndTime: cases.Noon().Add(-tc.ended)}}
		f := FollowUp(c)
		var got []v1alpha1.Outcome
		for _, ch := range f.Status.Changes {
			if !ch.IsPending() {
				got = append(got, ch.Outcome)
			}
			// A change counts from its start, which may be days after the decision.
			if ch.By == v1alpha1.ByAutopilot && !ch.StartTime.Equal(c.Status.Changes[0].StartTime) {
				t.Errorf("%s: started at %s, want the time of the job", name, ch.StartTime)
			}
		}
		if !slices.Equal(got, tc.want) || (pendingOf(f.Status) == nil) != (tc.want != nil) {
			t.Errorf("%s: outcomes %v, changes %+v", name, got, f.Status.Changes)
		}
	}
}
