package autopilot

import (
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	recordsKept = 20
	foldEvery   = 5 * time.Minute // how often an unchanged answer is written again
)

// Apply enters a verdict into the status: the intent, so that it is known before anything is patched, and a record of
// every answer. It returns the decisions that are new, as opposed to folded into an earlier record.
func Apply(c Case, v Verdict) (status v1alpha1.Status, news []Decision) {
	s := *c.Status.DeepCopy()
	if o := s.Overtaken; o != nil && c.standing(o) == unpatched {
		s.Changes, s.Overtaken = enter(s.Changes, c.end(o, v1alpha1.OutcomeLost)), nil
	}
	switch p := s.Pending; {
	case v.Intent != nil:
		if p != nil && p.Kind != v.Intent.Kind && c.standing(p) == waiting {
			s.Overtaken = p
		}
		s.Pending = v.Intent
	case p != nil && c.standing(p) == unpatched && !v.postponed(p):
		s.Changes, s.Pending = enter(s.Changes, c.end(p, v1alpha1.OutcomeLost)), nil
	}
	s.Deferred = v.Deferred
	if v.Intent != nil && v.Intent.Kind == v1alpha1.KindFlavor {
		s.Deferred = nil
	}
	for _, d := range v.Decisions {
		if Record(&s, d, c.Now) {
			news = append(news, d)
		}
	}
	return s, news
}

// postponed reports whether an intent that was never patched is still wished for, only not now.
func (v Verdict) postponed(i *v1alpha1.Intent) bool {
	return slices.ContainsFunc(v.Decisions, func(d Decision) bool {
		switch d.Reason {
		case ReasonInstanceBusy, ReasonChangePending, ReasonNoData, ReasonStaleEvidence:
			return slices.Contains(i.Metrics, d.Metric)
		}
		return false
	})
}

// Record enters one decision and reports whether it is new.
func Record(s *v1alpha1.Status, d Decision, now time.Time) bool {
	for i := range s.Decisions {
		r := &s.Decisions[i]
		if r.Metric != d.Metric {
			continue
		}
		if r.Action != string(d.Action) || r.Reason != string(d.Reason) || r.From != d.From || r.To != d.To {
			break
		}
		last := r.LastTime
		if last.IsZero() {
			last = r.Time
		}
		if now.Sub(last.Time) >= foldEvery {
			r.Count++
			r.LastTime = *seconds(now)
			r.ValuePercent, r.MessageID, r.Message = d.value(), d.MessageID, d.Message
		}
		return false
	}
	s.Decisions = slices.Insert(s.Decisions, 0, v1alpha1.DecisionRecord{
		Time: *seconds(now), Count: 1, Metric: d.Metric, Action: string(d.Action), Reason: string(d.Reason),
		From: d.From, To: d.To, ValuePercent: d.value(), MessageID: d.MessageID, Message: d.Message,
	})
	s.Decisions = s.Decisions[:min(len(s.Decisions), recordsKept)]
	return true
}
