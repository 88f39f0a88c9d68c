// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// silenceFirst is the wait before the first retry of a request that the cloud did not answer. Each retry doubles
	// it.
	silenceFirst = 10 * time.Second
	// silenceMost limits the wait between two such retries, so that a change starts soon after an outage.
	silenceMost = 2 * time.Minute
)

// failureOf returns why the cloud does not make a change that it has accepted: its job failed, ended without effect, or
// does nothing. The reason is empty while the change goes on.
func failureOf(c autopilot.Case, ch *v1alpha1.Change) (reason autopilot.Reason, why string) {
	if ch.StartTime == nil && ch.JobID == "" || c.Progress(ch) == autopilot.Completed {
		return "", ""
	}
	job, known := c.Jobs[ch.JobID]
	age, patience := c.Now.Sub(autopilot.StartedAt(*ch)), autopilot.StallAfter
	switch {
	case known && job.State == autopilot.JobFailed:
		return autopilot.ReasonJobFailed, job.Message
	case known && c.IsJobDone(ch):
		return autopilot.ReasonJobFailed, fmt.Sprintf("job %s has ended, but the volume still has %d GB", ch.JobID,
			c.Instance.VolumeGB)
	case known && job.State == autopilot.JobRunning:
		patience = autopilot.JobPatience
	}
	isFull := c.Instance.Status == autopilot.StatusStorageFull // it is not busy, and may stay full for days
	if age >= patience && (isFull || autopilot.IsStalled(*ch, c.Instance.Observed(c.Status.Instance, c.Now), c.Now)) {
		return autopilot.ReasonStalled, fmt.Sprintf("requested at %s, and the instance is %s",
			autopilot.TimeText(c.Now.Add(-age)), c.Instance.Status)
	}
	return "", ""
}

// newRefusal returns a refusal of the API server, whose reason is empty, or of the cloud, with the time of the next
// request. last is the refusal before it, or nil.
func newRefusal(c autopilot.Case, last *v1alpha1.Refusal, reason autopilot.Reason, message string) *v1alpha1.Refusal {
	r := &v1alpha1.Refusal{Count: 1, Time: *autopilot.Micro(c.Now), Message: message, Reason: string(reason)}
	if last != nil && last.Reason == r.Reason {
		r.Count += last.Count
	}
	wait := autopilot.RefusalWait(r.Count)
	switch reason {
	case autopilot.ReasonInstanceBusy:
		wait = c.Recheck
	case autopilot.CloudUnreachable:
		wait = min(silenceFirst<<min(r.Count-1, 5), silenceMost)
	}
	r.NextTime = autopilot.Micro(c.Now.Add(wait))
	return r
}

// refuse records that a pending change was refused, so that it has not started.
func refuse(c autopilot.Case, ch *v1alpha1.Change, reason autopilot.Reason, message string) {
	ch.Refusal, ch.JobID, ch.StartTime = newRefusal(c, ch.Refusal, reason, message), "", nil
}

// fail ends a change that the cloud accepted and did not make. The wait after another failed one is longer.
func fail(c autopilot.Case, ch *v1alpha1.Change, reason autopilot.Reason, message string) {
	i := slices.IndexFunc(c.Status.Changes, func(x v1alpha1.Change) bool {
		return x.Kind == ch.Kind && x.IsDecided() && !x.IsPending()
	})
	var last *v1alpha1.Refusal
	if i >= 0 && c.Status.Changes[i].Outcome == v1alpha1.OutcomeFailed {
		last = c.Status.Changes[i].Refusal
	}
	ch.Refusal = newRefusal(c, last, reason, message)
	end(ch, v1alpha1.OutcomeFailed, c.Now)
}

func end(ch *v1alpha1.Change, o v1alpha1.Outcome, now time.Time) {
	ch.Outcome, ch.CompletionTime = o, *autopilot.Micro(now)
	if o == v1alpha1.OutcomeCompleted {
		ch.Refusal = nil
	}
}

// withdraw ends a pending change that was never requested, or only refused.
func withdraw(s *v1alpha1.Status, ch *v1alpha1.Change, now time.Time) {
	o := v1alpha1.OutcomeWithdrawn
	if ch.Refusal != nil {
		o = v1alpha1.OutcomeRefused
	}
	end(ch, o, now)
	put(s, *ch)
}
