// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// DataRequeue is when missing data is checked again. Cloud Eye has one raw value a minute.
	DataRequeue = time.Minute
	// FoldEvery is how often the record of an unchanged decision is updated. Each update is a write to the API server.
	FoldEvery = 5 * time.Minute
)

// Action is the change of the Rds that a decision makes.
type Action string

// The actions.
const (
	ActionNone         Action = "None"
	ActionGrowVolume   Action = "GrowVolume"   // write spec.volumesize
	ActionChangeFlavor Action = "ChangeFlavor" // write spec.flavorref
)

// ActionFor returns the action that makes a change of that kind.
func ActionFor(kind v1alpha1.ChangeKind) Action {
	switch kind {
	case v1alpha1.KindVolume:
		return ActionGrowVolume
	case v1alpha1.KindFlavor:
		return ActionChangeFlavor
	}
	return ActionNone
}

// Decision is the answer to one alarm: an action, or none, with the reason.
type Decision struct {
	Time     time.Time // when it is taken
	Metric   v1alpha1.Metric
	Action   Action
	Reason   Reason
	From, To string // GB or flavor codes
	Evidence Evidence
	// MessageID is the id of the message that started the check, if one did. Since is when the alarm began.
	MessageID    string
	Since        time.Time
	Message      string        // one sentence for people, without the next check
	RequeueAfter time.Duration // 0 if an event starts the next check
	Capped       bool          // the policy allows less than the alarm needs
	Guard        string        // the name of the guard that prevents the action; empty if none does
}

// Acts reports whether the decision changes the Rds.
func (d Decision) Acts() bool { return d.Action != ActionNone && d.Reason == ReasonAlarmInForce }

// Decline returns the decision to change nothing, with its reason, its message and the time until the next check.
func (d Decision) Decline(r Reason, wait time.Duration, format string, args ...any) Decision {
	d.Action, d.To, d.Reason, d.RequeueAfter, d.Message = ActionNone, "", r, wait, fmt.Sprintf(format, args...)
	return d
}

// Text returns the message with the time of the next check, if an event does not start it. Records keep the text, so it
// names a time: a duration would soon be wrong. Conditions keep the message, which stays the same from check to check.
func (d Decision) Text() string {
	if d.RequeueAfter <= 0 {
		return d.Message
	}
	return strings.TrimSuffix(d.Message, ".") + ". Next check at " + TimeText(d.Time.Add(d.RequeueAfter))
}

// ValueText returns the measured percentage with one digit, or an empty text without evidence.
func (d Decision) ValueText() string {
	if !d.Evidence.Present() {
		return ""
	}
	return strconv.FormatFloat(d.Evidence.Percent, 'f', 1, 64)
}

// Verdict holds the decisions on all alarms of a Case.
type Verdict struct {
	Decisions    []Decision
	Change       *v1alpha1.Change   // the change to make, or nil
	EndTime      time.Time          // when the last fact was read; zero means the time of the case
	RequeueAfter time.Duration      // 0 if an event starts the next check
	Deferred     *v1alpha1.Deferred // the change that waits for the window from now on
	Contest      *Decision          // set if another writer reverts our change
}

// Add adds a decision and its next check.
func (v *Verdict) Add(d Decision) {
	v.Decisions = append(v.Decisions, d)
	v.RequeueIn(d.RequeueAfter)
}

// RequeueIn brings the next check forward to that time; 0 changes nothing.
func (v *Verdict) RequeueIn(after time.Duration) {
	if after > 0 && (v.RequeueAfter == 0 || after < v.RequeueAfter) {
		v.RequeueAfter = after
	}
}

// Warning is a problem of a database that a person should solve in time.
type Warning struct {
	Reason  Reason
	Message string
}
