// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// maxHold is two hours because a flavor change that takes longer has failed, and must not block others.
	maxHold = 2 * time.Hour
	// DaySpan is how long a change counts against the budget, and may still turn out to be in the cloud or be replaced.
	DaySpan = 24 * time.Hour
	// WeekSpan is how long a contest, and changes without effect, prevent changes of flavor.
	WeekSpan = 7 * 24 * time.Hour
	// longestWait limits the wait after a refusal, so that a change is requested soon after its cause is gone.
	longestWait = 15 * time.Minute
	// keptOurs and keptOthers are how many changes of each kind the list keeps for people, besides those that count.
	keptOurs, keptOthers = 8, 4
)

// IsOurs reports whether the autopilot has decided the change.
func IsOurs(ch v1alpha1.Change) bool { return ch.By == v1alpha1.ByAutopilot }

// IsPending reports whether the change may be in progress.
func IsPending(ch v1alpha1.Change) bool {
	return ch.State == v1alpha1.StateRequested || ch.State == v1alpha1.StateStarted
}

// Pending returns our pending change of that kind. At most one is.
func Pending(list []v1alpha1.Change, kind v1alpha1.ChangeKind) (v1alpha1.Change, bool) {
	return find(list, kind, isOurPending)
}

// AnyPending reports whether a change of ours is pending.
func AnyPending(list []v1alpha1.Change) bool { return slices.ContainsFunc(list, isOurPending) }

func isOurPending(ch v1alpha1.Change) bool { return IsOurs(ch) && IsPending(ch) }

// Refused returns our change of that kind that waits for its next attempt.
func Refused(list []v1alpha1.Change, kind v1alpha1.ChangeKind) (v1alpha1.Change, bool) {
	return find(list, kind, func(ch v1alpha1.Change) bool { return ch.State == v1alpha1.StateRefused })
}

// RequestedByOther returns the change of that kind that is a request of another writer.
func RequestedByOther(list []v1alpha1.Change, kind v1alpha1.ChangeKind) (v1alpha1.Change, bool) {
	return find(list, kind, IsRequestOfOther)
}

// IsRequestOfOther reports whether another writer requests the change in the Rds, and the cloud has not made it.
func IsRequestOfOther(ch v1alpha1.Change) bool { return !IsOurs(ch) && IsPending(ch) }

// IsRequestOfOurs reports whether a size or flavor that the Rds requests and the cloud does not have is ours. One that was
// given up is not, because then a person requests it.
func IsRequestOfOurs(list []v1alpha1.Change, kind v1alpha1.ChangeKind, to string) bool {
	isOthers := false // the cloud has had another one since
	ch, _ := find(list, kind, func(ch v1alpha1.Change) bool {
		_, counts := StartOf(ch)
		is := ch.To == to && (counts || ch.State == v1alpha1.StateCompleted)
		isOthers = isOthers || !is && !IsOurs(ch) && ch.State == v1alpha1.StateCompleted
		return is
	})
	return IsOurs(ch) && (IsPending(ch) || ch.State == v1alpha1.StateCompleted && !isOthers || ch.State == v1alpha1.StateReverted)
}

// StartOf returns when a change of ours started. It returns false if the change has certainly not begun and counts for
// nothing.
func StartOf(ch v1alpha1.Change) (at time.Time, ok bool) {
	ok = IsOurs(ch) && ch.State != v1alpha1.StateRefused && ch.State != v1alpha1.StateWithdrawn
	return LastSign(ch), ok
}

// LastSign returns the latest of the times at which a change was requested, was seen changing and ended.
func LastSign(ch v1alpha1.Change) time.Time {
	at := ch.EndTime.Time
	for _, t := range []*metav1.MicroTime{ch.RequestTime, ch.StartTime} {
		if t != nil && t.After(at) {
			at = t.Time
		}
	}
	return at
}

// IsSame reports whether two entries, of which one may be a copy, are one.
func IsSame(a, b v1alpha1.Change) bool {
	return a.Kind == b.Kind && a.By == b.By && a.To == b.To && a.State == b.State && a.RequestTime.Equal(b.RequestTime) &&
		a.EndTime.Equal(&b.EndTime)
}

// FlavorStarts returns when our changes of flavor started, newest first.
func FlavorStarts(list []v1alpha1.Change) (starts []time.Time) {
	for _, ch := range list {
		if at, ok := StartOf(ch); ok && ch.Kind == v1alpha1.KindFlavor {
			starts = append(starts, at)
		}
	}
	return starts
}

// LastFlavor returns our last change of flavor that counts as a start.
func LastFlavor(list []v1alpha1.Change) (v1alpha1.Change, bool) {
	return find(list, v1alpha1.KindFlavor, func(ch v1alpha1.Change) bool { _, ok := StartOf(ch); return ok })
}

// HoldsPlace reports whether a pending change takes one of the places of --max-flavor-changes, for at most two hours.
func HoldsPlace(list []v1alpha1.Change, now time.Time) bool {
	ch, ok := Pending(list, v1alpha1.KindFlavor)
	return ok && now.Sub(LastSign(ch)) < maxHold
}

