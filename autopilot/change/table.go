// SPDX-License-Identifier: Apache-2.0

// Package change is the life of a change: its states, the one table that moves it from state to state, and the questions
// about the list of changes. It is pure. It must not know why a change is made, how it is requested, or what the cloud and
// Kubernetes look like: callers translate what they see into Seen.
package change

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// Patience is how long an idle instance may lack a change before it is overdue. The cloud usually needs 5 to 15 minutes.
	Patience = 15 * time.Minute
	// SettleTime is how much younger than the end of a job a list of instances must be, because a list may be old.
	SettleTime = 2 * time.Minute
)

// Reasons of the refusals that this package enters. They are codes of the reference of reasons.
const (
	JobFailed = "JobFailed"
	Stalled   = "Stalled"
	NoAnswer  = "CloudUnreachable"
)

// Event is what has happened to a change.
type Event int

const (
	Checked   Event = iota // a check has read the instance and, while the change is pending, the spec of the Rds
	Allowed                // the guards allow the request
	Unsent                 // the request was certainly not sent
	Rejected               // the request was clearly refused
	Accepted               // the cloud has started a job
	Unneeded               // no alarm needs it, another target is requested, or autopilot does not act any more
	Overtaken              // a larger size is requested
)

// Seen is what is seen of one change. After an event other than Checked, what a check sees is not set.
type Seen struct {
	Event  Event
	Now    time.Time
	HasRds bool // its operator applies the change; without an Rds the service asks the cloud

	// RequestTime is that of the attempt whose answer this is. An answer moves only that attempt.
	RequestTime *metav1.MicroTime
	Before      v1alpha1.Change // what the change was before that attempt; without a state if there was none
	JobID       string          // of the started job
	Reason      string          // of the refusal; empty if the API server refuses
	Message     string          // the text of the refusal, or of the failed job
	Failures    int32           // attempts of that kind that have failed in a row before this change

	Has        bool          // the cloud has it: a volume at least its size, a flavor exactly and, while it is pending, ACTIVE
	HasLeft    bool          // the cloud has another size or flavor, and it had this one at the last check
	IsNew      bool          // the cloud has exactly this size or flavor, and it had not at the last check
	IsAtFrom   bool          // the cloud has what the change started from
	IsSmaller  bool          // the spec of the Rds requests a smaller flavor or, without an Rds, the cloud has one
	IsChanging bool          // the cloud is changing the instance
	Idle       time.Duration // how long the instance is ready for a change and lacks this one, as two lists since the request show
	IsNewest   bool          // no newer entry is about the same size or flavor
	IsLast     bool          // it is our last flavor that counts as a start

	SpecHas      bool // the spec of the Rds requests it: a volume at least its size, a flavor exactly
	SpecRead     bool // the spec was read from the API server
	WasAccepted  bool // the API server has accepted the patch of this attempt
	JobRuns      bool // the cloud says that its job runs
	JobIsOver    bool // its job has ended, and the instance was read at least SettleTime later
	JobHasFailed bool
}

// Row is one transition. The first row that fits moves a change.
type Row struct {
	From []v1alpha1.ChangeState // empty for a change that does not exist yet
	Kind v1alpha1.ChangeKind    // empty for both
	With string                 // who applies the change: Both, Operator or Cloud
	Seen string                 // what is seen, for people
	To   v1alpha1.ChangeState   // empty: what it was before the attempt
	when func(v1alpha1.Change, Seen) bool
}

// Values of Row.With.
const (
	Both     = ""
	Operator = "an Rds"
	Cloud    = "`apply: Cloud`"
)

