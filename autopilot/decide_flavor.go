// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// settledFor is how long an instance must have been ACTIVE before its flavor changes, at most: an operator may still
// be applying older wishes.
const settledFor = 15 * time.Minute

// decideFlavor decides on CPU and memory, which one change serves together: the guards of docs/decisions.md from pending
// changes on.
func (c Case) decideFlavor(alarms []Alarm, storageActs bool) (Decision, []flavors.Candidate) {
	d, inst := c.newDecision(alarms[0]), c.Instance
	d.From = inst.Flavor
	if storageActs {
		return d.decline(ReasonChangePending, c.Recheck, "Storage goes first, then the flavor"), nil
	}
	if held, ok := c.checkPending(d, v1alpha1.KindFlavor); ok {
		return held, nil
	}
	if held, ok := c.checkRolledBack(d); ok {
		return held, nil
	}
	if c.Wanted.Flavor != inst.Flavor && c.unpatched(v1alpha1.KindFlavor) == nil {
		if since, stalled := c.stalledRequest(v1alpha1.KindFlavor); stalled {
			return d.decline(ReasonStalled, c.Recheck, "The Rds has asked for %s since %s and the cloud still has %s, though the instance is %s: look at the operator, or correct spec.flavorref", c.Wanted.Flavor, at(since), inst.Flavor, StatusActive), nil
		}
		return d.decline(ReasonChangePending, c.Recheck, "The Rds asks for %s, the cloud has %s: that comes first", c.Wanted.Flavor, inst.Flavor), nil
	}
	if inst.Status != StatusActive {
		return d.decline(ReasonInstanceBusy, c.Recheck, "The instance is in %s: the flavor changes once it is %s", inst.Status, StatusActive), nil
	}
	if remaining := c.settleRemaining(); remaining > 0 {
		return d.decline(ReasonInstanceBusy, remaining, "The flavor stays %s until the instance has been %s for %s", inst.Flavor, StatusActive, durationText(c.settleNeeded())), nil
	}
	if c.Catalogue == nil {
		return d.decline(ReasonNoData, dataAgain, "The cloud's flavors could not be read"), nil
	}
	required := c.requirements(alarms)
	if required.Current.VCPUs <= 0 || required.Current.MemoryGB <= 0 {
		return d.decline(ReasonNoData, soldOutAgain, "How many vCPUs and GB of memory %s has is not known: neither a larger flavor nor a cap can be judged", inst.Flavor), nil
	}
	if required.MaxVCPUs <= 0 || required.MaxMemoryGB <= 0 {
		return d.decline(ReasonNoData, soldOutAgain, "The size of the instance at first arming is not known, so the flavor has no cap: set spec.flavor.maxVCPUs and spec.flavor.maxMemoryGB"), nil
	}
	ladder := flavors.Ladder(c.Catalogue, required)
	next, ok := flavors.Next(ladder)
	if !ok {
		return c.declineLadder(d, ladder), ladder
	}
	for _, r := range inst.Replicas {
		if inst.Engine == "PostgreSQL" && (next.VCPUs > r.VCPUs || next.MemoryGB > r.MemoryGB) {
			return d.decline(ReasonReplicaTooSmall, soldOutAgain, "%s (%d vCPUs, %d GB) is larger than the read replica %s (%d vCPUs, %d GB): enlarge the replica first", next.Code, next.VCPUs, next.MemoryGB, r.Name, r.VCPUs, r.MemoryGB), ladder
		}
	}
	if held := c.checkHistory(d, alarms); held.Reason != "" {
		return held, ladder
	}
	d.Action, d.Reason, d.To = ActionChangeFlavor, ReasonAlarmInForce, next.Code
	d.Message = fmt.Sprintf("Flavor %s (%d vCPUs, %d GB) → %s (%d vCPUs, %d GB): %s", inst.Flavor,
		required.Current.VCPUs, required.Current.MemoryGB, next.Code, next.VCPUs, next.MemoryGB, c.usage(alarms))
	return c.checkMode(d), ladder
}

// settleNeeded is how long an instance must have been ACTIVE before its flavor changes.
func (c Case) settleNeeded() time.Duration { return min(settledFor, c.cooldown()) }

// settleRemaining is how long the instance must still stay ACTIVE.
func (c Case) settleRemaining() time.Duration {
	need, seen := c.settleNeeded(), c.Status.Instance
	if seen == nil || seen.ActiveSince == nil {
		return need
	}
	return need - c.Now.Sub(seen.ActiveSince.Time)
}

// requirements are what the next flavor must satisfy.
func (c Case) requirements(alarms []Alarm) flavors.Requirements {
	inst := c.Instance
	r := flavors.Requirements{Version: inst.Version, Zones: inst.Zones, Offered: c.Offered, OfferedKnown: c.OfferedKnown}
	r.MaxVCPUs, r.MaxMemoryGB = caps(c.Spec, c.Status.Baseline)
	var ok bool
	if r.Current, ok = flavors.Find(c.Catalogue, inst.Flavor); !ok { // no longer sold
		r.Current = flavors.Flavor{
			Code: inst.Flavor, Engine: inst.Engine, Mode: inst.Mode, VCPUs: inst.VCPUs, MemoryGB: inst.MemoryGB,
		}
	}
	for _, a := range alarms {
		if mark := metricRow(a.Metric).require; mark != nil {
			mark(&r)
		}
	}
	return r
}

// declineLadder says why none of the larger flavors can be had.
func (c Case) declineLadder(d Decision, ladder []flavors.Candidate) Decision {
	capped := ""
	for _, f := range ladder {
		switch f.Refused {
		case flavors.RefusedSoldOut:
			return d.decline(ReasonSoldOut, soldOutAgain, "No larger flavor: %s is %s in %s", f.Code, zoneStateText(f.State), f.Zone)
		case flavors.RefusedCap:
			if capped == "" {
				capped = f.Code
			}
		}
	}
	if capped != "" {
		vcpus, memory := caps(c.Spec, c.Status.Baseline)
		d.Cut = true
		return d.decline(ReasonCapReached, 0, "No larger flavor: %s is above the caps of %d vCPUs and %d GB", capped, vcpus, memory)
	}
	return d.decline(ReasonNoLargerFlavor, soldOutAgain, "No larger flavor: the cloud has none above %s for this instance", d.From)
}

func zoneStateText(state string) string {
	switch state {
	case flavors.ZoneSoldOut:
		return "sold out"
	case "":
		return "not sold"
	}
	return state
}
