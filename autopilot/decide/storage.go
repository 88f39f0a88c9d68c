// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// growthOf returns the size in GB to request for the used space of an alarm. If the Rds requests a size that is no
// multiple of 10, which the cloud cannot make, it is at least the next multiple.
func growthOf(c autopilot.Case, a autopilot.Alarm) int {
	to, most := c.NewSize(a, c.MaxGB()), c.MaxGB()
	if wanted := c.Wanted.VolumeGB; wanted > c.Instance.VolumeGB && wanted != autopilot.RoundUp(wanted) {
		to = min(max(to, autopilot.RoundUp(wanted)), most)
	}
	return to
}

func growVolume(c autopilot.Case, a autopilot.Alarm) autopilot.Decision {
	has, to, needed := c.Instance.VolumeGB, growthOf(c, a), c.NewSize(a, math.MaxInt)
	d := newDecision(c, a)
	d.Action, d.Reason = autopilot.ActionGrowVolume, autopilot.ReasonAlarmInForce
	d.To = strconv.Itoa(to)
	d.Message = fmt.Sprintf("Storage %d → %d GB: %s %% used, alarm at %d %%", has, to, d.ValueText(),
		autopilot.Threshold(has, int(c.Spec.Storage.ThresholdPercent)))
	if c.Instance.Status == autopilot.StatusStorageFull {
		d.Message += "; the instance is in " + autopilot.StatusStorageFull +
			" (read-only), and the cloud may refuse the growth"
	} else if c.IsReadOnly(a) {
		d.Message += "; the database is read-only until it has grown"
	}
	if needed > to {
		d.Capped = true
		d.Message += fmt.Sprintf("; %d GB are needed, clamped to spec.storage.maxGB", needed)
	}
	return d
}

func checkStorageFirst(w *walk, _ *proposal) answer {
	if w.isGrowing {
		return no(autopilot.ReasonChangePending, w.c.Recheck, "Storage grows first, then the flavor changes")
	}
	return answer{}
}

func checkPending(w *walk, ch *proposal) answer {
	c := *w.c
	for _, kind := range []v1alpha1.ChangeKind{volume, flavor} {
		p, ok := change.Pending(c.Status.Changes, kind)
		if !ok || ch.kind == volume && isOvertaken(c, p, ch.alarms[0]) {
			continue
		}
		return pending(c, p)
	}
	if wanted := c.Wanted; ch.kind == volume && wanted.VolumeGB > c.Instance.VolumeGB &&
		!change.IsRequestOfOurs(c.Status.Changes, volume, wanted.Of(volume)) {
		return checkOtherSize(c, ch.alarms[0])
	}
	return answer{}
}

// isOvertaken reports whether storage grows although a change of ours is pending: a flavor that has had its 10 minutes, a
// size that the cloud has not confirmed and that is still needed, or a stalled size if the database needs a larger one now.
func isOvertaken(c autopilot.Case, p v1alpha1.Change, a autopilot.Alarm) bool {
	if p.Kind == flavor {
		return c.Now.Sub(p.RequestTime.Time) >= flavorFirst // a full disk is the greater risk
	}
	to := growthOf(c, a)
	if _, at, ok := c.NextAttempt(volume); ok {
		return !c.Now.Before(at) && to >= autopilot.Gigabytes(p.To)
	}
	return !c.NoRds && c.IsStalled(p) && c.IsNearlyReadOnly(a.Evidence) && to > max(autopilot.Gigabytes(p.To), c.Wanted.VolumeGB)
}

// pending returns the answer while a change of ours is in progress.
func pending(c autopilot.Case, p v1alpha1.Change) answer {
	step, since := autopilot.DescribeStep(p), autopilot.TimeText(p.RequestTime.Time)
	switch {
	case p.JobID != "" && p.StartTime != nil && c.Now.Sub(p.StartTime.Time) >= autopilot.JobPatience:
		return no(autopilot.ReasonStalled, c.Recheck,
			"%s has been in progress since %s, and the cloud's job %s has not ended. Contact the cloud's support",
			step, autopilot.TimeText(p.StartTime.Time), p.JobID)
	case c.IsStalled(p) && c.NoRds:
		return no(autopilot.ReasonStalled, c.Recheck, "%s was requested at %s and is not done, although the instance is %s. The cloud has not reported the end of its job",
			step, since, c.Instance.Status)
	case c.IsStalled(p):
		return no(autopilot.ReasonStalled, c.Recheck, "%s was requested at %s, and the operator has not made it, although the instance is %s. Check the operator, or go round it: in the cloud's console, or with an RdsAutopilot of another name and instanceID",
			step, since, c.Instance.Status)
	case c.Instance.Status == autopilot.StatusStorageFull && p.Kind == volume:
		return no(autopilot.ReasonStorageFull, c.Recheck, "The instance is in %s. %s was requested, and the cloud may refuse it",
			autopilot.StatusStorageFull, step)
	}
	return no(autopilot.ReasonChangePending, c.Recheck, "%s is in progress", step)
}

// checkOtherSize waits while the cloud has not made the size that another writer requested in the Rds. If that request
// has stalled and the database is about to become read-only, a larger size of ours is requested.
func checkOtherSize(c autopilot.Case, a autopilot.Alarm) answer {
	since, stalled := stalledRequest(c, volume)
	switch {
	case !stalled:
		return no(autopilot.ReasonChangePending, c.Recheck,
			"The Rds requests %d GB and the cloud still has %d GB. That change comes first", c.Wanted.VolumeGB,
			c.Instance.VolumeGB)
	case growthOf(c, a) > c.Wanted.VolumeGB && c.IsNearlyReadOnly(a.Evidence):
		return answer{}
	}
	return no(autopilot.ReasonStalled, c.Recheck,
		"The Rds has requested %d GB since %s and the cloud still has %d GB, although the instance is %s. Check the operator, or correct spec.volumesize",
		c.Wanted.VolumeGB, autopilot.TimeText(since), c.Instance.VolumeGB, c.Instance.Status)
}

// stalledRequest returns since when the cloud has not made a change that another writer requested in the Rds, and
// whether that change is overdue.
func stalledRequest(c autopilot.Case, kind v1alpha1.ChangeKind) (since time.Time, stalled bool) {
	ch, ok := change.RequestedByOther(c.Status.Changes, kind)
	return change.LastSign(ch), ok && c.IsStalled(ch)
}

func checkCaps(w *walk, ch *proposal) answer {
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

func checkActive(w *walk, ch *proposal) answer {
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
