// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// A job that takes longer than jobPatience is reported as stalled. The cloud's documents give 5 to 15 minutes.
	jobPatience = time.Hour
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
	Message string // the cloud's text, if the job failed
}

// CloudAnswer is the cloud's answer to the request for a change.
type CloudAnswer struct {
	Kind    v1alpha1.ChangeKind
	To      string // the requested size in GB, or the code of the requested flavor
	JobID   string // id of the started job; empty if the cloud refused the change
	Reason  Reason // why the change was not started, or may not have been; empty if it was started
	Message string // the cloud's text
}

// NextCloudRequest returns the intent to request from the cloud now, storage first, or nil. A request names an absolute
// size or flavor, so repeating it changes nothing.
func (c Case) NextCloudRequest() *v1alpha1.Intent {
	if c.Spec.Apply != v1alpha1.ApplyCloud || c.Mode != v1alpha1.ModeAuto || !c.Enabled || c.ClaimedBy != "" || c.Instance == nil {
		return nil
	}
	var found *v1alpha1.Intent
	for _, i := range c.Status.Intents() {
		if c.isDue(i) && (found == nil || i.Kind == v1alpha1.KindVolume) {
			found = i
		}
	}
	return found
}

// isDue reports whether the intent must be requested from the cloud now.
func (c Case) isDue(i *v1alpha1.Intent) bool {
	if i.JobID != "" && i.JobTime != nil && !IsStalled(*i, c.Instance.observed(c.Status.Instance, c.Now), c.Now) {
		return false // the job is still in time; a stalled one, or one that we may not read, does not prevent a new request
	}
	if r := i.Refused(); c.intentState(i) != waiting || r != nil && r.NextTime != nil && c.Now.Before(r.NextTime.Time) {
		return false
	}
	if i.Kind == v1alpha1.KindVolume {
		to := gigabytes(i.To)
		return (c.Instance.Status == StatusActive || c.Instance.Status == StatusStorageFull) && to > c.Instance.VolumeGB && to <= int(c.Spec.Storage.MaxGB)
	}
	return c.Instance.Status == StatusActive && !c.isOutdated(i) && c.untilWindowOpens() <= 0 && c.isWithinCaps(i)
}

// isOutdated reports whether the flavor has changed since the decision, even if it has changed back. Then the evidence
// of the decision is no longer valid.
func (c Case) isOutdated(i *v1alpha1.Intent) bool {
	last, changed := lastChanged(c.Status.Changes, v1alpha1.KindFlavor)
	return c.Instance.Flavor != i.From || changed && !i.EvidenceTime.After(last)
}

// isWithinCaps reports whether the intended flavor is within the present caps.
func (c Case) isWithinCaps(i *v1alpha1.Intent) bool {
	if i.Generation == c.Generation {
		return true
	}
	f, known := flavors.Find(c.Catalogue, i.To)
	vcpus, memory := caps(c.Spec, c.Status.Baseline)
	return known && f.VCPUs <= vcpus && f.MemoryGB <= memory
}

// isForGood reports whether a refusal is about the change itself and not about the moment of the request. Without an
// Rds that requests it, such a change is decided again from current evidence.
func isForGood(r *v1alpha1.Refusal) bool {
	return r != nil && (r.Reason == "" || r.NextTime != nil && Reason(r.Reason) != ReasonInstanceBusy && Reason(r.Reason) != CloudUnreachable)
}

// OccupiesFlavorSlot reports whether the flavor of a database may be changing because of the intent. It then counts against
// --max-flavor-changes.
func OccupiesFlavorSlot(i v1alpha1.Intent) bool {
	return i.Kind == v1alpha1.KindFlavor && !isForGood(i.Refused())
}

// isRequested reports whether the spec of the Rds still requests the intent. Without an Rds, the recorded intent is the
// request.
func (c Case) isRequested(i *v1alpha1.Intent) bool {
	switch {
	case !c.NoRds && i.Kind == v1alpha1.KindFlavor:
		return c.Wanted.Flavor == i.To
	case !c.NoRds:
		return c.Wanted.VolumeGB >= gigabytes(i.To)
	case i.JobID != "":
		return i.Kind == v1alpha1.KindVolume || c.Instance.Flavor == i.From
	case i.Kind == v1alpha1.KindFlavor && c.isOutdated(i):
		return false
	}
	return c.Mode == v1alpha1.ModeAuto && !isForGood(i.Refused())
}

// followJob returns the intent after its job has ended without effect, and whether the job failed.
func (c Case) followJob(i *v1alpha1.Intent) (next *v1alpha1.Intent, failed bool) {
	job, known := c.Jobs[i.JobID]
	if i.JobID == "" || !known || job.State == JobRunning || c.intentState(i) == completed {
		return i, false
	}
	switch {
	case job.State == JobFailed:
		return c.refused(i, ReasonJobFailed, job.Message), true
	case job.State == JobDone && c.Instance.Status == StatusActive: // a flavor would count as completed
		return c.refused(i, ReasonJobFailed, fmt.Sprintf("job %s has ended, but the volume still has %d GB", i.JobID, c.Instance.VolumeGB)), true
	case job.State == JobUnknown:
		next = i.DeepCopy()
		next.JobID, next.JobTime = "", nil
		return next, false
	}
	return i, false
}

// refused returns a copy of the intent with a refusal of the cloud and the time of the next request.
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
	if c.NoRds && isForGood(r) {
		i.AskedTime = nil
	}
	return i
}

// begun returns a copy of the intent after the cloud has started it.
func (c Case) begun(i *v1alpha1.Intent, jobID string) *v1alpha1.Intent {
	i = i.DeepCopy()
	if jobID != "" {
		i.JobID, i.JobTime = jobID, micro(c.Now)
	}
	if i.AskedTime == nil {
		i.AskedTime = micro(c.Now)
	}
	if i.Refusal != nil && Reason(i.Refusal.Reason) != ReasonJobFailed { // a failed job stays recorded, so that the next wait is longer
		i.Refusal = nil
	}
	return i
}

// recordAnswer enters the cloud's answer into the status and returns the decisions that it leads to. With an Rds, the
// decision was recorded with the patch.
func (c Case) recordAnswer(s *v1alpha1.Status, a CloudAnswer) []Decision {
	for _, at := range []**v1alpha1.Intent{&s.Pending, &s.Overtaken} {
		i := *at
		if i == nil || i.Kind != a.Kind || i.To != a.To {
			continue
		}
		if a.Reason != "" {
			*at = c.refused(i, a.Reason, a.Message)
			return c.refusalsFor(**at)
		}
		*at = c.begun(i, a.JobID)
		if i.AskedTime == nil {
			return c.decisionsFor(**at)
		}
	}
	return nil
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
	case CloudUnreachable:
		return "The cloud gave no clear answer to the request"
	}
	return "The cloud refuses the change"
}
