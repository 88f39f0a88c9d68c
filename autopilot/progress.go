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
	// answerAfter is how long after the decision a flavor whose request the service did not survive may be requested again.
	answerAfter = 3 * time.Minute
	// JobPatience is when a job of the cloud is reported as stalled. The cloud's documents give 5 to 15 minutes.
	JobPatience = time.Hour
	// statusModifying is the beginning of an instance's status while its size or flavor changes.
	statusModifying = "MODIFYING"
)

// Progress is how far a pending change of ours has come. These are all states:
//
//	state      what is known                                               decided again  cooldown, budget  place
//	Unstarted  never requested, or the last request was refused            yes            no                no
//	Unclear    the last request got no clear answer                        yes            no                yes
//	Started    the Rds requests it, or with apply: Cloud the cloud has
//	           accepted it, or may be making it right now, or may have
//	           begun it while the service did not run                      no             yes               yes
//	Completed  the cloud has it, whatever the spec requests by now         ended          yes               no
//	Lost       the Rds no longer requests it, and the cloud has not got it ended          yes               no
//	Undone     the cloud had the flavor and reverted it                    ended          yes               no
//
// RecordedProgress derives the first three from the status alone, Case.Progress all from what the cloud has, too.
type Progress int

// The states.
const (
	Unstarted Progress = iota
	Unclear
	Started
	Completed
	Lost
	Undone
)

// HasStarted reports whether the change has started or ended, so that no check decides it again.
func (p Progress) HasStarted() bool { return p >= Started }

// RecordedProgress returns the progress of a pending change as its record shows it, and since when: Started since the
// Rds requests it or, with apply: Cloud, since the cloud accepted the request; Unclear since the last request without a
// clear answer; Unstarted since the decision.
func RecordedProgress(ch v1alpha1.Change, apply v1alpha1.Apply) (p Progress, since time.Time) {
	switch {
	case ch.StartTime != nil:
		return Started, ch.StartTime.Time
	case apply != v1alpha1.ApplyCloud && ch.RequestTime != nil:
		return Started, ch.RequestTime.Time
	case ch.Refusal == nil: // the service may have stopped during the request
		return Unclear, ch.DecisionTime.Time
	case ch.Refusal.Reason == CloudUnreachable:
		return Unclear, ch.Refusal.Time.Time
	}
	return Unstarted, ch.DecisionTime.Time
}

// Progress returns the progress of a pending change, from the record, what the Rds requests and what the cloud has.
// What the cloud has started goes on even if the Rds no longer requests it. While the instance is not known, every
// change counts as started.
func (c Case) Progress(ch *v1alpha1.Change) Progress {
	if c.Instance == nil {
		return Started
	}
	recorded, since := RecordedProgress(*ch, c.Spec.Apply)
	isFlavor, isCloud := ch.Kind == v1alpha1.KindFlavor, c.Spec.Apply == v1alpha1.ApplyCloud
	isModifying := strings.HasPrefix(c.Instance.Status, statusModifying)
	isSent := ch.RequestTime != nil || c.IsAccepted(ch)
	isUnclear := isCloud && recorded == Unclear && c.Now.Sub(since) < StallAfter
	has, had := c.Instance.VolumeGB >= Gigabytes(ch.To), false
	if isFlavor {
		has = c.Instance.Flavor == ch.To
		had = c.Status.Instance != nil && c.Status.Instance.Flavor == ch.To
	}
	switch {
	case has && (!isFlavor || c.Instance.Status == StatusActive),
		isFlavor && c.IsJobDone(ch): // another writer may have changed the flavor since
		return Completed
	case !has && had && c.Wanted.Flavor == ch.To:
		return Undone
	case has, ch.StartTime != nil, isUnclear && isModifying, c.IsUnanswered(ch):
		return Started
	case !isCloud && (c.IsRequested(ch) || isSent && isModifying): // the operator may have been faster than the reset
		return Started
	case isUnclear:
		return Unclear
	case c.NoRds, c.IsRequested(ch), !isSent:
		return Unstarted
	}
	return Lost
}

// IsUnanswered reports whether the service stopped during the request for a flavor, minutes ago. The job of the cloud may
// have failed since, so the change counts as started.
func (c Case) IsUnanswered(ch *v1alpha1.Change) bool {
	return c.Spec.Apply == v1alpha1.ApplyCloud && ch.Kind == v1alpha1.KindFlavor && ch.StartTime == nil && ch.Refusal == nil &&
		ch.Generation == c.Generation && c.Now.Sub(ch.DecisionTime.Time) >= answerAfter
}

// IsRequested reports whether the Rds requests the flavor of a change, or at least its size.
func (c Case) IsRequested(ch *v1alpha1.Change) bool { return !c.NoRds && c.Wanted.Includes(*ch) }

// IsAccepted reports whether the API server has accepted our patch for the change.
func (c Case) IsAccepted(ch *v1alpha1.Change) bool {
	return c.Accepted != nil && c.Accepted.Kind == ch.Kind && c.Accepted.To == ch.To &&
		c.Accepted.DecisionTime.Equal(ch.DecisionTime)
}

// Unstarted returns our pending change of that kind that each check decides again, or nil.
func (c Case) Unstarted(kind v1alpha1.ChangeKind) *v1alpha1.Change {
	if ch := c.Status.Pending(kind); ch != nil && !c.Progress(ch).HasStarted() {
		return ch
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

// IsJobDone reports whether the cloud has completed the job of a change, and the instance was read long enough after that
// to show the result. The list of instances may be older than the state of the job.
func (c Case) IsJobDone(ch *v1alpha1.Change) bool {
	job := c.Jobs[ch.JobID]
	if ch.JobID == "" || job.State != JobDone || !c.Instance.Measurable() {
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
	if ch.StartTime != nil && ch.StartTime.After(since) {
		since = ch.StartTime.Time
	}
	return c.Now.Sub(since) >= SettleTime
}

// StartedAt returns when the change started. If it has not, it returns when it was decided.
func StartedAt(ch v1alpha1.Change) time.Time {
	if p, since := RecordedProgress(ch, v1alpha1.ApplyOperator); p == Started {
		return since
	}
	return ch.DecisionTime.Time
}

// IsStalled reports whether a pending change should be completed by now.
func IsStalled(ch v1alpha1.Change, inst *v1alpha1.Instance, now time.Time) bool {
	return Overdue(StartedAt(ch), inst, now)
}

// Overdue reports whether a change that was requested at that time should be completed by now: 15 minutes after the
// later of its start and the instance becoming ACTIVE.
func Overdue(since time.Time, inst *v1alpha1.Instance, now time.Time) bool {
	if inst == nil || inst.Status != StatusActive {
		return false
	}
	if inst.ActiveSince != nil && inst.ActiveSince.After(since) {
		since = inst.ActiveSince.Time
	}
	return !now.Before(since.Add(StallAfter))
}
