// SPDX-License-Identifier: Apache-2.0

// Package record keeps what follows a decision. FollowUp ends the changes that were in progress, Intent stores a change
// before it is requested, and Outcome stores what became of it, with the records of the decisions, the conditions, the
// warnings and the changes that are held.
//
// The package is pure: it turns one status into the next. It must not know how decisions are made, how the status is
// stored, or what the cloud's API looks like.
package record

import (
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// recordsKept is how many decisions the status keeps, so that an object stays small.
	recordsKept = 20
)

// Recorded holds the status after a verdict, and what to report to people once the status is stored.
type Recorded struct {
	Status       v1alpha1.Status
	Attempt      *v1alpha1.Change     // the change to request, as it is stored; nil if nothing is to be requested
	Before       v1alpha1.Change      // what that change was before; without a state if there was none
	Overtaken    *Overtaken           // nil if the attempt ends no pending change of ours
	Ended        []v1alpha1.Change    // our changes that ended
	News         []autopilot.Decision // decisions that are new and not folded into an earlier record
	Warnings     []autopilot.Warning
	RequeueAfter time.Duration // 0 if an event starts the next check
}

// Outcome returns the status after a verdict: the change that is to be requested, a record of every decision, and all
// conditions except Armed and Ready. The caller must store it before anything is requested, so that a restart does not
// lose the change. The status of the case must be that of FollowUp.
func Outcome(c autopilot.Case, v autopilot.Verdict) Recorded {
	done := Recorded{Status: c.Status.Copy(), RequeueAfter: v.RequeueAfter}
	s := &done.Status
	s.Deferred = v.Deferred
	done.Ended = moveAll(c, s) // the walk may have read the catalogue, which shows what is smaller
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		if !isNeeded(c, s, kind, v.Decisions) {
			withdraw(c, s, kind)
		}
	}
	if v.Change != nil {
		done.request(c, *v.Change, v.EndTime)
	}
	done.News = Decisions(s, v.Decisions, c.Now)
	setHeld(c, s, v.Decisions)
	s.ObservedGeneration, s.EffectiveMode = c.Generation, c.Mode
	setProgressing(s, c)
	setLimited(s, v, c.Generation, c.Now)
	setContested(s, c, v)
	Summarize(s)
	done.Warnings = UpdateWarnings(c, s)
	return done
}

// request enters the change that is to be requested. An earlier one that waits for its next attempt continues if it has the
// same target; otherwise it ends. The request counts from the end of the walk, because reads may take minutes.
func (done *Recorded) request(c autopilot.Case, next v1alpha1.Change, at time.Time) {
	s := &done.Status
	was, _, isWaiting := c.NextAttempt(next.Kind)
	if !isWaiting {
		was, isWaiting = change.Pending(s.Changes, next.Kind)
	}
	seen := change.Seen{Now: c.Now, HasRds: !c.NoRds, Failures: c.Seen(next).Failures}
	var former *v1alpha1.Change
	switch {
	case isWaiting && was.To == next.To:
		former, done.Before = &was, was
		next.State, next.Refusal, next.RequestTime = was.State, was.Refusal, was.RequestTime
	case isWaiting:
		if seen.Event = change.Unneeded; change.IsPending(was) {
			seen.Event = change.Overtaken
		}
		ended, _ := change.Move(was, seen)
		s.Changes = change.Put(s.Changes, &was, ended, c.Now)
		if seen.Event == change.Overtaken {
			done.Overtaken = &Overtaken{was, ended}
			break
		}
		done.Ended = append(done.Ended, ended)
	}
	if seen.Event = change.Allowed; at.After(c.Now) {
		seen.Now = at
	}
	next, _ = change.Move(next, seen)
	s.Changes = change.Put(s.Changes, former, next, c.Now)
	done.Attempt = &next
}

// isNeeded reports whether an alarm may still need a change of that kind that waits for its next attempt, so that it keeps
// waiting.
func isNeeded(c autopilot.Case, s *v1alpha1.Status, kind v1alpha1.ChangeKind, decisions []autopilot.Decision) bool {
	reason, _, known := neededChange(c, kind, decisions)
	isDeferred := kind == v1alpha1.KindFlavor && s.Deferred != nil
	return c.Mode == v1alpha1.ModeAuto && (reason != "" || !known || isDeferred)
}

// Decisions records decisions and returns the new ones.
func Decisions(s *v1alpha1.Status, decisions []autopilot.Decision, now time.Time) (news []autopilot.Decision) {
	for _, d := range decisions {
		if recordDecision(s, d, now) {
			news = append(news, d)
		}
	}
	return news
}

// recordDecision records a decision and reports whether it is new.
func recordDecision(s *v1alpha1.Status, d autopilot.Decision, now time.Time) bool {
	for i, r := range s.Decisions {
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
		if now.Sub(last.Time) >= autopilot.FoldEvery {
			r.Count++
			r.LastTime = *autopilot.Seconds(now)
			r.ValuePercent, r.MessageID, r.Message = d.ValueText(), d.MessageID, d.Text()
			s.Decisions = slices.Clone(s.Decisions)
			s.Decisions[i] = r
		}
		return false
	}
	s.Decisions = append([]v1alpha1.DecisionRecord{{
		Time: *autopilot.Seconds(now), Count: 1, Metric: d.Metric, Action: string(d.Action), Reason: string(d.Reason),
		From: d.From, To: d.To, ValuePercent: d.ValueText(), MessageID: d.MessageID, Message: d.Text(),
	}}, s.Decisions...)
	for len(s.Decisions) > recordsKept {
		s.Decisions = dropOldest(s.Decisions)
	}
	return true
}

// AddSentence adds a sentence to the newest record of a decision that acts. It returns false if there is no record.
func AddSentence(s *v1alpha1.Status, d autopilot.Decision, sentence string) bool {
	i := slices.IndexFunc(s.Decisions, func(r v1alpha1.DecisionRecord) bool {
		return r.Metric == d.Metric && r.Action == string(d.Action) && r.From == d.From && r.To == d.To
	})
	if i < 0 {
		return false
	}
	s.Decisions = slices.Clone(s.Decisions)
	s.Decisions[i].Message = strings.TrimSuffix(s.Decisions[i].Message, ".") + ". " + sentence
	return true
}

// dropOldest returns the records without the oldest record of the metric with the most records, so that one metric does
// not push the others out.
func dropOldest(records []v1alpha1.DecisionRecord) []v1alpha1.DecisionRecord {
	count := make(map[v1alpha1.Metric]int)
	most := records[0].Metric
	for _, r := range records {
		if count[r.Metric]++; count[r.Metric] > count[most] {
			most = r.Metric
		}
	}
	for i := len(records) - 1; ; i-- {
		if records[i].Metric == most {
			return slices.Delete(records, i, i+1)
		}
	}
}
