// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
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
	// jobAppears is how long the cloud may not know a job that its reply has named. OTC's own SDK waits 10 seconds. The
	// cloud forgets jobs much later.
	jobAppears = 2 * time.Minute
)

// followJob returns the intent as not started if the cloud does not make it any more, and whether a person should know
// that: its job failed, ended without effect, or does nothing.
func followJob(c autopilot.Case, i *v1alpha1.Intent) (next *v1alpha1.Intent, failed bool) {
	if i.JobTime == nil && i.JobID == "" || c.Progress(i) == autopilot.Completed {
		return i, false
	}
	job, known := c.Jobs[i.JobID]
	age, patience := c.Now.Sub(autopilot.StartedAt(*i)), autopilot.StallAfter
	switch {
	case known && job.State == autopilot.JobFailed:
		return refused(c, i, autopilot.ReasonJobFailed, job.Message), true
	case known && c.IsJobDone(i):
		why := fmt.Sprintf("job %s has ended, but the volume still has %d GB", i.JobID, c.Instance.VolumeGB)
		return refused(c, i, autopilot.ReasonJobFailed, why), true
	case known && job.State == autopilot.JobUnknown && age < jobAppears:
		return i, false
	case known && job.State == autopilot.JobUnknown:
		next = i.DeepCopy()
		next.JobID, next.JobTime = "", nil
		return next, false
	case known && job.State == autopilot.JobRunning:
		patience = autopilot.JobPatience
	}
	isFull := c.Instance.Status == autopilot.StatusStorageFull // it is not busy, and may stay full for days
	if age >= patience && (isFull || autopilot.IsStalled(*i, c.Instance.Observed(c.Status.Instance, c.Now), c.Now)) {
		why := fmt.Sprintf("requested at %s, and the instance is %s", autopilot.TimeText(c.Now.Add(-age)), c.Instance.Status)
		return refused(c, i, autopilot.ReasonStalled, why), true
	}
	return i, false
}

// refused returns a copy of the intent with a refusal of the API server, whose reason is empty, or of the cloud, and
// the time of the next request. The intent has not started.
func refused(c autopilot.Case, i *v1alpha1.Intent, reason autopilot.Reason, message string) *v1alpha1.Intent {
	i = i.DeepCopy()
	r := &v1alpha1.Refusal{Count: 1, Time: *autopilot.Micro(c.Now), Message: message, Reason: string(reason)}
	if i.Refusal != nil && i.Refusal.Reason == r.Reason {
		r.Count += i.Refusal.Count
	}
	wait := autopilot.RefusalWait(r.Count)
	switch reason {
	case autopilot.ReasonInstanceBusy:
		wait = c.Recheck
	case autopilot.CloudUnreachable:
		wait = min(silenceFirst<<min(r.Count-1, 5), silenceMost)
	}
	r.NextTime = autopilot.Micro(c.Now.Add(wait))
	i.Refusal, i.JobID, i.JobTime = r, "", nil
	return i
}

// begun returns a copy of the intent after the cloud has accepted the request for it.
func begun(c autopilot.Case, i *v1alpha1.Intent, jobID string) *v1alpha1.Intent {
	i = i.DeepCopy()
	i.JobID, i.JobTime = jobID, autopilot.Micro(c.Now)
	switch r := i.Refusal; {
	case r == nil:
	case r.Reason == string(autopilot.ReasonJobFailed), r.Reason == string(autopilot.ReasonStalled):
		// It stays recorded, so that the wait after another failed job is longer.
	default:
		i.Refusal = nil
	}
	return i
}

// DropUnstarted removes the recorded changes that have not started.
func DropUnstarted(s *v1alpha1.Status, apply v1alpha1.Apply) {
	for _, at := range []**v1alpha1.Intent{&s.Pending, &s.Overtaken} {
		if *at == nil {
			continue
		}
		if p, _ := autopilot.RecordedProgress(**at, apply); p == autopilot.Unstarted {
			*at = nil
		}
	}
}
