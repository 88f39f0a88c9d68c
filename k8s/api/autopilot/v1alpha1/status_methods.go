// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strconv"

// Copy returns a copy that the caller may modify, except for the elements of Changes and Decisions. These lists are most
// of a status, so the copy shares them; the caller must replace them instead of writing to them.
func (s *Status) Copy() Status {
	short := *s
	short.Changes, short.Decisions = nil, nil
	next := *short.DeepCopy()
	next.Changes, next.Decisions = s.Changes, s.Decisions
	return next
}

// Intents returns the autopilot's changes that have not ended, at most one of each kind.
func (s *Status) Intents() []*Intent {
	var intents []*Intent
	for _, i := range []*Intent{s.Pending, s.Overtaken} {
		if i != nil {
			intents = append(intents, i)
		}
	}
	return intents
}

// Refused returns the refusal that prevents the intent, or nil. While a job runs it returns nil, although the refusal
// of an earlier job stays recorded.
func (i *Intent) Refused() *Refusal {
	if i.JobID != "" || i.JobTime != nil {
		return nil
	}
	return i.Refusal
}

// Value returns the used space in GB. ok is false if there is none. u may be nil.
func (u *UsedSpace) Value() (gb float64, ok bool) {
	if u == nil {
		return 0, false
	}
	gb, err := strconv.ParseFloat(u.GB, 64)
	return gb, err == nil
}
