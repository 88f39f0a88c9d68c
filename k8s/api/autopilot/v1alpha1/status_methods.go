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

// Value returns the used space in GB. ok is false if there is none. u may be nil.
func (u *UsedSpace) Value() (gb float64, ok bool) {
	if u == nil {
		return 0, false
	}
	gb, err := strconv.ParseFloat(u.GB, 64)
	return gb, err == nil
}