// LastGrowth returns our last completed growth of the volume.
func LastGrowth(list []v1alpha1.Change) (v1alpha1.Change, bool) {
	return find(list, v1alpha1.KindVolume, func(ch v1alpha1.Change) bool { return IsOurs(ch) && ch.State == v1alpha1.StateCompleted })
}

// LastChanged returns when the cloud last completed or reverted a change of that kind by any writer. A flavor may have been
// completed before it was replaced; a size was not.
func LastChanged(list []v1alpha1.Change, kind v1alpha1.ChangeKind) (last time.Time, ok bool) {
	ch, ok := find(list, kind, func(ch v1alpha1.Change) bool {
		return ch.State == v1alpha1.StateCompleted || ch.State == v1alpha1.StateReverted ||
			kind == v1alpha1.KindFlavor && ch.State == v1alpha1.StateReplaced
	})
	return ch.EndTime.Time, ok
}

// Resets returns how often in a row our size was taken back, or left no trace, before the cloud had it, and the last of
// these changes. Only those within 24 hours from that size and under that policy count.
func Resets(list []v1alpha1.Change, from string, generation int64, now time.Time) (n int, last v1alpha1.Change) {
	for _, ch := range list {
		isReset := ch.State == v1alpha1.StateReplaced || ch.State == v1alpha1.StateLost && ch.Refusal == nil
		if _, counts := StartOf(ch); ch.Kind != v1alpha1.KindVolume || IsPending(ch) || !counts && IsOurs(ch) {
			continue
		} else if !isReset || ch.From != from || ch.Generation != generation || now.Sub(ch.EndTime.Time) >= DaySpan {
			break
		}
		if n++; n == 1 {
			last = ch
		}
	}
	return n, last
}

// Backoff returns the last of our changes of that kind whose latest attempt has failed within a day, and how many attempts
// in a row have. A change that has begun since ends the row.
func Backoff(list []v1alpha1.Change, kind v1alpha1.ChangeKind, now time.Time) (last v1alpha1.Change, failures int32) {
	ch, _ := find(list, kind, func(ch v1alpha1.Change) bool {
		saysNothing := ch.Refusal == nil && (ch.State == v1alpha1.StateRequested || ch.State == v1alpha1.StateLost)
		return IsOurs(ch) && !saysNothing
	})
	if ch.Refusal == nil || now.Sub(ch.Refusal.Time.Time) >= DaySpan {
		return last, 0
	}
	return ch, ch.Refusal.Count
}

// newRefusal returns the refusal of a change, with the time of the next attempt.
func newRefusal(ch v1alpha1.Change, s Seen, reason, message string) *v1alpha1.Refusal {
	failures := s.Failures
	if ch.Refusal != nil {
		failures = max(failures, ch.Refusal.Count)
	}
	return &v1alpha1.Refusal{
		Count: failures + 1, Time: *micro(s.Now), Reason: reason, Message: message, NextTime: micro(s.Now.Add(Wait(failures + 1))),
	}
}

// Wait returns how long to wait after so many failures: 1, 2, 4 … up to 15 minutes.
func Wait(failures int32) time.Duration {
	return min(time.Minute<<min(max(failures-1, 0), 4), longestWait)
}

// Put returns the list, without what nothing counts any more, with a change as its newest entry in place of former, which is
// nil for a new change. Lists have the newest first.
func Put(list []v1alpha1.Change, former *v1alpha1.Change, ch v1alpha1.Change, now time.Time) []v1alpha1.Change {
	next := slices.DeleteFunc(slices.Clone(list), func(x v1alpha1.Change) bool { return former != nil && IsSame(x, *former) })
	if ch.State != "" {
		next = keep(append([]v1alpha1.Change{ch}, next...), now)
	}
	return next
}

// keep returns the list without what no guard counts and what is not among the newest. It keeps what is pending or
// refused, our flavors of 7 days, our last completed growth and, of each kind, the newest of ours and of others, and the
// last that was withdrawn.
func keep(list []v1alpha1.Change, now time.Time) (kept []v1alpha1.Change) {
	count := make(map[string]int)
	among := func(ch v1alpha1.Change, what string, most int) bool {
		count[what+string(ch.Kind)]++
		return count[what+string(ch.Kind)] <= most
	}
	for _, ch := range list {
		at, counts := StartOf(ch)
		is := IsPending(ch) || ch.State == v1alpha1.StateRefused
		switch {
		case ch.State == v1alpha1.StateWithdrawn:
			is = among(ch, "withdrawn", 1)
		case !IsOurs(ch):
			is = among(ch, "others", keptOthers)
		case counts:
			isGrown := ch.Kind == v1alpha1.KindVolume && ch.State == v1alpha1.StateCompleted && among(ch, "grown", 1)
			isWeek := ch.Kind == v1alpha1.KindFlavor && now.Sub(at) < WeekSpan
			is = among(ch, "ours", keptOurs) || isGrown || isWeek || is
		}
		if is {
			kept = append(kept, ch)
		}
	}
	return kept
}

func find(list []v1alpha1.Change, kind v1alpha1.ChangeKind, is func(v1alpha1.Change) bool) (v1alpha1.Change, bool) {
	i := slices.IndexFunc(list, func(ch v1alpha1.Change) bool { return ch.Kind == kind && is(ch) })
	if i < 0 {
		return v1alpha1.Change{}, false
	}
	return list[i], true
}
