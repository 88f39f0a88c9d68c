// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// state is the worst state that applies to a database.
type state int

// The states, the worst first.
const (
	storageFull state = iota
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
		{"storage-full", "Storage full", "bad"},
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

// judge returns the state of a database and its reason.
func (v *view) judge(d *database) (state, string) {
	a := d.autopilot
	if a == nil {
		return noAutopilot, "There is no RdsAutopilot, because spec.autopilot of the Rds is not true"
	}
	s := &a.Status
	armedCondition := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionArmed)
	holds := func(kind string) (string, bool) {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue {
			return "", false
		}
		return c.Reason + ": " + c.Message, true
	}
	switch {
	case d.Mode == v1alpha1.ModeOff:
		return off, "The mode is Off"
	case armedCondition == nil:
		return notArmed, "Waiting for the first check of this database"
	case autopilot.IsSwitchedOff(*s):
		return off, armedCondition.Message
	case s.Instance != nil && s.Instance.Status == autopilot.StatusStorageFull && armedCondition.Reason != string(autopilot.ReasonInstanceUnknown):
		return storageFull, "The database is read-only"
	case armedCondition.Status != metav1.ConditionTrue:
		return notArmed, armedCondition.Reason + ": " + armedCondition.Message
	}
	if why, ok := holds(v1alpha1.ConditionContested); ok {
		return contested, why
	}
	for _, i := range s.Intents() {
		if r := i.Refused(); r != nil && r.Reason != string(autopilot.ReasonChangePending) {
			return refused, autopilot.DescribeRefusal(*r)
		}
		if autopilot.Started(*i, a.Spec.Apply) != nil && autopilot.IsStalled(*i, s.Instance, v.now) {
			return stalled, step(i.Kind, i.From, i.To) + " was requested but is not completed in time"
		}
	}
	for _, u := range s.Unfulfilled {
		if autopilot.Overdue(u.SinceTime.Time, s.Instance, v.now) {
			return stalled, step(u.Kind, "", u.To) + ", requested by another writer, is not completed in time"
		}
	}
	if autopilot.LastCheckFailed(*s) {
		return checkFailed, "The last check could not read everything; the leader's log has the reason"
	}
	if why, ok := holds(v1alpha1.ConditionLimited); ok {
		return limited, why
	}
	for _, r := range s.Alarms.Rules {
		if r.State != v1alpha1.StateAlarm {
			continue
		}
		if i := slices.IndexFunc(s.Decisions, func(x v1alpha1.DecisionRecord) bool { return x.Metric == r.Metric }); i >= 0 {
			return inAlarm, s.Decisions[i].Reason + ": " + s.Decisions[i].Message
		}
		return inAlarm, "Waiting for a decision"
	}
	if len(s.Intents()) > 0 || len(s.Unfulfilled) > 0 {
		return changing, ""
	}
	if s.Deferred != nil {
		return waiting, fmt.Sprintf("A larger flavor was requested at %s", v.moment(s.Deferred.FirstTime.Time).Text)
	}
	return armed, ""
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
