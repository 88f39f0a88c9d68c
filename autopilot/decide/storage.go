// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// growth is the size to which a volume would grow, in GB.
type growth struct {
	to      int // the size to request
	decided int // the size that the used space leads to
	needed  int // the size that the used space would lead to without a cap
}

// isOther reports whether the size is that of another writer, because it is larger than the used space leads to.
func (g growth) isOther() bool { return g.to > g.decided }

// growthOf returns the size for the used space of an alarm. If the Rds requests a larger size than the cloud has, no
// smaller one is requested. Sizes never exceed the cap, unless the volume does already.
func growthOf(c autopilot.Case, a autopilot.Alarm) growth {
	has, most := c.Instance.VolumeGB, c.MaxGB()
	g := growth{decided: c.NewSize(a, most), needed: c.NewSize(a, math.MaxInt)}
	g.to = g.decided
	if c.Wanted.VolumeGB > has {
		g.to = min(max(g.decided, autopilot.RoundUp(c.Wanted.VolumeGB)), most)
	}
	return g
}

func growVolume(c autopilot.Case, a autopilot.Alarm) autopilot.Decision {
	g, has := growthOf(c, a), c.Instance.VolumeGB
	d := newDecision(c, a)
	d.Action, d.Reason = autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce
	d.To = strconv.Itoa(g.to)
	d.Message = fmt.Sprintf("Storage %d → %d GB: %s %% used, alarm at %d %%", has, g.to, d.ValueText(),
		autopilot.Threshold(has, int(c.Spec.Storage.ThresholdPercent)))
	if g.isOther() {
		d.Message += fmt.Sprintf("; the Rds requests %d GB", c.Wanted.VolumeGB)
	}
	if c.Instance.Status == autopilot.StatusStorageFull {
		d.Message += "; the instance is in " + autopilot.StatusStorageFull +
			" (read-only), and the cloud may refuse the growth"
	} else if c.IsReadOnly(a) {
		d.Message += "; the database is read-only until it has grown"
	}
	if g.needed > g.to {
		d.Capped = true
		d.Message += fmt.Sprintf("; %d GB are needed, clamped to spec.storage.maxGB", g.needed)
	}
	return d
}

func checkStorageFirst(w *walk, _ *change) answer {
	if w.isGrowing {
		return no(autopilot.ReasonChangePending, w.c.Recheck, "Storage grows first, then the flavor changes")
	}
	return answer{}
}

func checkPending(w *walk, ch *change) answer {
	c := *w.c
	for _, p := range c.Status.PendingChanges() {
		if c.Progress(p) != autopilot.Started {
			continue
		}
		if ch.kind == volume && p.Kind == flavor && c.Now.Sub(autopilot.StartedAt(*p)) >= flavorFirst {
			continue // a flavor that the operator cannot change must not let the disk run full
		}
		return pending(c, *p)
	}
	if ch.kind == volume && c.Wanted.VolumeGB > c.Instance.VolumeGB {
		return checkOtherSize(c, ch.alarms[0])
	}
	return answer{}
}

// pending returns the answer while a change of ours is in progress.
func pending(c autopilot.Case, p v1alpha1.Change) answer {
	since := autopilot.StartedAt(p)
	switch {
	case c.Instance.Status == autopilot.StatusStorageFull && p.Kind == volume:
		return no(autopilot.ReasonStorageFull, c.Recheck, "The instance is in %s. %s was requested, and the cloud may refuse it",
			autopilot.StatusStorageFull, autopilot.DescribeStep(p))
	case p.JobID != "" && p.StartTime != nil && c.Now.Sub(p.StartTime.Time) >= autopilot.JobPatience:
		return no(autopilot.ReasonStalled, c.Recheck,
			"%s has been in progress since %s, and the cloud's job %s has not ended. Contact the cloud's support",
			autopilot.DescribeStep(p), autopilot.TimeText(p.StartTime.Time), p.JobID)
	case autopilot.IsStalled(p, c.Instance.Observed(c.Status.Instance, c.Now), c.Now):
		advice := "Check the operator"
		if p.StartTime != nil {
			advice = "The cloud has not reported the end of its job"
		}
		return no(autopilot.ReasonStalled, c.Recheck, "%s was requested at %s and is not done, although the instance is %s. %s",
			autopilot.DescribeStep(p), autopilot.TimeText(since), autopilot.StatusActive, advice)
	}
	return no(autopilot.ReasonChangePending, c.Recheck, "%s is in progress", autopilot.DescribeStep(p))
}

