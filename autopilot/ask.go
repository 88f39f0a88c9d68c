// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	jobPatience  = time.Hour // a job that takes longer is said loudly; the cloud says 5 to 15 minutes
	silenceFirst = 10 * time.Second
	silenceMost  = 2 * time.Minute // between two requests to a cloud that does not answer
)

// JobState is how far the cloud is with a job.
type JobState int

// The states of a job.
const (
	JobRunning JobState = iota
	JobDone
	JobFailed
	JobUnknown // the cloud does not know it, or no longer
)

// Job is what the cloud says of a change that it has begun.
type Job struct {
	State   JobState
	Message string // why it failed, in the cloud's words
}

// CloudAnswer is the cloud's answer to the request for a change.
type CloudAnswer struct {
	Kind    v1alpha1.ChangeKind
	To      string // the size in GB, or the flavor's code, that was asked for
	JobID   string // of the job that has begun; empty where it was refused
	Reason  Reason // why it has not begun, or is not known to
	Message string // in the cloud's words
}

// ToAsk is the change of ours that the cloud is to be asked for now, storage first; nil where there is none. A request is for
// an absolute size or flavor, so one that was made already changes nothing.
func (c Case) ToAsk() *v1alpha1.Intent {
	if c.Spec.Apply != v1alpha1.ApplyCloud || c.Mode != v1alpha1.ModeAuto || !c.Enabled || c.Shared || c.Instance == nil {
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

func (c Case) isDue(i *v1alpha1.Intent) bool {
	if i.JobID != "" && i.JobTime != nil && !Stalling(*i, c.Instance.observed(c.Status.Instance, c.Now), c.Now) {
		return false // a job that nobody may read, or that does nothing, does not keep the cloud from being asked again
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

// isOutdated reports whether somebody has changed the flavor since a change of it was decided on, even if it is back by now:
// nobody has measured that it is still needed.
func (c Case) isOutdated(i *v1alpha1.Intent) bool {
	last, changed := lastChanged(c.Status.Changes, v1alpha1.KindFlavor)
	return c.Instance.Flavor != i.From || changed && !i.EvidenceTime.After(last)
}

// isWithinCaps reports whether a flavor that was decided on is within the caps of now.
func (c Case) isWithinCaps(i *v1alpha1.Intent) bool {
	if i.Generation == c.Generation {
		return true
	}
	f, known := flavors.Find(c.Catalogue, i.To)
	vcpus, memory := caps(c.Spec, c.Status.Baseline)
	return known && f.VCPUs <= vcpus && f.MemoryGB <= memory
}

// isForGood reports whether a refusal is an answer to the change, and not to its moment. Where there is no Rds that asks for
// it, such a change is decided anew, and has no time of the next try from then on.
func isForGood(r *v1alpha1.Refusal) bool {
	return r != nil && (r.Reason == "" || r.NextTime != nil && Reason(r.Reason) != ReasonInstanceBusy && Reason(r.Reason) != CloudUnreachable)
}

// HoldsPlace reports whether a flavor may be changing for an intent.
func HoldsPlace(i v1alpha1.Intent) bool {
	return i.Kind == v1alpha1.KindFlavor && !isForGood(i.Refused())
}

// asksFor reports whether an intent is still asked for: by the Rds or, where there is none, by its being recorded.
func (c Case) asksFor(i *v1alpha1.Intent) bool {
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

// followJob is an intent once its job has ended without effect, and whether it has failed.
func (c Case) followJob(i *v1alpha1.Intent) (next *v1alpha1.Intent, failed bool) {
	job, known := c.Jobs[i.JobID]
	if i.JobID == "" || !known || job.State == JobRunning || c.intentState(i) == completed {
		return i, false
	}
	switch {
	case job.State == JobFailed:
		return c.refused(i, ReasonJobFailed, job.Message), true
	case job.State == JobDone && c.Instance.Status == StatusActive: // a flavor would be completed
		return c.refused(i, ReasonJobFailed, fmt.Sprintf("job %s has ended and the volume has %d GB", i.JobID, c.Instance.VolumeGB)), true
	case job.State == JobUnknown:
		next = i.DeepCopy()
		next.JobID, next.JobTime = "", nil
		return next, false
	}
	return i, false
}

// refused is an intent that the cloud does not make now.
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

// begun is an intent once the cloud makes it.
func (c Case) begun(i *v1alpha1.Intent, jobID string) *v1alpha1.Intent {
	i = i.DeepCopy()
	if jobID != "" {
		i.JobID, i.JobTime = jobID, micro(c.Now)
	}
	if i.AskedTime == nil {
		i.AskedTime = micro(c.Now)
	}
	if i.Refusal != nil && Reason(i.Refusal.Reason) != ReasonJobFailed { // else the next wait is longer
		i.Refusal = nil
	}
	return i
}

// recordAnswer enters the cloud's answer into the status, and returns the answers to the alarms. Where there is an Rds, its
// patch has been recorded already.
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

// refusalsFor are the answers to the alarms of an intent that the cloud refuses.
func (c Case) refusalsFor(i v1alpha1.Intent) []Decision {
	answers := c.decisionsFor(i)
	for n := range answers {
		answers[n] = answers[n].declineRefused(*i.Refusal, i.Refusal.NextTime.Sub(c.Now))
	}
	return answers
}

// DescribeRefusal says in a sentence why a change is not being made.
func DescribeRefusal(r v1alpha1.Refusal) string { return whoRefuses(r) + ": " + r.Message }

// whoRefuses says who refuses, and what that means.
func whoRefuses(r v1alpha1.Refusal) string {
	switch Reason(r.Reason) {
	case "":
		return "The Kubernetes API refuses it"
	case ReasonSoldOut:
		return "The cloud has none left of it"
	case ReasonQuotaExceeded:
		return "The cloud's quota does not allow it"
	case ReasonPaymentRequired:
		return "The cloud does not do it for this account, for want of payment"
	case ReasonNotPermitted:
		return "The credentials do not permit it"
	case ReasonInstanceBusy:
		return "The cloud is busy with the instance"
	case ReasonStorageFull:
		return "The cloud does not do it while the storage is full"
	case ReasonJobFailed:
		return "The cloud began it and failed"
	case CloudUnreachable:
		return "The cloud gave no clear answer to it"
	}
	return "The cloud refuses it"
}
