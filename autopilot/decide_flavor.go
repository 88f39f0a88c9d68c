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

// flavor holds the guards 4 to 12 for CPU and memory, which one change serves together.
func (c Case) flavor(alarms []Alarm, storageActs bool) (Decision, []flavors.Candidate) {
	d, inst := c.about(alarms[0]), c.Instance
	d.From = inst.Flavor
	if storageActs {
		return d.no(ReasonChangePending, c.Recheck, "Storage goes first, then the flavor"), nil
	}
	if held, ok := c.pending(d, v1alpha1.KindFlavor); ok {
		return held, nil
	}
	if held, ok := c.rolledBack(d); ok {
		return held, nil
	}
	if c.Wanted.Flavor != inst.Flavor && c.unpatched(v1alpha1.KindFlavor) == nil {
		if since, stalled := c.stalledRequest(v1alpha1.KindFlavor); stalled {
			return d.no(ReasonStalled, c.Recheck, "The Rds has asked for %s since %s and the cloud still has %s, though the instance is %s: look at the operator, or correct spec.flavorref", c.Wanted.Flavor, at(since), inst.Flavor, StatusActive), nil
		}
		return d.no(ReasonChangePending, c.Recheck, "The Rds asks for %s, the cloud has %s: that comes first", c.Wanted.Flavor, inst.Flavor), nil
	}
	if inst.Status != StatusActive {
		return d.no(ReasonInstanceBusy, c.Recheck, "The instance is in %s: the flavor changes once it is %s", inst.Status, StatusActive), nil
	}
	if left := c.unsettled(); left > 0 {
		return d.no(ReasonInstanceBusy, left, "The flavor stays %s until the instance has been %s for %s", inst.Flavor, StatusActive, spell(c.settled())), nil
	}
	if c.Catalogue == nil {
		return d.no(ReasonNoData, dataAgain, "The cloud's flavors could not be read"), nil
	}
	wish := c.wish(alarms)
	if wish.Current.VCPUs <= 0 || wish.Current.MemoryGB <= 0 {
		return d.no(ReasonNoData, soldOutAgain, "How many vCPUs and GB of memory %s has is not known: neither a larger flavor nor a cap can be judged", inst.Flavor), nil
	}
	if wish.MaxVCPUs <= 0 || wish.MaxMemoryGB <= 0 {
		return d.no(ReasonNoData, soldOutAgain, "The size of the instance at first arming is not known, so the flavor has no cap: set spec.flavor.maxVCPUs and spec.flavor.maxMemoryGB"), nil
	}
	ladder := flavors.Ladder(c.Catalogue, wish)
	next, ok := flavors.Next(ladder)
	if !ok {
		return c.refused(d, ladder), ladder
	}
	for _, r := range inst.Replicas {
		if inst.Engine == "PostgreSQL" && (next.VCPUs > r.VCPUs || next.MemoryGB > r.MemoryGB) {
			return d.no(ReasonReplicaTooSmall, soldOutAgain, "%s (%d vCPUs, %d GB) is larger than the read replica %s (%d vCPUs, %d GB): enlarge the replica first", next.Code, next.VCPUs, next.MemoryGB, r.Name, r.VCPUs, r.MemoryGB), ladder
		}
	}
	if held := c.history(d, alarms); held.Reason != "" {
		return held, ladder
	}
	d.Action, d.Reason, d.To = ActionChangeFlavor, ReasonAlarmInForce, next.Code
	d.Message = fmt.Sprintf("Flavor %s (%d vCPUs, %d GB) → %s (%d vCPUs, %d GB): %s", inst.Flavor,
		wish.Current.VCPUs, wish.Current.MemoryGB, next.Code, next.VCPUs, next.MemoryGB, c.usage(alarms))
	return c.bounded(d), ladder
}

// settled is how long an instance must have been ACTIVE before its flavor changes.
func (c Case) settled() time.Duration { return min(settledFor, c.cooldown()) }

// unsettled is how long the instance must still stay ACTIVE.
func (c Case) unsettled() time.Duration {
	need, seen := c.settled(), c.Status.Instance
	if seen == nil || seen.ActiveSince == nil {
		return need
	}
	return need - c.Now.Sub(seen.ActiveSince.Time)
}

func (c Case) wish(alarms []Alarm) flavors.Wish {
	inst := c.Instance
	w := flavors.Wish{Version: inst.Version, Zones: inst.Zones, Offered: c.Offered, OfferedKnown: c.OfferedKnown}
	w.MaxVCPUs, w.MaxMemoryGB = caps(c.Spec, c.Status.Baseline)
	var ok bool
	if w.Current, ok = flavors.Find(c.Catalogue, inst.Flavor); !ok { // no longer sold
		w.Current = flavors.Flavor{
			Code: inst.Flavor, Engine: inst.Engine, Mode: inst.Mode, VCPUs: inst.VCPUs, MemoryGB: inst.MemoryGB,
		}
	}
	for _, a := range alarms {
		w.CPU = w.CPU || a.Metric == v1alpha1.MetricCPU
		w.Memory = w.Memory || a.Metric == v1alpha1.MetricMemory
	}
	return w
}

// refused says why none of the larger flavors can be had.
func (c Case) refused(d Decision, ladder []flavors.Candidate) Decision {
	capped := ""
	for _, f := range ladder {
		switch f.Refused {
		case flavors.RefusedSoldOut:
			return d.no(ReasonSoldOut, soldOutAgain, "No larger flavor: %s is %s in %s", f.Code, saleState(f.State), f.Zone)
		case flavors.RefusedCap:
			if capped == "" {
				capped = f.Code
			}
		}
	}
	if capped != "" {
		vcpus, memory := caps(c.Spec, c.Status.Baseline)
		d.Cut = true
		return d.no(ReasonCapReached, 0, "No larger flavor: %s is above the caps of %d vCPUs and %d GB", capped, vcpus, memory)
	}
	return d.no(ReasonNoLargerFlavor, soldOutAgain, "No larger flavor: the cloud has none above %s for this instance", d.From)
}

func saleState(state string) string {
	switch state {
	case flavors.ZoneSoldOut:
		return "sold out"
	case "":
		return "not sold"
	}
	return state
}
