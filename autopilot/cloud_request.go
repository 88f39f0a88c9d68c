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

// CloudAnswer is the cloud's answer to the request for a change.
type CloudAnswer struct {
	Kind    v1alpha1.ChangeKind
	To      string // the requested size in GB, or the code of the requested flavor
	JobID   string // id of the started job; empty if the cloud refused the change
	Reason  Reason // why the change was not started, or may not have been; empty if it was started
	Message string // the cloud's text
	Unsent  bool   // a read before the request failed, so nothing was requested
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

// isBusyWith reports whether the instance is being changed shortly after a request for the intent that it may stem
// from: the answer to the request was lost, or the cloud was busy because an operator applies the Rds.
func (c Case) isBusyWith(i *v1alpha1.Intent) bool {
	r := i.Refusal
	if r == nil || c.Spec.Apply != v1alpha1.ApplyCloud || c.Now.Sub(r.Time.Time) >= stallAfter || !strings.HasPrefix(c.Instance.Status, statusModifying) {
		return false
	}
	return r.Reason == CloudUnreachable || r.Reason == string(ReasonInstanceBusy) && c.isRequested(i)
}

// isJobDone reports whether the cloud has completed the intent's job, and the instance was read long enough after that
// to show the result. The list of instances may be older than the state of the job.
func (c Case) isJobDone(i *v1alpha1.Intent) bool {
	job := c.Jobs[i.JobID]
	if i.JobID == "" || job.State != JobDone || c.Instance.Status != StatusActive {
		return false
	}
	since := job.EndTime
	if since.After(c.Now.Add(clockSkew)) {
		since = c.Now.Add(-settleTime) // one of both clocks is wrong
	}
	if seen := c.Instance.observed(c.Status.Instance, c.Now).ActiveSince; seen.After(since) {
		since = seen.Time
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
	patience := stallAfter
	switch {
	case known && job.State == JobFailed:
		return c.refused(i, ReasonJobFailed, job.Message), true
	case known && c.isJobDone(i):
		return c.refused(i, ReasonJobFailed, fmt.Sprintf("job %s has ended, but the volume still has %d GB", i.JobID, c.Instance.VolumeGB)), true
	case known && job.State == JobUnknown:
		next = i.DeepCopy()
		next.JobID, next.JobTime = "", nil
		return next, false
	case known && job.State == JobRunning:
		patience = jobPatience
	}
	if IsStalled(*i, c.Instance.observed(c.Status.Instance, c.Now), c.Now) && c.Now.Sub(startedAt(*i)) >= patience {
		return c.refused(i, ReasonStalled, fmt.Sprintf("requested %s ago, and the instance is %s", durationText(c.Now.Sub(startedAt(*i))), c.Instance.Status)), true
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
	case ReasonInstanceBusy:
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
		answers[n] = d.decline(CloudUnreachable, c.Recheck, "The change was not requested (%s): %s", describeIntent(i), message)
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
