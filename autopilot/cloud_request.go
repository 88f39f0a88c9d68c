// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// A job that takes longer than jobPatience is reported as stalled. The cloud's documents give 5 to 15 minutes.
	jobPatience = time.Hour
	// statusModifying is the beginning of an instance's status while its size or flavor changes.
	statusModifying = "MODIFYING"
	// silenceFirst is the wait before the first retry of a request that the cloud did not answer. Each retry doubles
	// it.
	silenceFirst = 10 * time.Second
	// silenceMost limits the wait between two such retries, so that a change starts soon after an outage.
	silenceMost = 2 * time.Minute
)

// JobState is the state of a job of the cloud.
type JobState int

// The states of a job.
const (
	JobRunning JobState = iota
	JobDone
	JobFailed
	JobUnknown // the cloud does not know the job, or no longer
)

// Job describes a change that the cloud has started.
type Job struct {
	State   JobState
	Message string    // the cloud's text, if the job failed
	EndTime time.Time // by the cloud's clock; zero if the job runs, or if the cloud does not tell
}

// Started returns when a change started, or nil if it has not: when the cloud accepted the request or, with apply:
// Operator, when the API server accepted the patch of the Rds; or when a check first found the change in the cloud.
// Cooldown, budget, contest and --max-flavor-changes count from this time. A change that has not started is no promise:
// each check decides it again.
func Started(i v1alpha1.Intent, apply v1alpha1.Apply) *metav1.MicroTime {
	if i.JobTime != nil || apply == v1alpha1.ApplyCloud {
		return i.JobTime
	}
	return i.AskedTime
}

// MayHaveStarted reports whether a change has started, or its last request got no clear answer. It also returns since
// when. Such a change stays recorded while autopilot is off, and a flavor counts against --max-flavor-changes.
func MayHaveStarted(i v1alpha1.Intent, apply v1alpha1.Apply) (since time.Time, ok bool) {
	switch at := Started(i, apply); {
	case at != nil:
		return at.Time, true
	case i.Refusal == nil: // the service may have stopped during the request
		return i.DecisionTime.Time, true
	case i.Refusal.Reason == CloudUnreachable:
		return i.Refusal.Time.Time, true
	}
	return time.Time{}, false
}

// DropUnstarted removes the recorded changes that have not started.
func DropUnstarted(s *v1alpha1.Status, apply v1alpha1.Apply) {
	for _, at := range []**v1alpha1.Intent{&s.Pending, &s.Overtaken} {
		if i := *at; i != nil {
			if _, ok := MayHaveStarted(*i, apply); !ok {
				*at = nil
			}
		}
	}
}

// isRequested reports whether the Rds requests the intent's flavor, or at least its size.
func (c Case) isRequested(i *v1alpha1.Intent) bool {
	return !c.NoRds && c.Wanted.Includes(*i)
}

// isUnclear reports whether the cloud may have started the intent within the last 15 minutes without our knowledge.
func (c Case) isUnclear(i *v1alpha1.Intent) bool {
	since, ok := MayHaveStarted(*i, c.Spec.Apply)
	return ok && c.Spec.Apply == v1alpha1.ApplyCloud && i.JobTime == nil && c.Now.Sub(since) < stallAfter
}

// isBusyWith reports whether the instance is being changed, and the change may be the intent's: whether the cloud has
// started it is unclear, or the cloud was busy with it because an operator applies the Rds.
func (c Case) isBusyWith(i *v1alpha1.Intent) bool {
	if c.Spec.Apply != v1alpha1.ApplyCloud || !strings.HasPrefix(c.Instance.Status, statusModifying) {
		return false
	}
	r := i.Refusal
	wasBusy := r != nil && r.Reason == string(ReasonInstanceBusy) && c.Now.Sub(r.Time.Time) < stallAfter
	return c.isUnclear(i) || wasBusy && c.isRequested(i)
}

// isJobDone reports whether the cloud has completed the intent's job, and the instance was read long enough after that
// to show the result. The list of instances may be older than the state of the job.
func (c Case) isJobDone(i *v1alpha1.Intent) bool {
	job := c.Jobs[i.JobID]
	if i.JobID == "" || job.State != JobDone || !c.Instance.Measurable() {
		return false
	}
	since := job.EndTime
	if since.After(c.Now.Add(clockSkew)) {
		since = c.Now.Add(-settleTime) // one of both clocks is wrong
	}
	seen := c.Instance.observed(c.Status.Instance, c.Now)
	if seen.ActiveSince != nil && seen.ActiveSince.After(since) {
		since = seen.ActiveSince.Time
	}
	if i.JobTime != nil && i.JobTime.After(since) {
		since = i.JobTime.Time
	}
	return c.Now.Sub(since) >= settleTime
}

// followJob returns the intent as not started if the cloud does not make it any more, and whether a person should know
// that: its job failed, ended without effect, or does nothing.
func (c Case) followJob(i *v1alpha1.Intent) (next *v1alpha1.Intent, failed bool) {
	if i.JobTime == nil && i.JobID == "" || c.intentState(i) == completed {
		return i, false
	}
	job, known := c.Jobs[i.JobID]
	age, patience := c.Now.Sub(startedAt(*i)), stallAfter
	switch {
	case known && job.State == JobFailed:
		return c.refused(i, ReasonJobFailed, job.Message), true
	case known && c.isJobDone(i):
		why := fmt.Sprintf("job %s has ended, but the volume still has %d GB", i.JobID, c.Instance.VolumeGB)
		return c.refused(i, ReasonJobFailed, why), true
	case known && job.State == JobUnknown:
		next = i.DeepCopy()
		next.JobID, next.JobTime = "", nil
		return next, false
	case known && job.State == JobRunning:
		patience = jobPatience
	}
	isFull := c.Instance.Status == StatusStorageFull // it is not busy, and may stay full for days
	if age >= patience && (isFull || IsStalled(*i, c.Instance.observed(c.Status.Instance, c.Now), c.Now)) {
		why := fmt.Sprintf("requested at %s, and the instance is %s", at(c.Now.Add(-age)), c.Instance.Status)
		return c.refused(i, ReasonStalled, why), true
	}
	return i, false
}

// refused returns a copy of the intent with a refusal of the API server, whose reason is empty, or of the cloud, and
// the time of the next request. The intent has not started.
func (c Case) refused(i *v1alpha1.Intent, reason Reason, message string) *v1alpha1.Intent {
	i = i.DeepCopy()
	r := &v1alpha1.Refusal{Count: 1, Time: *micro(c.Now), Message: message, Reason: string(reason)}
	if i.Refusal != nil && i.Refusal.Reason == r.Reason {
		r.Count += i.Refusal.Count
	}
	wait := refusalWait(r.Count)
	switch reason {
	case ReasonInstanceBusy, ReasonChangePending:
		wait = c.Recheck
	case CloudUnreachable:
		wait = min(silenceFirst<<min(r.Count-1, 5), silenceMost)
	}
	r.NextTime = micro(c.Now.Add(wait))
	i.Refusal, i.JobID, i.JobTime = r, "", nil
	return i
}

// begun returns a copy of the intent after the cloud has accepted the request for it.
func (c Case) begun(i *v1alpha1.Intent, jobID string) *v1alpha1.Intent {
	i = i.DeepCopy()
	i.JobID, i.JobTime = jobID, micro(c.Now)
	if r := i.Refusal; r != nil && Reason(r.Reason) != ReasonJobFailed && Reason(r.Reason) != ReasonStalled {
		i.Refusal = nil // otherwise it stays recorded, so that the wait after another failed job is longer
	}
	return i
}