// Table returns all transitions, in their order.
func Table() []Row {
	const (
		requested, started, refused  = v1alpha1.StateRequested, v1alpha1.StateStarted, v1alpha1.StateRefused
		completed, failed, lost      = v1alpha1.StateCompleted, v1alpha1.StateFailed, v1alpha1.StateLost
		replaced, reverted, withdraw = v1alpha1.StateReplaced, v1alpha1.StateReverted, v1alpha1.StateWithdrawn
		volume, flavor               = v1alpha1.KindVolume, v1alpha1.KindFlavor
	)
	type states = []v1alpha1.ChangeState
	is := func(e Event) func(v1alpha1.Change, Seen) bool {
		return func(_ v1alpha1.Change, s Seen) bool { return s.Event == e }
	}
	isReset := func(_ v1alpha1.Change, s Seen) bool { return s.SpecRead && !s.SpecHas && !s.IsChanging && !s.Has }
	isOverdue := func(_ v1alpha1.Change, s Seen) bool { return s.Idle >= Patience && !s.IsChanging }
	isRecent := func(ch v1alpha1.Change, s Seen) bool { return s.Now.Sub(ch.EndTime.Time) < DaySpan }
	return []Row{
		{states{"", refused}, "", Both, "the guards allow it, after a refusal once its time has come: stored before the request",
			requested, is(Allowed)},
		{states{requested}, volume, Cloud, "the same size is needed, and the attempt has had no answer for 1, 2, 4 … 15 minutes: sent again",
			requested, is(Allowed)},
		{states{requested}, volume, Both, "a larger size takes its place", lost, is(Overtaken)},
		{states{requested, started}, "", Both, "the cloud has it", completed, func(_ v1alpha1.Change, s Seen) bool { return s.Has }},
		{states{lost, failed, replaced}, "", Both, "the cloud has exactly it after all, and had not at the last check; within 24 hours, and no newer entry is about it",
			completed, func(ch v1alpha1.Change, s Seen) bool { return s.Has && s.IsNew && s.IsNewest && isRecent(ch, s) }},
		{states{requested}, "", Both, "nothing was sent, certainly: a conflict, a read that failed, a window that closed, an instance that is changing or not at `from`",
			"", is(Unsent)},
		{states{requested}, "", Both, "a clear refusal, after no attempt without an answer",
			refused, func(ch v1alpha1.Change, s Seen) bool {
				return s.Event == Rejected && (ch.Refusal == nil || ch.Refusal.Reason != NoAnswer)
			}},
		{states{requested}, "", Operator, "the spec had it and has less or something else; the instance is not changing and does not have it",
			replaced, func(ch v1alpha1.Change, s Seen) bool { return isReset(ch, s) && (ch.SeenTime != nil || s.WasAccepted) }},
		{states{requested}, "", Operator, "the same 2 minutes after the request, and the spec was never seen with it",
			lost, func(ch v1alpha1.Change, s Seen) bool {
				return isReset(ch, s) && s.Now.Sub(ch.RequestTime.Time) >= SettleTime
			}},
		{states{requested}, "", Cloud, "the cloud's answer has a job", started, is(Accepted)},
		{states{requested}, flavor, Cloud, "the instance is changing, later than the request",
			started, func(ch v1alpha1.Change, s Seen) bool { return s.IsChanging && s.Now.After(ch.RequestTime.Time) }},
		{states{requested}, "", Cloud, "15 minutes of `ACTIVE` without it, in two lists", lost, isOverdue},
		{states{started}, "", Both, "its job has ended and, in a list 2 minutes younger, nothing is changing: the job failed, or the instance is at `from`",
			failed, func(_ v1alpha1.Change, s Seen) bool {
				return s.JobIsOver && !s.IsChanging && (s.JobHasFailed || s.IsAtFrom)
			}},
		{states{started}, "", Both, "the same, and the instance is at something else",
			completed, func(_ v1alpha1.Change, s Seen) bool { return s.JobIsOver && !s.IsChanging }},
		{states{started}, "", Both, "no job of it is known to run, and 15 minutes of `ACTIVE` without it",
			failed, func(ch v1alpha1.Change, s Seen) bool { return !s.JobRuns && isOverdue(ch, s) }},
		{states{refused}, "", Both, "not needed, off, `Recommend`, or another target", withdraw, is(Unneeded)},
		{states{completed}, flavor, Both, "a smaller one is requested in the spec or, without an Rds, is in the cloud, within 24 hours",
			replaced, func(ch v1alpha1.Change, s Seen) bool { return s.IsLast && s.IsSmaller && isRecent(ch, s) }},
		{states{completed}, flavor, Operator, "the cloud has another one, and had it at the last check; the spec requests it; within 24 hours",
			reverted, func(ch v1alpha1.Change, s Seen) bool { return s.IsLast && s.HasLeft && s.SpecHas && isRecent(ch, s) }},
	}
}

