package autopilot

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// storage holds the guards 4 to 12 for a full volume.
func (c Case) storage(a Alarm) Decision {
	d, inst := c.about(a), c.Instance
	d.From = strconv.Itoa(inst.VolumeGB)
	if held, ok := c.pending(d, v1alpha1.KindVolume); ok {
		return held
	}
	if c.Wanted.VolumeGB > inst.VolumeGB && !c.unpatched(v1alpha1.KindVolume) {
		return d.no(ReasonChangePending, c.Recheck, "The Rds asks for %d GB, the cloud has %d GB: that comes first", c.Wanted.VolumeGB, inst.VolumeGB)
	}
	switch inst.Status {
	case StatusActive:
	case StatusStorageFull:
		if lostAt(c.Status.Changes, d.From) {
			return d.no(ReasonStorageFull, c.Recheck, "The instance is in %s, and growing it was asked for once without effect: see to it in the cloud's console", inst.Status)
		}
	default:
		return d.no(ReasonInstanceBusy, c.Recheck, "The instance is in %s: storage grows once it is %s", inst.Status, StatusActive)
	}
	s := c.Spec.Storage
	if inst.VolumeGB >= int(s.MaxGB) {
		d.Cut = true
		return d.no(ReasonCapReached, 0, "Storage stays at %d GB: %s %% used, but spec.storage.maxGB is %d", inst.VolumeGB, d.value(), s.MaxGB)
	}
	to := NewSize(inst.VolumeGB, a.Evidence.UsedGB, int(s.StepGB), int(s.MaxGB), int(s.ThresholdPercent))
	d.Action, d.Reason, d.To = ActionGrowVolume, ReasonAlarmInForce, strconv.Itoa(to)
	d.Message = fmt.Sprintf("Storage %d → %d GB: %s %% used, alarm at %d %%", inst.VolumeGB, to, d.value(),
		Threshold(inst.VolumeGB, int(s.ThresholdPercent)))
	if wish := NewSize(inst.VolumeGB, a.Evidence.UsedGB, int(s.StepGB), math.MaxInt, int(s.ThresholdPercent)); wish > to {
		d.Cut = true
		d.Message += fmt.Sprintf("; %d GB are cut to spec.storage.maxGB", wish)
	}
	return c.bounded(d)
}

// bounded is guard 12: mode Recommend records the action and patches nothing.
func (c Case) bounded(d Decision) Decision {
	if c.Mode == v1alpha1.ModeRecommend {
		d.Reason = ReasonRecommend
		d.Message += " (recommended only)"
	}
	return d
}

// pending is guard 4, for a wish of that kind.
func (c Case) pending(d Decision, kind v1alpha1.ChangeKind) (Decision, bool) {
	for _, p := range []*v1alpha1.Intent{c.Status.Pending, c.Status.Overtaken} {
		if p == nil || c.standing(p) != waiting {
			continue
		}
		age := c.Now.Sub(p.DecisionTime.Time)
		if kind == v1alpha1.KindVolume && p.Kind == v1alpha1.KindFlavor && age >= flavorFirst {
			continue // a wish that the operator cannot fulfill must not let the disk run full
		}
		switch {
		case c.Instance.Status == StatusStorageFull && p.Kind == v1alpha1.KindVolume:
			return d.no(ReasonStorageFull, c.Recheck, "The instance is in %s: %s was asked for once, and the cloud may refuse it", StatusStorageFull, change(*p)), true
		case Stalling(*p, c.Instance.observed(c.Status.Instance, c.Now), c.Now):
			return d.no(ReasonStalled, c.Recheck, "%s was asked for %s ago and has not come, though the instance is %s: look at the operator", change(*p), spell(age), StatusActive), true
		}
		return d.no(ReasonChangePending, c.Recheck, "%s is under way", change(*p)), true
	}
	return d, false
}

func (c Case) unpatched(kind v1alpha1.ChangeKind) bool {
	p := c.Status.Pending
	return p != nil && p.Kind == kind && c.standing(p) == unpatched
}

// lostAt reports whether growing from that size was tried in vain.
func lostAt(changes []v1alpha1.Change, from string) bool {
	for _, ch := range changes {
		if ch.Kind == v1alpha1.KindVolume && ch.From == from && ch.Outcome == v1alpha1.OutcomeLost {
			return true
		}
	}
	return false
}

// Stalling reports whether an intent should have come by now: it is old, and the instance could have followed it for long.
func Stalling(i v1alpha1.Intent, inst *v1alpha1.Instance, now time.Time) bool {
	if inst == nil || inst.Status != StatusActive || inst.ActiveSince != nil && now.Sub(inst.ActiveSince.Time) < stallAfter {
		return false
	}
	return now.Sub(i.DecisionTime.Time) >= stallAfter
}
