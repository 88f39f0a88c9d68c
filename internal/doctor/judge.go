// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"maps"
	"strings"
)

// finding is what a run has observed about an assumption.
type finding struct {
	seen, holds bool
	text        string
}

// judge reads a finding from a finished examination.
type judge func(*examination) finding

func holds(is bool, text string) finding { return finding{true, is, text} }

func unseen(why string) finding { return finding{text: why} }

// Harmless reports whether the service works although the assumption is wrong.
func (a Assumption) Harmless() bool { return strings.HasPrefix(a.IfWrong, "Nothing") }

// judge returns the result line of an assumption.
func (x *examination) judge(a Assumption) Result {
	find := facts()[a.ID]
	if find == nil {
		return Result{Check: a.ID, State: Unseen, Text: "Not testable without harm to a database or hundreds of rules: " +
			a.Assumed}
	}
	f := find(x)
	if !f.seen {
		return Result{Check: a.ID, State: Unseen, Text: f.text}
	}
	text := a.Assumed
	if f.text != "" {
		text += ". Seen: " + f.text
	}
	switch {
	case f.holds:
		return Result{Check: a.ID, State: OK, Text: "It holds: " + text}
	case a.Harmless():
		return Result{Check: a.ID, State: Differs, Text: "It does not hold: " + text, Do: a.IfWrong}
	}
	return Result{Check: a.ID, State: Failed, Text: "It does not hold: " + text, Do: a.IfWrong}
}

const (
	noMessage      = "No message arrived"
	onlyListen     = "Doctor sees the messages themselves only with --listen"
	noNotification = "No alarm arrived"
	noConfirmation = "No confirmation arrived"
	noRule         = "No rule was created"
	noData         = "No data was read"
)

// facts returns the judge of each assumption by its ID. An assumption without one is not testable.
func facts() map[string]judge {
	all := messageFacts()
	maps.Copy(all, cloudFacts())
	return all
}

// show returns a value as JSON, cut after 120 characters.
func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(text[:min(len(text), 120)])
}
