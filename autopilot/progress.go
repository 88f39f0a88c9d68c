// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// StallAfter is when a requested change counts as stalled. The cloud usually needs 5 to 15 minutes.
	StallAfter = 15 * time.Minute
	// JobPatience is when a job of the cloud is reported as stalled. The cloud's documents give 5 to 15 minutes.
	JobPatience = time.Hour
	// statusModifying is the beginning of an instance's status while its size or flavor changes.
	statusModifying = "MODIFYING"
)

// Progress is how far a recorded change has come. These are all states:
//
//	state      what is known                                               decided again  cooldown, budget  place
//	Unstarted  recorded; never requested, or the last request was refused  yes            no                no
//	Unclear    the last request got no clear answer                        yes            no                yes
//	Started    the Rds requests it, or with apply: Cloud the cloud has
//	           accepted it, or may be making it right now                  no             yes               yes
//	Completed  the cloud has it, whatever the spec requests by now         ended          yes               no
//	Lost       the Rds no longer requests it, and the cloud has not got it ended          yes               no
//
// RecordedProgress derives the first three from the status alone, Case.Progress all five from what the cloud has, too.
type Progress int

// The states.
const (
	Unstarted Progress = iota
	Unclear
	Started
	Completed
	Lost
)

// HasStarted reports whether the change has started or ended, so that no check decides it again.
func (p Progress) HasStarted() bool { return p >= Started }

// RecordedProgress returns the progress of a change as its record shows it, and since when: Started since the API
// server or, with apply: Cloud, the cloud accepted the request; Unclear since the last request without a clear answer;
// Unstarted since the decision.
func RecordedProgress(i v1alpha1.Intent, apply v1alpha1.Apply) (p Progress, since time.Time) {
	switch {
	case i.JobTime != nil:
		return Started, i.JobTime.Time
	case apply != v1alpha1.ApplyCloud && i.AskedTime != nil:
		return Started, i.AskedTime.Time
	case i.Refusal == nil: // the service may have stopped during the request
		return Unclear, i.DecisionTime.Time
	case i.Refusal.Reason == CloudUnreachable:
		return Unclear, i.Refusal.Time.Time
	}
	return Unstarted, i.DecisionTime.Time
}

// Progress returns the progress of a recorded change, from the record, what the Rds requests and what the cloud has.
// What the cloud has started goes on even if the Rds no longer requests it. While the instance is not known, every
// change counts as started.
func (c Case) Progress(i *v1alpha1.Intent) Progress {
	if c.Instance == nil {
		return Started
	}
	recorded, since := RecordedProgress(*i, c.Spec.Apply)
	isFlavor, isCloud := i.Kind == v1alpha1.KindFlavor, c.Spec.Apply == v1alpha1.ApplyCloud
	isUnclear := isCloud && recorded == Unclear && c.Now.Sub(since) < StallAfter
	has := c.Instance.VolumeGB >= Gigabytes(i.To)
	if isFlavor {
		has = c.Instance.Flavor == i.To
	}
	switch {
	case has && (!isFlavor || c.Instance.Status == StatusActive),
		isFlavor && c.IsJobDone(i): // another writer may have changed the flavor since
		return Completed
	case has, i.JobTime != nil, isCloud && (isUnclear || c.wasBusyWith(i)) && c.isModifying():
		return Started
	case c.IsRequested(i) && !isCloud:
		return Started
	case isUnclear:
		return Unclear
	case c.NoRds, c.IsRequested(i), i.AskedTime == nil && (!isFlavor || c.Wanted.Flavor == i.From):
		return Unstarted
	}
	return Lost
}

// IsRequested reports whether the Rds requests the intent's flavor, or at least its size.
func (c Case) IsRequested(i *v1alpha1.Intent) bool { return !c.NoRds && c.Wanted.Includes(*i) }

// isModifying reports whether the cloud is changing the instance's size or flavor.
func (c Case) isModifying() bool { return strings.HasPrefix(c.Instance.Status, statusModifying) }

