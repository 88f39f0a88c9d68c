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

// Pending returns a copy of the change of that kind that the autopilot has decided and that has not ended, or nil.
func (s *Status) Pending(kind ChangeKind) *Change {
	for _, ch := range s.Changes {
		if ch.Kind == kind && ch.IsPending() && ch.IsDecided() {
			return ch.DeepCopy()
		}
	}
	return nil
}

// PendingChanges returns copies of the changes that the autopilot has decided and that have not ended, at most one of
// each kind.
func (s *Status) PendingChanges() []*Change {
	var pending []*Change
	for _, kind := range []ChangeKind{KindVolume, KindFlavor} {
		if ch := s.Pending(kind); ch != nil {
			pending = append(pending, ch)
		}
	}
	return pending
}

// IsPending reports whether the change has not ended.
func (ch Change) IsPending() bool { return ch.Outcome == "" }

// IsDecided reports whether the autopilot has decided the change. Its size may be that of another writer: with apply:
// Cloud, the autopilot requests from the cloud what the Rds requests.
func (ch Change) IsDecided() bool { return ch.DecisionTime != nil }

// Refused returns the refusal that prevents the change, or nil. A change that has started has none.
func (ch Change) Refused() *Refusal {
	if ch.StartTime != nil {
		return nil
	}
	return ch.Refusal
}

// Value returns the used space in GB. ok is false if there is none. u may be nil.
func (u *UsedSpace) Value() (gb float64, ok bool) {
	if u == nil {
		return 0, false
	}
	gb, err := strconv.ParseFloat(u.GB, 64)
	return gb, err == nil
}