// checkOtherSize waits while the cloud has not made the size that another writer requested in the Rds. If that request
// has stalled and the database is about to become read-only, a larger size of ours is requested. With apply: Cloud
// nothing waits: the autopilot itself requests the size of the Rds.
func checkOtherSize(c autopilot.Case, a autopilot.Alarm) answer {
	if c.Spec.Apply == v1alpha1.ApplyCloud {
		return answer{}
	}
	since, stalled := stalledRequest(c, volume)
	switch {
	case !stalled:
		return no(autopilot.ReasonChangePending, c.Recheck,
			"The Rds requests %d GB and the cloud still has %d GB. That change comes first", c.Wanted.VolumeGB,
			c.Instance.VolumeGB)
	case growthOf(c, a).to > c.Wanted.VolumeGB && c.IsNearlyReadOnly(a.Evidence):
		return answer{}
	}
	return no(autopilot.ReasonStalled, c.Recheck,
		"The Rds has requested %d GB since %s and the cloud still has %d GB, although the instance is %s. Check the operator, or correct spec.volumesize",
		c.Wanted.VolumeGB, autopilot.TimeText(since), c.Instance.VolumeGB, c.Instance.Status)
}

// stalledRequest returns since when the cloud has not made a change that another writer requested in the Rds, and
// whether that change is overdue.
func stalledRequest(c autopilot.Case, kind v1alpha1.ChangeKind) (since time.Time, stalled bool) {
	for _, ch := range c.Status.Changes {
		if ch.Kind != kind || !ch.IsPending() || ch.IsDecided() || ch.RequestTime == nil {
			continue
		}
		since = ch.RequestTime.Time
		if c.Instance.Status == autopilot.StatusStorageFull { // a full instance is not busy, and may stay full for days
			return since, c.Now.Sub(since) >= autopilot.StallAfter
		}
		return since, autopilot.Overdue(since, c.Instance.Observed(c.Status.Instance, c.Now), c.Now)
	}
	return since, false
}

func checkCaps(w *walk, ch *change) answer {
	if ch.kind == flavor {
		if stop := checkAvailable(w, ch, false); stop.capped {
			return stop
		}
		return answer{}
	}
	c := *w.c
	if c.Instance.VolumeGB < c.MaxGB() {
		return answer{}
	}
	stop := no(autopilot.ReasonCapReached, 0, "Storage stays at %d GB: %s %% used, but %s", c.Instance.VolumeGB,
		newDecision(c, ch.alarms[0]).ValueText(), c.MaxGBText())
	stop.capped = true
	return stop
}

func checkActive(w *walk, ch *change) answer {
	c, has := w.c, w.c.Instance
	isReady, effect := has.Status == autopilot.StatusActive, "the flavor changes"
	if ch.kind == volume {
		isReady, effect = has.Measurable(), "storage grows"
	}
	switch {
	case !isReady:
		return no(autopilot.ReasonInstanceBusy, c.Recheck, "The instance is in %s: %s once it is %s", has.Status, effect,
			autopilot.StatusActive)
	case ch.kind == volume:
		return answer{}
	}
	needed := min(settledFor, autopilot.Cooldown(c.Spec))
	remaining := needed
	if seen := c.Status.Instance; seen != nil && seen.ActiveSince != nil {
		remaining = needed - c.Now.Sub(seen.ActiveSince.Time)
	}
	if remaining > 0 {
		return no(autopilot.ReasonInstanceBusy, remaining, "The flavor stays %s until the instance has been %s for %s",
			has.Flavor, autopilot.StatusActive, autopilot.DurationText(needed))
	}
	return answer{}
}