// wasBusyWith reports whether the cloud refused the intent because it is busy, perhaps with this very change: an
// operator applies the Rds that requests it. As soon as the instance is ACTIVE without the change, it is unstarted.
func (c Case) wasBusyWith(i *v1alpha1.Intent) bool {
	r := i.Refusal
	return r != nil && r.Reason == string(ReasonInstanceBusy) && c.Now.Sub(r.Time.Time) < StallAfter && c.IsRequested(i)
}

// BusySince returns since when an operator may be making an intent that the cloud refused because it is busy. It
// returns zero if the Rds never requested the intent, or once the instance does not change any more.
func BusySince(i v1alpha1.Intent, inst *v1alpha1.Instance) time.Time {
	isBusy := i.Refusal != nil && i.Refusal.Reason == string(ReasonInstanceBusy) && i.AskedTime != nil
	if !isBusy || inst == nil || !strings.HasPrefix(inst.Status, statusModifying) {
		return time.Time{}
	}
	return i.Refusal.Time.Time
}

// UnstartedIntent returns the recorded intent of that kind that each check decides again, or nil.
func (c Case) UnstartedIntent(kind v1alpha1.ChangeKind) *v1alpha1.Intent {
	for _, p := range c.Status.Intents() {
		if p.Kind == kind && !c.Progress(p).HasStarted() {
			return p
		}
	}
	return nil
}

// JobState is the state of a job of the cloud.
type JobState int

// The states of a job.
const (
	JobRunning JobState = iota
	JobDone
	JobFailed
	JobUnknown // the cloud does not know the job, or no longer
)

// Job describes a change that the cloud has started.
type Job struct {
	State   JobState
	Message string    // the cloud's text, if the job failed
	EndTime time.Time // by the cloud's clock; zero if the job runs, or if the cloud does not tell
}

// IsJobDone reports whether the cloud has completed the intent's job, and the instance was read long enough after that
// to show the result. The list of instances may be older than the state of the job.
func (c Case) IsJobDone(i *v1alpha1.Intent) bool {
	job := c.Jobs[i.JobID]
	if i.JobID == "" || job.State != JobDone || !c.Instance.Measurable() {
		return false
	}
	since := job.EndTime
	if since.After(c.Now.Add(ClockSkew)) {
		since = c.Now.Add(-SettleTime) // one of both clocks is wrong
	}
	seen := c.Instance.Observed(c.Status.Instance, c.Now)
	if seen.ActiveSince != nil && seen.ActiveSince.After(since) {
		since = seen.ActiveSince.Time
	}
	if i.JobTime != nil && i.JobTime.After(since) {
		since = i.JobTime.Time
	}
	return c.Now.Sub(since) >= SettleTime
}

// StartedAt returns when the change started. If it has not, it returns when it was decided.
func StartedAt(i v1alpha1.Intent) time.Time {
	if p, since := RecordedProgress(i, v1alpha1.ApplyOperator); p == Started {
		return since
	}
	return i.DecisionTime.Time
}

// IsStalled reports whether an intent should be completed by now.
func IsStalled(i v1alpha1.Intent, inst *v1alpha1.Instance, now time.Time) bool {
	return Overdue(StartedAt(i), inst, now)
}

// Overdue reports whether a change that was requested at that time should be completed by now.
func Overdue(since time.Time, inst *v1alpha1.Instance, now time.Time) bool {
	at := StallsAt(since, inst)
	return !at.IsZero() && !now.Before(at)
}

// StallsAt returns when a change that started at that time is overdue: 15 minutes after the later of its start and the
// instance becoming ACTIVE. It returns zero if the instance is not ACTIVE.
func StallsAt(since time.Time, inst *v1alpha1.Instance) time.Time {
	if inst == nil || inst.Status != StatusActive {
		return time.Time{}
	}
	if inst.ActiveSince != nil && inst.ActiveSince.After(since) {
		since = inst.ActiveSince.Time
	}
	return since.Add(StallAfter)
}
