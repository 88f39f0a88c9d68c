// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Answer is what is known about one attempt to make a change: it was not sent, it was refused, or the cloud has started a
// job. Nothing is stored for an attempt that the API server has accepted, or that has had no clear answer.
type Answer struct {
	Attempt v1alpha1.Change // as it was stored before the request
	Before  v1alpha1.Change // what the change was before this attempt; without a state if there was none

	Overtaken *Overtaken       // nil if the attempt ends no pending change of ours
	Event     change.Event     // Unsent, Rejected or Accepted; Checked if the API server restored the old value at once
	Reason    autopilot.Reason // of the refusal; ReasonRefused of the API server. If nothing was sent, empty needs no record
	Message   string           // the text of the API server or of the cloud
	JobID     string           // id of the started job
	// Acting are the decisions to make the change, News those of them whose records are new. The record of an attempt that
	// failed replaces them.
	Acting, News []autopilot.Decision
}

// Overtaken is our pending change that an attempt to request a larger size ends. It continues if nothing was sent.
type Overtaken struct{ Before, Ended v1alpha1.Change }

// Record enters the answer into the stored status. It returns the decisions that are new, the change if it has ended, and
// the decisions that answer the alarms. An answer to an attempt that is no longer the last one changes nothing.
func (a Answer) Record(c autopilot.Case, s *v1alpha1.Status) (answers, news []autopilot.Decision, ended []v1alpha1.Change) {
	c.Status = *s
	ch, ok := change.Pending(s.Changes, a.Attempt.Kind)
	if !ok {
		return nil, nil, nil
	}
	seen := c.Seen(ch)
	if a.Event != change.Checked {
		seen = change.Seen{Now: c.Now, HasRds: seen.HasRds, Failures: seen.Failures, Event: a.Event, Before: a.Before, JobID: a.JobID,
			Reason: string(a.Reason), Message: a.Message}
		if a.Reason == autopilot.ReasonRefused {
			seen.Reason = ""
		}
	}
	seen.RequestTime = a.Attempt.RequestTime
	next, moved := change.Move(ch, seen)
	if !moved {
		return nil, nil, nil
	}
	s.Changes = change.Put(s.Changes, &ch, next, c.Now)
	if next.State == v1alpha1.StateReplaced {
		ended = append(ended, next)
	}
	if a.Overtaken != nil && a.Event == change.Unsent {
		s.Changes = change.Put(s.Changes, &a.Overtaken.Ended, a.Overtaken.Before, c.Now)
	}
	if a.Event != change.Accepted {
		answers, news = a.reply(c, s, next)
	}
	setProgressing(s, c)
	Summarize(s)
	return answers, news, ended
}

// reply replaces the records of the decisions to make the change by what became of it.
func (a Answer) reply(c autopilot.Case, s *v1alpha1.Status, next v1alpha1.Change) (answers, news []autopilot.Decision) {
	for _, d := range a.News {
		s.Decisions = slices.DeleteFunc(slices.Clone(s.Decisions), func(r v1alpha1.DecisionRecord) bool {
			return r.Metric == d.Metric && r.Reason == string(d.Reason) && r.To == d.To && r.Time.Equal(autopilot.Seconds(d.Time))
		})
	}
	if a.Event == change.Unsent && a.Reason == "" {
		return nil, nil
	}
	for _, d := range a.Acting {
		d.Time = c.Now
		switch a.Event {
		case change.Rejected:
			d = d.Decline(autopilot.RefusalReason(*next.Refusal), next.Refusal.NextTime.Sub(c.Now), "%s", autopilot.DescribeRefused(next))
		case change.Unsent:
			d = d.Decline(a.Reason, c.Recheck, "Nothing was requested (%s): %s", autopilot.DescribeStep(a.Attempt), a.Message)
		default:
			d = a.declineRestored(c, d, next)
			SetCondition(s, v1alpha1.ConditionContested, true, string(d.Reason), d.Message, c.Generation, c.Now)
		}
		answers = append(answers, d)
	}
	if news = Decisions(s, answers, c.Now); len(answers) > 0 {
		hold(s, a.Attempt.Kind, answers[0].Reason, c.Now)
	}
	return answers, news
}

// declineRestored returns the decision on an alarm after the API server has accepted a patch and restored the old value.
func (a Answer) declineRestored(c autopilot.Case, d autopilot.Decision, last v1alpha1.Change) autopilot.Decision {
	step, _, _ := strings.Cut(d.Message, ":")
	wait := change.WeekSpan
	if last.Kind == v1alpha1.KindVolume {
		n, _ := c.ResetSize()
		wait = c.ResetSizeWait(n+1, d.Evidence)
	}
	return d.Decline(autopilot.ReasonContested, wait,
		"The Kubernetes API accepted the patch (%s) and restored the old value at once. Check admission policies and webhooks", step)
}
