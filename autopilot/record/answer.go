// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Answer is what must be stored about the request for a change: the cloud's answer, or that the API server did not
// accept the patch.
type Answer struct {
	Kind v1alpha1.ChangeKind
	To   string // the requested size in GB, or the code of the requested flavor
	// Reason is why the change was not started, or may not have been; empty if the cloud has started it. It is
	// ReasonContested if the API server accepted the patch and restored the old value at once.
	Reason  autopilot.Reason
	Message string // the text of the API server or of the cloud
	JobID   string // id of the started job
	// Acting are the decisions to make the change whose records are new. The record of a refusal replaces them.
	Acting []autopilot.Decision
	Unsent bool // a read before the request failed, so nothing was requested
}

// Record enters the answer into the stored status. It returns the decisions that it leads to, those of them that are
// new, and the change if it has ended. An answer to a change that is no longer pending changes nothing.
func (a Answer) Record(c autopilot.Case, s *v1alpha1.Status) (
	answers, news []autopilot.Decision, ended []v1alpha1.Change) {
	ch := s.Pending(a.Kind)
	if ch == nil || ch.To != a.To {
		return nil, nil, nil
	}
	if ch.RequestTime == nil && (a.Reason == "" || a.Reason == autopilot.ReasonContested) {
		ch.RequestTime = autopilot.Micro(c.Now)
	}
	switch {
	case a.Reason == "":
		ch.JobID, ch.StartTime, ch.Refusal = a.JobID, autopilot.Micro(c.Now), nil
		put(s, *ch)
		return nil, nil, nil
	case a.Reason == autopilot.ReasonContested:
		end(ch, v1alpha1.OutcomeLost, c.Now)
	case !a.Unsent:
		refuse(c, ch, a.Reason, a.Message)
	}
	put(s, *ch)
	if !ch.IsPending() {
		ended = append(ended, s.Changes[0])
	}
	for _, d := range DecisionsFor(c, *ch) {
		switch {
		case a.Reason == autopilot.ReasonContested:
			d = declineReverted(c, d, *ch)
		case a.Unsent:
			d = d.Decline(a.Reason, c.Recheck, "The cloud did not answer before the request (%s): %s",
				autopilot.DescribeStep(*ch), a.Message)
		default:
			d = d.Decline(autopilot.RefusalReason(*ch.Refusal), ch.Refusal.NextTime.Sub(c.Now), "%s",
				autopilot.DescribeRefused(*ch))
		}
		answers = append(answers, d)
	}
	a.dropRecords(s)
	news = Decisions(s, answers, c.Now)
	if len(answers) > 0 {
		hold(s, ch.Kind, answers[0].Reason, c.Now)
	}
	if a.Reason == autopilot.ReasonContested && len(answers) > 0 {
		SetCondition(s, v1alpha1.ConditionContested, true, string(a.Reason), answers[0].Message, c.Generation, c.Now)
	}
	setProgressing(s, c)
	Summarize(s)
	return answers, news, ended
}

// dropRecords removes the records that were stored with a change before it was requested.
func (a Answer) dropRecords(s *v1alpha1.Status) {
	for _, d := range a.Acting {
		s.Decisions = slices.DeleteFunc(slices.Clone(s.Decisions), func(r v1alpha1.DecisionRecord) bool {
			return r.Metric == d.Metric && r.Reason == string(d.Reason) && r.To == d.To && r.Time.Equal(autopilot.Seconds(d.Time))
		})
	}
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
