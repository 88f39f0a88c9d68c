// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// entry is a line of the timeline.
type entry struct {
	Time   moment
	Kind   string // Signal, Decision, Change, Pending or Subscription
	Title  string
	Text   string
	Reason reason // of a decision
	Folded bool   // nothing changed, so the page shows the text on demand
	Tone   string

	at time.Time
}

// timeline returns the stored signals, decisions and changes, newest first.
func (v *view) timeline(s *v1alpha1.Status) []entry {
	var all []entry
	add := func(t time.Time, e entry) {
		e.at, e.Time = t, v.moment(t)
		all = append(all, e)
	}
	for _, g := range s.Intake.Signals {
		value := ""
		if g.ValuePercent != "" {
			value = " at " + tenths(g.ValuePercent) + " %"
		}
		text := "The alarm's time is " + v.moment(g.AlarmTime.Time).Text + "; message " + g.MessageID
		add(g.ReceivedTime.Time, entry{Kind: "Signal", Title: fmt.Sprintf("%s is in %s%s", g.Metric, g.State, value),
			Text: text, Folded: true})
	}
	if c := s.Intake.Subscription; c != nil {
		add(c.ReceivedTime.Time, entry{Kind: "Subscription", Title: c.Type, Text: "message " + c.MessageID, Folded: true})
	}
	for _, r := range s.Decisions {
		title := fmt.Sprintf("%s: %s", r.Metric, r.Reason)
		if r.Action != string(autopilot.ActionNone) {
			title = fmt.Sprintf("%s: %s %s → %s", r.Metric, r.Action, r.From, r.To)
		}
		if r.Count > 1 {
			title += fmt.Sprintf(", %d times until %s", r.Count, v.moment(r.LastTime.Time).Text)
		}
		e := entry{Kind: "Decision", Title: title, Text: r.Message, Reason: v.reason(r.Reason),
			Folded: r.Action == string(autopilot.ActionNone)}
		if autopilot.Reason(r.Reason).IsWarning() {
			e.Tone = "bad"
		}
		add(later(r.Time.Time, r.LastTime.Time), e)
	}
	for _, i := range s.Intents() {
		e := entry{Kind: "Pending", Title: step(i.Kind, i.From, i.To), Text: i.Message, Tone: "busy"}
		switch {
		case i.Refusal == nil:
		default:
			e.Tone, e.Text = "bad", fmt.Sprintf("Refused %d times in a row: %s", i.Refusal.Count, i.Refusal.Message)
		}
		add(i.DecisionTime.Time, e)
	}
	for _, ch := range s.Changes {
		e := entry{Kind: "Change", Title: autopilot.DescribeChange(ch), Tone: "good"}
		if ch.Outcome != v1alpha1.OutcomeCompleted {
			e.Tone = "bad"
		}
		add(ch.CompletionTime.Time, e)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return b.at.Compare(a.at) })
	return all
}

// tenths rounds a number in a text to one digit after the point.
func tenths(text string) string {
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return text
}
