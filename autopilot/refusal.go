// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// longestWait limits the wait after a refusal, so that a change is requested soon after its cause is gone.
const longestWait = 15 * time.Minute

// RefusalWait returns how long to wait after so many refusals: 1, 2, 4 … up to 15 minutes.
func RefusalWait(count int32) time.Duration {
	return min(time.Minute<<min(max(count-1, 0), 4), longestWait)
}

// UntilRetry returns how long to wait before a refused change is requested again.
func UntilRetry(r v1alpha1.Refusal, now time.Time) time.Duration {
	if r.NextTime != nil {
		return r.NextTime.Sub(now)
	}
	return RefusalWait(r.Count) - now.Sub(r.Time.Time)
}

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
		return "The cloud accepted the change and did not make it"
	case CloudUnreachable:
		return "The cloud gave no clear answer to the request"
	}
	return "The cloud refuses the change"
}
