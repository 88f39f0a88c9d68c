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

// Intent returns the status with the change that a verdict makes. The caller must store it before anything is
// requested, so that a restart does not lose the change. Earlier intents stay recorded as long as they may still come
// about.
func Intent(c autopilot.Case, v autopilot.Verdict) v1alpha1.Status {
	s := c.Status.Copy()
	earlier := s.Intents()
	s.Pending, s.Overtaken, s.Deferred = v.Intent, nil, v.Deferred
	for _, i := range earlier {
		switch {
		case v.Intent != nil && v.Intent.Kind == i.Kind, !isKept(c, i, v):
		case s.Pending == nil:
			s.Pending = i
		default:
			s.Overtaken = i
		}
	}
	return s
}

// isKept reports whether an intent stays recorded that the verdict does not replace: it has started or may have, or its
// alarm lasts, or the Rds requests it. Without the record, the change would look like another writer's.
func isKept(c autopilot.Case, i *v1alpha1.Intent, v autopilot.Verdict) bool {
	return c.Progress(i) != autopilot.Unstarted || c.IsRequested(i) || postponed(v, i)
}

// PatchResult is the result of the patch of an intent.
type PatchResult int

// The results.
const (
	PatchNotMade  PatchResult = iota // there was nothing to patch, or the result is not known
	PatchAccepted                    // the Rds requests the change now
	PatchPresent                     // the Rds requested the change before, so no patch was needed
	PatchReverted                    // the API server accepted the patch and returned another value
	PatchRefused                     // the API server refused the patch
)

// Patched holds the result of a patch. Message is the text of the API server if it refused the patch.
type Patched struct {
	Result  PatchResult
	Message string
	Cloud   *CloudAnswer // to the request for the intent; nil if there was no request
}

// Recorded holds the status after a verdict, and what to report to people once the status is stored.
type Recorded struct {
	Status       v1alpha1.Status
	News         []autopilot.Decision // decisions that are new and not folded into an earlier record
	Ended        []v1alpha1.Change
	Warnings     []autopilot.Warning
	RequeueAfter time.Duration // 0 if an event starts the next check
}

// Answer enters the cloud's answer into a status that was read again, because the result of Outcome could
// not be stored. It returns the new decisions. An answer to an intent that is no longer pending changes nothing.
func Answer(c autopilot.Case, s *v1alpha1.Status, a CloudAnswer) (news []autopilot.Decision) {
	return Decisions(s, recordAnswer(c, s, a), c.Now)
}

// Outcome returns the status after a verdict: the intent after its patch, a record of every decision, and all
// conditions except Armed and Ready. The status of the case must be the one that Intent returned, and f the
// result of FollowUp.
func Outcome(c autopilot.Case, v autopilot.Verdict, f Followed, p Patched) Recorded {
	done := Recorded{Status: c.Status.Copy()}
	s := &done.Status
	var answers []autopilot.Decision
	for _, i := range f.Requested {
		answers = append(answers, decisionsFor(c, i)...)
	}
	for _, i := range f.Failed {
		answers = append(answers, refusalsFor(c, i)...)
	}
	if i := s.Pending; v.Intent != nil && i != nil {
		switch p.Result {
		case PatchAccepted, PatchPresent:
			if s.Pending = asked(c, i); c.Spec.Apply != v1alpha1.ApplyCloud {
				s.Pending.Refusal = nil
			}
		case PatchReverted:
			done.Ended = append(done.Ended, endIntent(c, i, v1alpha1.OutcomeLost))
			s.Changes, s.Pending = prependChange(s.Changes, done.Ended[0]), nil
			done.Ended[0] = s.Changes[0] // with the count of equal changes
		case PatchRefused:
			s.Pending = refused(c, i, "", p.Message)
		}
	}
	for _, d := range v.Decisions {
		if d.Acts() {
			switch {
			case p.Result == PatchReverted:
				d = declineReverted(c, d, done.Ended[0])
				v.Contest = &d
			case p.Result == PatchRefused:
				d = declineRefused(c, d, *s.Pending)
			case p.Result == PatchNotMade, c.Spec.Apply == v1alpha1.ApplyCloud: // the cloud's answer decides
				continue
			}
			v.RequeueIn(d.RequeueAfter)
		}
		answers = append(answers, d)
	}
	if p.Cloud != nil {
		for _, d := range recordAnswer(c, s, *p.Cloud) {
			v.RequeueIn(d.RequeueAfter)
			answers = append(answers, d)
		}
	}
	for _, i := range s.Intents() {
		if p, _ := autopilot.RecordedProgress(*i, c.Spec.Apply); i.Kind == v1alpha1.KindFlavor && p == autopilot.Started {
			s.Deferred = nil // it waits for the window no longer
		}
	}
	done.News = Decisions(s, answers, c.Now)
	setHeld(c, s, slices.Concat(v.Decisions, answers))
	s.ObservedGeneration, s.EffectiveMode = c.Generation, c.Mode
	setProgressing(s, c.Spec.Apply, c.Generation, c.Now)
	setLimited(s, v, c.Generation, c.Now)
	setContested(s, c, v)
	Summarize(s)
	done.Warnings, done.RequeueAfter = UpdateWarnings(c, s), v.RequeueAfter
	return done
}

// decisionsFor returns the decisions on the alarms of an intent that has started.
func decisionsFor(c autopilot.Case, i v1alpha1.Intent) []autopilot.Decision {
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
				d.MessageID, d.Since = a.MessageID(), a.Since()
			}
		}
		answers = append(answers, d)
	}
	return answers
}

// declineReverted returns the decision on an alarm after the API server has accepted a patch and restored the old
// value.
func declineReverted(c autopilot.Case, d autopilot.Decision, lost v1alpha1.Change) autopilot.Decision {
	change, _, _ := strings.Cut(d.Message, ":")
	wait := autopilot.ContestKept
	if lost.Kind == v1alpha1.KindVolume {
		wait = c.RevertedSizeWait(lost, d.Evidence)
	}
	return d.Decline(autopilot.ReasonContested, wait,
		"The Kubernetes API accepted the patch (%s) and restored the old value at once. Check admission policies and webhooks", change)
}

// postponed reports whether an intent that has not started is still needed.
func postponed(v autopilot.Verdict, i *v1alpha1.Intent) bool {
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
