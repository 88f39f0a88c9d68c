// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// CloudAnswer is the cloud's answer to the request for a change.
type CloudAnswer struct {
	Kind    v1alpha1.ChangeKind
	To      string // the requested size in GB, or the code of the requested flavor
	JobID   string // id of the started job; empty if the cloud refused the change
	Reason  Reason // why the change was not started, or may not have been; empty if it was started
	Message string // the cloud's text
	Unsent  bool   // a read before the request failed, so nothing was requested
	// IsOutOfOrder means that the cloud grows a read replica first (DBS.200308).
	IsOutOfOrder bool
}

// recordAnswer enters the cloud's answer into the status and returns the decisions that it leads to.
func (c Case) recordAnswer(s *v1alpha1.Status, a CloudAnswer) []Decision {
	for _, at := range []**v1alpha1.Intent{&s.Pending, &s.Overtaken} {
		i := *at
		switch {
		case i == nil || i.Kind != a.Kind || i.To != a.To:
			continue
		case a.Unsent:
			return c.unsentFor(*i, a.Message)
		case a.Reason != "":
			*at = c.refused(i, a.Reason, a.Message)
			return c.refusalsFor(**at)
		}
		*at = c.begun(i, a.JobID)
		return c.decisionsFor(**at)
	}
	return nil
}

// unsentFor returns the decisions on the alarms of an intent that was not requested, because a read before the request
// failed.
func (c Case) unsentFor(i v1alpha1.Intent, message string) []Decision {
	answers := c.decisionsFor(i)
	for n, d := range answers {
		d.To = ""
		answers[n] = d.decline(CloudUnreachable, c.Recheck, "The cloud did not answer before the request (%s): %s",
			describeIntent(i), message)
	}
	return answers
}

// refusalsFor returns the decisions on the alarms of an intent that the cloud refuses.
func (c Case) refusalsFor(i v1alpha1.Intent) []Decision {
	answers := c.decisionsFor(i)
	for n := range answers {
		answers[n] = answers[n].declineRefused(*i.Refusal, i.Refusal.NextTime.Sub(c.Now))
	}
	return answers
}

// DescribeRefusal returns a sentence that says why a change is not made.
func DescribeRefusal(r v1alpha1.Refusal) string { return refusalText(r) + ": " + r.Message }

// refusalText returns the meaning of a refusal, without the text of the API server or the cloud.
func refusalText(r v1alpha1.Refusal) string {
	switch Reason(r.Reason) {
	case "":
		return "The Kubernetes API refuses the patch"
	case ReasonSoldOut:
		return "The cloud has no capacity left"
	case ReasonQuotaExceeded:
		return "The cloud's quota does not allow the change"
	case ReasonPaymentRequired:
		return "The cloud makes no changes until the account is paid"
	case ReasonNotPermitted:
		return "The credentials do not permit the change"
	case ReasonChangePending:
		return "A read replica grows first"
	case ReasonInstanceBusy:
		return "The cloud is busy with the instance"
	case ReasonStorageFull:
		return "The cloud refuses the change while the storage is full"
	case ReasonJobFailed:
		return "The cloud started the change and failed"
	case ReasonStalled:
		return "The cloud accepted the change and did not make it"
	case CloudUnreachable:
		return "The cloud gave no clear answer to the request"
	}
	return "The cloud refuses the change"
}
