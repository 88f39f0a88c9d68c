// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Copy returns a copy to alter. It shares the lists of changes, former volumes and decisions, which nobody alters in place: they are
// most of a status, and what is added makes a new list.
func (s *Status) Copy() Status {
	short := *s
	short.Changes, short.FormerVolumes, short.Decisions = nil, nil, nil
	next := *short.DeepCopy()
	next.Changes, next.FormerVolumes, next.Decisions = s.Changes, s.FormerVolumes, s.Decisions
	return next
}

// Intents returns the changes of ours that are under way: the pending one and, where storage had to go first, the one it
// overtook.
func (s *Status) Intents() []*Intent {
	var intents []*Intent
	for _, i := range []*Intent{s.Pending, s.Overtaken} {
		if i != nil {
			intents = append(intents, i)
		}
	}
	return intents
}

// Refused returns why an intent is not being made; nil where it is, or where nobody has said no. What is known of an earlier
// job that failed stays while the next one runs.
func (i *Intent) Refused() *Refusal {
	if i.JobID != "" {
		return nil
	}
	return i.Refusal
}
