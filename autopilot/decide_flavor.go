// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// settledFor is the longest time for which an instance must have been ACTIVE before its flavor changes. An operator may
// still be applying earlier changes.
const settledFor = 15 * time.Minute

// decideFlavor decides on CPU and memory together, because one change of flavor serves both. It checks the guards of
// docs/decisions.md from pending changes on.
func (c Case) decideFlavor(alarms []Alarm, storageActs bool) Decision {
	d, inst := c.newDecision(alarms[0]), c.Instance
	d.From = inst.Flavor
	if storageActs {
		return d.decline(ReasonChangePending, c.Recheck, "Storage grows first, then the flavor changes")
	}
	if held, ok := c.checkPending(d, v1alpha1.KindFlavor); ok {
		return held
	}
	if held, ok := c.checkRolledBack(d); ok {
		return held
	}
	if p := c.unstarted(v1alpha1.KindFlavor); c.Wanted.Flavor != inst.Flavor && (p == nil || p.To != c.Wanted.Flavor) {
		if since, stalled := c.stalledRequest(v1alpha1.KindFlavor); stalled {
			return d.decline(ReasonStalled, c.Recheck,
				"The Rds has requested %s since %s and the cloud still has %s, although the instance is %s. Check the operator, or correct spec.flavorref", c.Wanted.Flavor, at(since), inst.Flavor, StatusActive)
		}
		return d.decline(ReasonChangePending, c.Recheck,
			"The Rds requests %s and the cloud still has %s. That change comes first", c.Wanted.Flavor, inst.Flavor)
	}
	if inst.Status != StatusActive {
		return d.decline(ReasonInstanceBusy, c.Recheck, "The instance is in %s: the flavor changes once it is %s",
			inst.Status, StatusActive)
	}
	if remaining := c.settleRemaining(); remaining > 0 {
		return d.decline(ReasonInstanceBusy, remaining, "The flavor stays %s until the instance has been %s for %s",
			inst.Flavor, StatusActive, durationText(c.settleNeeded()))
	}
	if c.Catalogue == nil {
		return d.decline(ReasonNoData, dataRequeue, "The cloud's flavors could not be read")
	}
	required := c.requirements(alarms)
	if required.Current.VCPUs <= 0 || required.Current.MemoryGB <= 0 {
		return d.decline(ReasonNoData, soldOutRequeue,
			"The vCPUs and memory of %s are not known, so no larger flavor can be chosen", inst.Flavor)
	}
	if required.MaxVCPUs <= 0 || required.MaxMemoryGB <= 0 {
		return d.decline(ReasonNoData, soldOutRequeue,
			"The size of the instance at first arming is not known, so the flavor has no cap. Set spec.flavor.maxVCPUs and spec.flavor.maxMemoryGB")
	}
	ladder := flavors.Ladder(c.Catalogue, required)
	next, ok := flavors.Next(ladder)
	if !ok {
		return c.declineLadder(d, ladder)
	}
	for _, r := range inst.Replicas {
		if inst.Engine == "PostgreSQL" && (next.VCPUs > r.VCPUs || next.MemoryGB > r.MemoryGB) {
			return d.decline(ReasonReplicaTooSmall, soldOutRequeue,
				"%s (%d vCPUs, %d GB) is larger than the read replica %s (%d vCPUs, %d GB): enlarge the replica first", next.Code,
				next.VCPUs, next.MemoryGB, r.Name, r.VCPUs, r.MemoryGB)
		}
	}
	if held := c.checkHistory(d, alarms); held.Reason != "" {
		return held
	}
	d.Action, d.Reason, d.To = ActionChangeFlavor, ReasonAlarmInForce, next.Code
	d.Message = fmt.Sprintf("Flavor %s (%d vCPUs, %d GB) → %s (%d vCPUs, %d GB): %s", inst.Flavor,
		required.Current.VCPUs, required.Current.MemoryGB, next.Code, next.VCPUs, next.MemoryGB, c.usage(alarms))
	if found, _ := c.findingsOn(alarms); len(found) > 0 {
		d.Message += fmt.Sprintf(". %s, so this may not help (%s)", textOf(found), found[0].reason)
	}
	return c.checkMode(d)
}

// settleNeeded returns how long an instance must have been ACTIVE before its flavor changes.
func (c Case) settleNeeded() time.Duration { return min(settledFor, c.cooldown()) }

// settleRemaining returns how long the instance must still stay ACTIVE before its flavor changes.
func (c Case) settleRemaining() time.Duration {
	need, seen := c.settleNeeded(), c.Status.Instance
	if seen == nil || seen.ActiveSince == nil {
		return need
	}
	return need - c.Now.Sub(seen.ActiveSince.Time)
}

// requirements returns what the next flavor must satisfy.
func (c Case) requirements(alarms []Alarm) flavors.Requirements {
	inst := c.Instance
	r := flavors.Requirements{Version: inst.Version, Zones: inst.Zones, Offered: c.Offered, OfferedKnown: c.OfferedKnown}
	r.MaxVCPUs, r.MaxMemoryGB = caps(c.Spec, c.Status.Baseline)
	current, sold := flavors.Find(c.Catalogue, inst.Flavor)
	r.Current = current
	if !sold { // the cloud no longer sells it
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

// declineLadder returns the decision that names why none of the larger flavors is available.
func (c Case) declineLadder(d Decision, ladder []flavors.Candidate) Decision {
	capped := ""
	for _, f := range ladder {
		switch f.Refused {
		case flavors.RefusedSoldOut:
			return d.decline(ReasonSoldOut, soldOutRequeue, "No larger flavor: %s is %s in %s", f.Code, zoneStateText(f.State),
				f.Zone)
		case flavors.RefusedCap:
			if capped == "" {
				capped = f.Code
			}
		}
	}
	if capped != "" {
		vcpus, memory := caps(c.Spec, c.Status.Baseline)
		d.Capped = true
		return d.decline(ReasonCapReached, 0, "No larger flavor: %s is above the caps of %d vCPUs and %d GB", capped, vcpus,
			memory)
	}
	return d.decline(ReasonNoLargerFlavor, soldOutRequeue,
		"No larger flavor: the cloud has none above %s for this instance", d.From)
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

// LargerFlavors returns the flavors that are larger for the sake of a metric, best first, each with the reason why it
// is not available. Unlike Decide it ignores all other guards, so that people see the choice at any time. It returns
// nil if the catalogue, the present size or the caps are not known.
func (c Case) LargerFlavors(m v1alpha1.Metric) []flavors.Candidate {
	if c.Instance == nil || helpedBy(m) != v1alpha1.KindFlavor {
		return nil
	}
	required := c.requirements([]Alarm{{Metric: m}})
	if required.Current.VCPUs <= 0 || required.Current.MemoryGB <= 0 || required.MaxVCPUs <= 0 ||
		required.MaxMemoryGB <= 0 {
		return nil
	}
	return flavors.Ladder(c.Catalogue, required)
}
