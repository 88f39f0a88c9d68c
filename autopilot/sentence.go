// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// DurationText returns a duration in words, in at most two units, rounded up.
func DurationText(d time.Duration) string {
	count := func(n int64, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return fmt.Sprintf("%d %ss", n, unit)
	}
	two := func(d, large, small time.Duration, largeUnit, smallUnit string) string {
		n := int64(math.Ceil(float64(d) / float64(small)))
		each := int64(large / small)
		if n%each == 0 {
			return count(n/each, largeUnit)
		}
		return count(n/each, largeUnit) + " " + count(n%each, smallUnit)
	}
	const day = 24 * time.Hour
	switch {
	case d <= 59*time.Second:
		return count(int64(math.Ceil(max(0, d.Seconds()))), "second")
	case d <= 59*time.Minute:
		return count(int64(math.Ceil(d.Minutes())), "minute")
	case d < 2*day:
		return two(d, time.Hour, time.Minute, "hour", "minute")
	}
	return two(d, day, time.Hour, "day", "hour")
}

// TimeText returns a time for a sentence.
func TimeText(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// DescribeStep names a change in a sentence.
func DescribeStep(ch v1alpha1.Change) string {
	if ch.Kind == v1alpha1.KindVolume {
		return fmt.Sprintf("Storage %s → %s GB", ch.From, ch.To)
	}
	return fmt.Sprintf("Flavor %s → %s", ch.From, ch.To)
}

// DescribeChange returns a sentence that says how a change ended.
func DescribeChange(ch v1alpha1.Change) string {
	what := DescribeStep(ch)
	switch {
	case !change.IsOurs(ch):
		return what + ": changed by another writer"
	case ch.State == v1alpha1.StateLost:
		return what + " was requested, and there is no trace of it. It counts, because it may have begun"
	case ch.State == v1alpha1.StateReplaced:
		return what + " was replaced: something else is requested now"
	case ch.State == v1alpha1.StateReverted:
		return what + " was in the cloud, which has left it although the Rds still requests it"
	case ch.State == v1alpha1.StateFailed && ch.Refusal != nil:
		return what + " has failed: " + ch.Refusal.Message
	case ch.State == v1alpha1.StateWithdrawn:
		return what + " was refused, and is withdrawn"
	case ch.RequestTime == nil:
		return what + " is done"
	}
	return fmt.Sprintf("%s is done, %s after the request", what, DurationText(ch.EndTime.Sub(ch.RequestTime.Time)))
}

// TimesText returns "once" or a number of times.
func TimesText(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// ResetText returns the sentence that our size is no longer requested. It names a writer only if the spec was seen with
// that size.
func (c Case) ResetText(last v1alpha1.Change) string {
	if last.State == v1alpha1.StateLost {
		return fmt.Sprintf("There is no trace of the request for %s GB: the Rds requests %d GB", last.To, c.Wanted.VolumeGB)
	}
	return fmt.Sprintf("%s reset the size from %s to %d GB", WriterText(c.SizeWriter), last.To, c.Wanted.VolumeGB)
}

// ContestText returns the sentence that another writer replaced our flavor.
func (c Case) ContestText(ours v1alpha1.Change) string {
	return fmt.Sprintf("%s replaced flavor %s by %s. The flavor stays for 7 days unless the spec changes",
		WriterText(c.FlavorWriter), ours.To, c.Wanted.Flavor)
}

// WriterText names a field manager for the beginning of a sentence.
func WriterText(manager string) string {
	if manager == "" {
		return "Another writer"
	}
	return fmt.Sprintf("Field manager %q", manager)
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
		return "The cloud did not make the change"
	case CloudUnreachable:
		return "The cloud gave no clear answer to the request"
	}
	return "The cloud refuses the change"
}

// EnginePostgreSQL is the only engine of which Cloud Eye has a gauge of WAL.
const EnginePostgreSQL = "PostgreSQL"

// walShare is the share of the used space from which WAL is named: a fifth. Less is usual under load.
const walShare = 0.2

// WAL is what Cloud Eye measures of the write-ahead log of a PostgreSQL instance.
type WAL struct {
	GB            float64
	InactiveSlots int // logical replication slots that nobody reads
}

// Describe returns a sentence if WAL is at least a fifth of the used space in GB, else an empty text.
func (w WAL) Describe(usedGB float64) string {
	if usedGB <= 0 || w.GB < walShare*usedGB || w.GB > usedGB {
		return ""
	}
	keeps := ""
	switch {
	case w.InactiveSlots == 1:
		keeps = ", and 1 inactive logical replication slot keeps WAL"
	case w.InactiveSlots > 1:
		keeps = fmt.Sprintf(", and %d inactive logical replication slots keep WAL", w.InactiveSlots)
	}
	return fmt.Sprintf("%.0f of the %.0f GB in use are WAL%s: growing does not fix this", w.GB, usedGB, keeps)
}
