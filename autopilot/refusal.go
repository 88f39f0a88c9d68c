// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"fmt"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// RefusalReason returns the reason of decisions on a refused change.
func RefusalReason(r v1alpha1.Refusal) Reason { return cmp.Or(Reason(r.Reason), ReasonRefused) }

// DescribeRefusal returns a sentence that says why a change is not made.
func DescribeRefusal(r v1alpha1.Refusal) string { return refusalText(r) + ": " + r.Message }

// DescribeRefused returns a sentence that says which change is refused, and why.
func DescribeRefused(ch v1alpha1.Change) string {
	return fmt.Sprintf("%s (%s): %s", refusalText(*ch.Refusal), DescribeStep(ch), ch.Refusal.Message)
}

// refusalText returns the meaning of a refusal, without the text of the API server or the cloud.
func refusalText(r v1alpha1.Refusal) string {
	switch Reason(r.Reason) {
	case "":
		return "The Kubernetes API refuses the patch"
	case ReasonSoldOut:
		return "The cloud does not offer the requested size or flavor"
	case ReasonQuotaExceeded:
		return "The cloud's quota does not allow the change"
	case ReasonPaymentRequired:
		return "The cloud makes no changes until the account is paid"
	case ReasonNotPermitted:
		return "The credentials do not permit the change"
	case ReasonInstanceBusy:
		return "The cloud is busy with the instance"
	case ReasonStorageFull:
		return "The cloud refuses the change while the storage is full"
	case ReasonJobFailed:
		return "The cloud started the change and failed"
	case ReasonStalled:
		return "The cloud did not make the change"
	case CloudUnreachable:
		return "The cloud gave no clear answer to the request"
	}
	return "The cloud refuses the change"
}
