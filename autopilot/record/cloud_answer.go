// SPDX-License-Identifier: Apache-2.0

package record

import (
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// CloudAnswer is the cloud's answer to the request for a change.
type CloudAnswer struct {
	Kind    v1alpha1.ChangeKind
	To      string           // the requested size in GB, or the code of the requested flavor
	JobID   string           // id of the started job; empty if the cloud refused the change
	Reason  autopilot.Reason // why the change was not started, or may not have been; empty if it was started
	Message string           // the cloud's text
	Unsent  bool             // a read before the request failed, so nothing was requested
}

// recordAnswer enters the cloud's answer into the status and returns the decisions that it leads to.
func recordAnswer(c autopilot.Case, s *v1alpha1.Status, a CloudAnswer) []autopilot.Decision {
	for _, at := range []**v1alpha1.Intent{&s.Pending, &s.Overtaken} {
		i := *at
		switch {
		case i == nil || i.Kind != a.Kind || i.To != a.To:
			continue
		case a.Unsent:
			return unsentFor(c, *i, a.Message)
		case a.Reason != "":
			*at = refused(c, i, a.Reason, a.Message)
			return refusalsFor(c, **at)
		}
		*at = begun(c, i, a.JobID)
		return decisionsFor(c, **at)
	}
	return nil
}

// unsentFor returns the decisions on the alarms of an intent that was not requested, because a read before the request
// failed.
func unsentFor(c autopilot.Case, i v1alpha1.Intent, message string) []autopilot.Decision {
	answers := decisionsFor(c, i)
	for n, d := range answers {
		answers[n] = d.Decline(autopilot.CloudUnreachable, c.Recheck, "The cloud did not answer before the request (%s): %s",
			autopilot.DescribeIntent(i), message)
	}
	return answers
}

// refusalsFor returns the decisions on the alarms of an intent that the cloud refuses.
func refusalsFor(c autopilot.Case, i v1alpha1.Intent) []autopilot.Decision {
	answers := decisionsFor(c, i)
	for n := range answers {
		answers[n] = declineRefused(c, answers[n], i)
	}
	return answers
}

// declineRefused returns the decision that the API server or the cloud refuses the change of an intent.
func declineRefused(c autopilot.Case, d autopilot.Decision, i v1alpha1.Intent) autopilot.Decision {
	return d.Decline(autopilot.RefusalReason(*i.Refusal), i.Refusal.NextTime.Sub(c.Now), "%s",
		autopilot.DescribeRefusedIntent(i))
}
