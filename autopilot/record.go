// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	recordsKept = 20
	foldEvery   = 5 * time.Minute // how often an unchanged answer is written again
)

// RecordIntent enters what a verdict wants into the status, so that it is known before anything is patched.
func RecordIntent(c Case, v Verdict) v1alpha1.Status {
	s := c.Status.Copy()
	if o := s.Overtaken; o != nil && c.intentState(o) == unpatched {
		s.Overtaken = nil
	}
	switch p := s.Pending; {
	case v.Intent != nil:
		if p != nil && p.Kind != v.Intent.Kind && c.intentState(p) == waiting {
			s.Overtaken = p
		}
		s.Pending = v.Intent
	case p != nil && c.intentState(p) == unpatched && !v.postponed(p):
		s.Pending = nil // its alarm went before anything was patched
	}
	s.Deferred = v.Deferred
	if v.Intent != nil && v.Intent.Kind == v1alpha1.KindFlavor {
		s.Deferred = nil
	}
	return s
}

// PatchResult is what became of the patch of an intent.
type PatchResult int

// The results.
const (
	PatchNotMade   PatchResult = iota // there was nothing to patch, or nobody knows what became of it
	PatchAccepted                     // the Rds asks for it now
	PatchTakenBack                    // the API server took it and answered with another value
	PatchRefused                      // the API server refused it
)

// Patched is the result of a patch; Message is the API server's where it refused it.
type Patched struct {
	Result  PatchResult
	Message string
	Cloud   *CloudAnswer // to the request that followed, or to one for an earlier intent; nil where it was not asked
}

// Recorded is the status after a verdict, and what to report to people once it is stored.
type Recorded struct {
	Status   v1alpha1.Status
	News     []Decision // the answers that are new, as opposed to folded into an earlier record
	Ended    []v1alpha1.Change
	Warnings []Warning
	Again    time.Duration // when to look again; 0 where an event brings it up
}

// RecordAnswer enters the cloud's answer into a status, where what RecordOutcome returned could not be stored, and returns the
// answers to alarms that are new by that. An answer to what is not pending any more changes nothing.
func RecordAnswer(c Case, s *v1alpha1.Status, a CloudAnswer) (news []Decision) {
	return recordDecisions(s, c.recordAnswer(s, a), c.Now)
}

// RecordOutcome enters into the status what became of a verdict: the intent as it stands after its patch, a record of every
// answer, and all conditions but Armed and Ready. The case's status is that of RecordIntent; f is what FollowUp found.
func RecordOutcome(c Case, v Verdict, f Followed, p Patched) Recorded {
	done := Recorded{Status: c.Status.Copy()}
	s := &done.Status
	var answers []Decision
	for _, i := range f.Asked {
		answers = append(answers, c.decisionsFor(i)...)
	}
	for _, i := range f.Failed {
		answers = append(answers, c.refusalsFor(i)...)
	}
	if i := s.Pending; v.Intent != nil && i != nil {
		switch p.Result {
		case PatchAccepted:
			s.Pending = withAskedTime(*i, c.Now)
		case PatchTakenBack:
			done.Ended = append(done.Ended, c.endIntent(i, v1alpha1.OutcomeLost))
			s.Changes, s.Pending = prependChange(s.Changes, done.Ended[0]), nil
			done.Ended[0] = s.Changes[0] // with its count
		case PatchRefused:
			refusal := v1alpha1.Refusal{Count: 1, Time: *micro(c.Now), Message: p.Message}
			if i.Refusal != nil {
				refusal.Count += i.Refusal.Count
			}
			i.Refusal = &refusal
		}
	}
	for _, d := range v.Decisions {
		if d.Acts() {
			switch p.Result {
			case PatchNotMade:
				continue
			case PatchTakenBack:
				d = c.takenBackAtOnce(d, done.Ended[0])
				v.Contest = &d
			case PatchRefused:
				d = d.declineRefused(*s.Pending.Refusal, refusalWait(s.Pending.Refusal.Count))
			}
			v.again(d.Again)
		}
		answers = append(answers, d)
	}
	if p.Cloud != nil {
		answers = append(answers, c.recordAnswer(s, *p.Cloud)...)
	}
	done.News = recordDecisions(s, answers, c.Now)
	s.ObservedGeneration = c.Generation
	setProgressing(s, c.Generation, c.Now)
	setLimited(s, v, c.Generation, c.Now)
	setContested(s, c, v)
	Summarize(s)
	done.Warnings, done.Again = UpdateWarnings(c, s), v.Again
	return done
}

// decisionsFor are the answers to the alarms of an intent that the Rds turned out to ask for.
func (c Case) decisionsFor(i v1alpha1.Intent) []Decision {
	d := Decision{Action: actionFor(i.Kind), Reason: ReasonAlarmInForce, From: i.From, To: i.To, Message: i.Message}
	if percent, err := strconv.ParseFloat(i.ValuePercent, 64); err == nil {
		d.Evidence = Evidence{Time: i.EvidenceTime.Time, Percent: percent}
	}
	var answers []Decision
	for _, m := range i.Metrics {
		d.Metric, d.MessageID, d.Since = m, "", time.Time{}
		for _, a := range c.Alarms {
			if a.Metric == m {
				d.MessageID, d.Since = a.messageID(), a.since()
			}
		}
		answers = append(answers, d)
	}
	return answers
}

// takenBackAtOnce is the answer to an alarm where something in the API server put the old value back.
func (c Case) takenBackAtOnce(d Decision, lost v1alpha1.Change) Decision {
	what, _, _ := strings.Cut(d.Message, ":")
	again := contestKept
	if lost.Kind == v1alpha1.KindVolume {
		again = c.takenBackWait(d, lost)
	}
	d.To = ""
	return d.decline(ReasonContested, again, "The Kubernetes API took the patch (%s) and put the old value back at once: look for an admission policy or webhook", what)
}

// postponed reports whether an intent that was never patched is still wished for, only not now.
func (v Verdict) postponed(i *v1alpha1.Intent) bool {
	return slices.ContainsFunc(v.Decisions, func(d Decision) bool {
		isRefused := i.Refusal != nil && i.Refusal.Reason == string(d.Reason)
		return (d.Reason.row().IsPostponed || isRefused) && slices.Contains(i.Metrics, d.Metric)
	})
}

// recordDecisions enters decisions and returns those that are new.
func recordDecisions(s *v1alpha1.Status, decisions []Decision, now time.Time) (news []Decision) {
	for _, d := range decisions {
		if recordDecision(s, d, now) {
			news = append(news, d)
		}
	}
	return news
}

// recordDecision enters one decision and reports whether it is new.
func recordDecision(s *v1alpha1.Status, d Decision, now time.Time) bool {
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
		if now.Sub(last.Time) >= foldEvery {
			r.Count++
			r.LastTime = *seconds(now)
			r.ValuePercent, r.MessageID, r.Message = d.value(), d.MessageID, d.Message
			s.Decisions = slices.Clone(s.Decisions)
			s.Decisions[i] = r
		}
		return false
	}
	s.Decisions = append([]v1alpha1.DecisionRecord{{
		Time: *seconds(now), Count: 1, Metric: d.Metric, Action: string(d.Action), Reason: string(d.Reason),
		From: d.From, To: d.To, ValuePercent: d.value(), MessageID: d.MessageID, Message: d.Message,
	}}, s.Decisions...)
	for len(s.Decisions) > recordsKept {
		s.Decisions = dropOldest(s.Decisions)
	}
	return true
}

// dropOldest drops the oldest record of the metric that has most of them: one metric must not push the others out.
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