// fits reports whether the row moves the change.
func (r Row) fits(ch v1alpha1.Change, s Seen) bool {
	isAnswer := s.Event == Unsent || s.Event == Rejected || s.Event == Accepted
	switch {
	case !slices.Contains(r.From, ch.State), r.Kind != "" && r.Kind != ch.Kind:
	case r.With == Operator && !s.HasRds, r.With == Cloud && s.HasRds:
	case isAnswer && !s.RequestTime.Equal(ch.RequestTime):
	default:
		return r.when(ch, s)
	}
	return false
}

// Move returns the change as it is after what is seen, and whether the table has a row for that. A state that is empty
// afterwards means that the change does not exist any more. Move modifies nothing that ch refers to.
func Move(ch v1alpha1.Change, s Seen) (next v1alpha1.Change, moved bool) {
	for _, r := range Table() {
		if r.fits(ch, s) {
			return enter(ch, r.To, s), true
		}
	}
	return notice(ch, s), false
}

// notice enters what a check sees of a pending change without moving it: that the spec requests it, and that the instance
// changes.
func notice(ch v1alpha1.Change, s Seen) v1alpha1.Change {
	if !IsPending(ch) || s.Event != Checked {
		return ch
	}
	if ch.SeenTime == nil && s.HasRds && (s.SpecHas && s.SpecRead || s.WasAccepted) {
		ch.SeenTime = micro(s.Now)
	}
	if ch.StartTime == nil && ch.Kind == v1alpha1.KindFlavor && s.IsChanging && s.Now.After(ch.RequestTime.Time) {
		ch.StartTime = micro(s.Now)
	}
	return ch
}

// enter returns the change in a state that it has just reached.
func enter(ch v1alpha1.Change, to v1alpha1.ChangeState, s Seen) v1alpha1.Change {
	last := ch
	ch.State = to
	switch to {
	case "":
		return s.Before
	case v1alpha1.StateRequested:
		if last.State == to {
			ch.Refusal = newRefusal(last, s, NoAnswer, "the cloud has not answered")
		}
		ch.RequestTime, ch.SeenTime, ch.StartTime, ch.JobID, ch.EndTime = micro(s.Now), nil, nil, "", metav1.MicroTime{}
		return ch
	case v1alpha1.StateStarted:
		ch.JobID, ch.StartTime, ch.Refusal = s.JobID, micro(s.Now), nil
		return ch
	case v1alpha1.StateRefused:
		ch.Refusal = newRefusal(last, s, s.Reason, s.Message)
		return ch
	}
	ch.EndTime, ch.Refusal = *micro(s.Now), nil
	switch {
	case to == v1alpha1.StateWithdrawn:
		ch.Refusal = last.Refusal
	case to == v1alpha1.StateLost && !s.HasRds: // a size in an Rds is requested again as contested
		ch.Refusal = newRefusal(last, s, NoAnswer, "there is no trace of it")
	case to != v1alpha1.StateFailed:
	case s.JobHasFailed:
		ch.Refusal = newRefusal(last, s, JobFailed, s.Message)
	case s.JobIsOver:
		ch.Refusal = newRefusal(last, s, JobFailed, fmt.Sprintf("job %s has ended, and the instance is as before", ch.JobID))
	default:
		ch.Refusal = newRefusal(last, s, Stalled, "it has not arrived, and no job of it is known to run")
	}
	return ch
}

func micro(t time.Time) *metav1.MicroTime {
	return new(metav1.NewMicroTime(t.Truncate(time.Microsecond)))
}
