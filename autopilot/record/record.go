// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// recordsKept is how many decisions the status keeps, so that an object stays small.
	recordsKept = 20
)

// Recorded holds the status after a verdict, and what to report to people once the status is stored.
type Recorded struct {
	Status       v1alpha1.Status
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
	for _, ch := range s.PendingChanges() {
		isReplaced := v.Change != nil && v.Change.Kind == ch.Kind
		if !isReplaced && c.Progress(ch) == autopilot.Unstarted && !c.IsRequested(ch) && !postponed(v, ch) {
			withdraw(s, ch, c.Now)
		}
	}
	if v.Change != nil {
		put(s, *v.Change)
	}
	if p := s.Pending(v1alpha1.KindFlavor); p != nil {
		if progress, _ := autopilot.RecordedProgress(*p, c.Spec.Apply); progress == autopilot.Started {
			s.Deferred = nil // it waits for the window no longer
		}
	}
	markReverted(c, s)
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

// markReverted records when a check first found that another writer has replaced our flavor by a smaller one.
func markReverted(c autopilot.Case, s *v1alpha1.Status) {
	_, ours, ok := c.Contest()
	if !ok || ours.Outcome != v1alpha1.OutcomeCompleted {
		return
	}
	s.Changes = slices.Clone(s.Changes)
	for i, ch := range s.Changes {
		if ch.Kind == v1alpha1.KindFlavor && ch.Outcome == ours.Outcome && ch.DecisionTime.Equal(ours.DecisionTime) {
			end(&s.Changes[i], v1alpha1.OutcomeReverted, c.Now)
		}
	}
}

// DecisionsFor returns the decisions that led to a change of ours.
func DecisionsFor(c autopilot.Case, i v1alpha1.Change) []autopilot.Decision {
	d := autopilot.Decision{
		Time: c.Now, Action: autopilot.ActionFor(i.Kind), Reason: autopilot.ReasonAlarmInForce, From: i.From, To: i.To,
		Message: i.Message,
	}
	if percent, err := strconv.ParseFloat(i.ValuePercent, 64); err == nil {
		d.Evidence = autopilot.Evidence{Time: i.EvidenceTime.Time, Percent: percent}
	}
	var answers []autopilot.Decision
	for _, m := range i.Metrics {
		d.Metric, d.MessageID, d.Since = m, "", time.Time{}
		for _, a := range c.Alarms {
			if a.Metric == m {
				d.MessageID, d.Since = a.MessageID(), a.Since(c)
			}
		}
		answers = append(answers, d)
	}
	return answers
}

// postponed reports whether a change that has not started is still needed.
func postponed(v autopilot.Verdict, i *v1alpha1.Change) bool {
	return slices.ContainsFunc(v.Decisions, func(d autopilot.Decision) bool {
		isRefused := i.Refusal != nil && i.Refusal.Reason == string(d.Reason)
		return (d.Reason.Row().IsPostponed || isRefused) && slices.Contains(i.Metrics, d.Metric)
	})
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
