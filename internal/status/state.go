// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// state is the worst state that applies to a database.
type state int

// The states, the worst first.
const (
	readOnly state = iota
	notArmed
	contested
	refused
	stalled
	checkFailed
	limited
	inAlarm
	changing
	waiting
	armed
	off
	noAutopilot
)

// stateRow is one row of the table of states.
type stateRow struct {
	Key   string // in a URL
	Label string
	Tone  string // class of the stylesheet: bad, busy, good or quiet
}

// stateTable returns the rows of the states in their order.
func stateTable() []stateRow {
	return []stateRow{
		{"read-only", "Read-only", "bad"},
		{"not-armed", "Not armed", "bad"},
		{"contested", "Contested", "bad"},
		{"refused", "Refused", "bad"},
		{"stalled", "Stalled", "bad"},
		{"check-failed", "Check failed", "bad"},
		{"limited", "Limited", "bad"},
		{"in-alarm", "In alarm", "busy"},
		{"changing", "Changing", "busy"},
		{"waiting", "Waiting for its window", "busy"},
		{"armed", "Armed, nothing to do", "good"},
		{"off", "Off", "quiet"},
		{"no-autopilot", "No autopilot", "quiet"},
	}
}

// row returns the state's row of the table.
func (s state) row() stateRow { return stateTable()[s] }

// judgement is the state of a database and its reason.
type judgement struct {
	State state
	Code  string    // the reason's code, see docs/runbooks/reasons.md; empty if the state has none
	Why   string    // one sentence; may be empty
	Since time.Time // zero if unknown
}

// sentence returns code and text.
func (j judgement) sentence() string {
	if j.Code == "" {
		return j.Why
	}
	return j.Code + ": " + j.Why
}

// judge returns the worst state that applies to a database.
func (v *view) judge(d *database) judgement {
	a := d.autopilot
	if a == nil {
		return judgement{State: noAutopilot, Why: "There is no RdsAutopilot, because spec.autopilot of the Rds is not true"}
	}
	s := &a.Status
	armedCondition := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionArmed)
	holds := func(kind string, of state) (judgement, bool) {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue {
			return judgement{}, false
		}
		return judgement{of, c.Reason, c.Message, c.LastTransitionTime.Time}, true
	}
	var armedSince time.Time
	if armedCondition != nil {
		armedSince = armedCondition.LastTransitionTime.Time
	}
	switch {
	case d.Mode == v1alpha1.ModeOff:
		return judgement{State: off, Why: "The mode is Off"}
	case armedCondition == nil:
		return judgement{State: notArmed, Why: "Waiting for the first check of this database"}
	case record.IsSwitchedOff(*s):
		return judgement{State: off, Why: armedCondition.Message, Since: armedSince}
	case s.ReadOnly != nil && armedCondition.Reason != string(autopilot.ReasonInstanceUnknown):
		return judgement{readOnly, string(autopilot.ReasonReadOnly), "The database is read-only", s.ReadOnly.SinceTime.Time}
	case armedCondition.Status != metav1.ConditionTrue:
		return judgement{notArmed, armedCondition.Reason, armedCondition.Message, armedSince}
	}
	if j, ok := holds(v1alpha1.ConditionContested, contested); ok {
		return j
	}
	for _, i := range s.Intents() {
		if r := i.Refused(); r != nil {
			return judgement{refused, cmp.Or(r.Reason, string(autopilot.ReasonRefused)), autopilot.DescribeRefusal(*r),
				i.DecisionTime.Time}
		}
		if p, start := autopilot.RecordedProgress(*i, a.Spec.Apply); p == autopilot.Started && autopilot.IsStalled(*i, s.Instance, v.now) {
			return stalledSince(start, s.Instance, step(i.Kind, i.From, i.To)+" was requested but is not completed in time")
		}
	}
	for _, u := range s.Unfulfilled {
		if autopilot.Overdue(u.SinceTime.Time, s.Instance, v.now) {
			return stalledSince(u.SinceTime.Time, s.Instance,
				step(u.Kind, "", u.To)+", requested by another writer, is not completed in time")
		}
	}
	if record.LastCheckFailed(*s) {
		ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		return judgement{checkFailed, autopilot.ReadFailed,
			"The last check could not read everything; the leader's log has the reason", ready.LastTransitionTime.Time}
	}
	if j, ok := holds(v1alpha1.ConditionLimited, limited); ok {
		return j
	}
	for _, r := range s.Alarms.Rules {
		if r.State != v1alpha1.StateAlarm {
			continue
		}
		j := judgement{State: inAlarm, Why: "Waiting for a decision"}
		if r.StateTime != nil {
			j.Since = r.StateTime.Time
		}
		if i := slices.IndexFunc(s.Decisions, func(x v1alpha1.DecisionRecord) bool { return x.Metric == r.Metric }); i >= 0 {
			j.Code, j.Why = s.Decisions[i].Reason, s.Decisions[i].Message
		}
		return j
	}
	for _, i := range s.Intents() {
		return judgement{State: changing, Since: i.DecisionTime.Time}
	}
	for _, u := range s.Unfulfilled {
		return judgement{State: changing, Since: u.SinceTime.Time}
	}
	if s.Deferred != nil {
		return judgement{State: waiting, Since: s.Deferred.FirstTime.Time,
			Why: fmt.Sprintf("A larger flavor was requested at %s", v.moment(s.Deferred.FirstTime.Time).Text)}
	}
	return judgement{State: armed, Since: calmSince(s, armedSince)}
}

// stalledSince returns the judgement on a change that started at that time.
func stalledSince(start time.Time, inst *v1alpha1.Instance, why string) judgement {
	return judgement{stalled, string(autopilot.ReasonStalled), why, autopilot.StallsAt(start, inst)}
}

// calmSince returns since when there has been nothing to do: since arming, the last change or the end of the last
// alarm.
func calmSince(s *v1alpha1.Status, armed time.Time) time.Time {
	since := armed
	for _, ch := range s.Changes {
		since = later(since, ch.CompletionTime.Time)
	}
	for _, r := range s.Alarms.Rules {
		if r.StateTime != nil {
			since = later(since, r.StateTime.Time)
		}
	}
	return since
}

// step returns a change as text.
func step(kind v1alpha1.ChangeKind, from, to string) string {
	what, unit := "Flavor", ""
	if kind == v1alpha1.KindVolume {
		what, unit = "Storage", " GB"
	}
	if from == "" {
		return what + " " + to + unit
	}
	return what + " " + from + " → " + to + unit
}
