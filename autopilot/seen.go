// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// StallAfter is when a requested change counts as stalled. The cloud usually needs 5 to 15 minutes.
	StallAfter = change.Patience
	// JobPatience is when a job of the cloud is reported as stalled. The cloud's documents give 5 to 15 minutes.
	JobPatience = time.Hour
	// statusModifying is the beginning of an instance's status while its size or flavor changes.
	statusModifying = "MODIFYING"
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

// Seen returns what this check sees of a change, for the table of transitions. A size or flavor that is not known moves
// nothing.
func (c Case) Seen(ch v1alpha1.Change) change.Seen {
	_, failures := change.Backoff(c.Status.Changes, ch.Kind, c.Now)
	s := change.Seen{Now: c.Now, HasRds: !c.NoRds, Failures: failures}
	if c.Instance == nil {
		return s
	}
	has, wanted, last := c.Instance.Of(ch.Kind), c.Wanted.Of(ch.Kind), ""
	if seen := c.Status.Instance; seen != nil {
		last = Instance{VolumeGB: int(seen.VolumeGB), Flavor: seen.Flavor}.Of(ch.Kind)
	}
	s.IsChanging = strings.HasPrefix(c.Instance.Status, statusModifying)
	if has == "" {
		return s
	}
	s.IsAtFrom, s.HasLeft, s.IsNew = has == ch.From, has != ch.To && last == ch.To, has == ch.To && last != ch.To
	newest := slices.IndexFunc(c.Status.Changes, func(x v1alpha1.Change) bool { // what was refused has not begun
		return x.Kind == ch.Kind && x.To == ch.To && x.State != v1alpha1.StateRefused && x.State != v1alpha1.StateWithdrawn
	})
	s.IsNewest = newest >= 0 && change.IsSame(c.Status.Changes[newest], ch)
	flavor, _ := change.LastFlavor(c.Status.Changes)
	s.IsLast = change.IsSame(flavor, ch)
	s.Has = has == ch.To && (c.Instance.Status == StatusActive || !change.IsPending(ch))
	s.SpecHas, s.SpecRead = wanted == ch.To, c.IsSpecLive && wanted != ""
	if ch.Kind == v1alpha1.KindVolume {
		s.Has, s.SpecHas = c.Instance.VolumeGB >= Gigabytes(ch.To), c.Wanted.VolumeGB >= Gigabytes(ch.To)
	} else {
		smaller, known := c.isSmaller(wanted, ch) // without an Rds, Wanted is what the instance has
		s.IsSmaller = smaller && known
	}
	if !c.NoRds && !c.IsSpecLive { // a cache may lack our own patch
		s.SpecHas, s.IsSmaller = false, false
	}
	s.WasAccepted = c.Accepted != nil && c.Accepted.Equal(ch.RequestTime)
	if isSeenTwice := c.LastSeen == nil || ch.RequestTime != nil && !c.LastSeen.Before(ch.RequestTime.Time); isSeenTwice {
		s.Idle = c.idleSince(change.LastSign(ch))
	}
	if job, known := c.Jobs[ch.JobID]; known && ch.JobID != "" {
		s.JobRuns, s.JobHasFailed, s.Message = job.State == JobRunning, job.State == JobFailed, job.Message
		s.JobIsOver = c.isJobOver(ch, job)
	}
	return s
}

// NeedsLiveSpec reports whether the spec of the Rds must be read from the API server, because our last flavor is not what
// the spec or the cloud has: the cache may lack our patch, or what a person requests.
func (c Case) NeedsLiveSpec() bool {
	ours, ok := change.LastFlavor(c.Status.Changes)
	return ok && ours.State == v1alpha1.StateCompleted && !c.NoRds && !c.IsSpecLive && c.Instance != nil &&
		(c.Wanted.Flavor != ours.To || c.Instance.Flavor != ours.To)
}

// idleSince returns for how long the instance has been ready for a change that was requested at that time: since then, or
// since it is ACTIVE. A full instance is not busy, and may stay full for days.
func (c Case) idleSince(since time.Time) time.Duration {
	if c.Instance == nil || !c.Instance.Measurable() {
		return 0
	}
	seen := c.Instance.Observed(c.Status.Instance, c.Now)
	if seen.ActiveSince != nil && seen.ActiveSince.After(since) {
		since = seen.ActiveSince.Time
	}
	return c.Now.Sub(since)
}

// IsStalled reports whether a pending change of any writer should have arrived by now.
func (c Case) IsStalled(ch v1alpha1.Change) bool {
	return ch.RequestTime != nil && c.idleSince(change.LastSign(ch)) >= StallAfter
}

// isJobOver reports whether the cloud has ended the job of a change, and the instance was read long enough after that to
// show the result.
func (c Case) isJobOver(ch v1alpha1.Change, job Job) bool {
	if job.State != JobDone && job.State != JobFailed || !c.Instance.Measurable() {
		return false
	}
	since := job.EndTime
	if since.After(c.Now.Add(ClockSkew)) {
		since = c.Now.Add(-change.SettleTime) // one of both clocks is wrong
	}
	seen := c.Instance.Observed(c.Status.Instance, c.Now)
	if seen.ActiveSince != nil && seen.ActiveSince.After(since) {
		since = seen.ActiveSince.Time
	}
	if ch.StartTime != nil && ch.StartTime.After(since) {
		since = ch.StartTime.Time
	}
	return c.Now.Sub(since) >= change.SettleTime
}

// Of returns the size in GB or the flavor that the instance has; empty if it is not known.
func (i Instance) Of(kind v1alpha1.ChangeKind) string {
	if kind == v1alpha1.KindFlavor {
		return i.Flavor
	}
	if i.VolumeGB <= 0 {
		return ""
	}
	return strconv.Itoa(i.VolumeGB)
}

// NextAttempt returns our change of that kind that may be requested again, and when: one that was refused, or a volume
// whose request the cloud has not answered.
func (c Case) NextAttempt(kind v1alpha1.ChangeKind) (ch v1alpha1.Change, at time.Time, ok bool) {
	last, failures := change.Backoff(c.Status.Changes, kind, c.Now)
	if failures > 0 {
		at = last.Refusal.NextTime.Time
	}
	if ch, ok = change.Refused(c.Status.Changes, kind); ok {
		return ch, at, true
	}
	ch, ok = change.Pending(c.Status.Changes, kind)
	if !ok || !c.NoRds || kind != v1alpha1.KindVolume || ch.State != v1alpha1.StateRequested {
		return ch, at, false
	}
	return ch, ch.RequestTime.Add(change.Wait(failures + 1)), true
}

// awaitsAttempt reports whether a change of ours of that kind may be requested again.
func (c Case) awaitsAttempt(kind v1alpha1.ChangeKind) bool {
	_, _, ok := c.NextAttempt(kind)
	return ok
}
