// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// requirements returns what the next flavor must satisfy. Unless isListed, the instance's own resize list does not
// count, and every flavor of the catalogue counts as offered.
func requirements(c autopilot.Case, alarms []autopilot.Alarm, isListed bool) flavors.Requirements {
	has := c.Instance
	r := flavors.Requirements{Version: has.Version, Zones: has.Zones, Offered: c.Offered, OfferedKnown: c.IsOffered}
	if !isListed {
		r.Offered, r.OfferedKnown = nil, true
		for _, f := range c.Catalogue {
			r.Offered = append(r.Offered, f.Code)
		}
	}
	r.MaxVCPUs, r.MaxMemoryGB = autopilot.Caps(c.Spec, c.Status.Baseline)
	current, sold := flavors.Find(c.Catalogue, has.Flavor)
	r.Current = current
	if !sold { // the cloud no longer sells it
		r.Current = flavors.Flavor{
			Code: has.Flavor, Engine: has.Engine, Mode: has.Mode, VCPUs: has.VCPUs, MemoryGB: has.MemoryGB,
		}
	}
	for _, replica := range knownReplicas(*has) {
		r.Replicas = append(r.Replicas, flavors.Flavor{VCPUs: replica.VCPUs, MemoryGB: replica.MemoryGB})
	}
	for _, a := range alarms {
		autopilot.Row(a.Metric).Require(&r)
	}
	return r
}

// ladder returns the flavors that are larger for the sake of a change, best first, each with the reason why it is not
// available.
func (w *walk) ladder(ch *proposal, isListed bool) []flavors.Candidate {
	w.need(ch, catalogue)
	return flavors.Ladder(w.c.Catalogue, requirements(*w.c, ch.alarms, isListed))
}

// LargerFlavors returns the flavors that are larger for the sake of a metric, best first, each with the reason why it
// is not available. It ignores all other guards, so that people see the choice at any time. It returns nil if the
// catalogue, the present size or the caps are not known.
func LargerFlavors(c autopilot.Case, m v1alpha1.Metric) []flavors.Candidate {
	if c.Instance == nil || autopilot.HelpedBy(m) != flavor {
		return nil
	}
	required := requirements(c, []autopilot.Alarm{{Metric: m}}, c.Knows(resizeList))
	if lacksSizes(required).reason != "" {
		return nil
	}
	return flavors.Ladder(c.Catalogue, required)
}

// changeFlavor returns the decision to move to the next flavor. The guards have found one. A recommendation is made
// before the resize list is read.
func changeFlavor(c autopilot.Case, alarms []autopilot.Alarm) autopilot.Decision {
	isListed := c.Knows(resizeList)
	required := requirements(c, alarms, isListed)
	next, _ := flavors.Next(flavors.Ladder(c.Catalogue, required))
	d := newDecision(c, alarms[0])
	d.Action, d.Reason = autopilot.ActionChangeFlavor, autopilot.ReasonAlarmInForce
	d.To = next.Code
	d.Message = fmt.Sprintf("Flavor %s (%d vCPUs, %d GB) → %s (%d vCPUs, %d GB): %s", c.Instance.Flavor,
		required.Current.VCPUs, required.Current.MemoryGB, next.Code, next.VCPUs, next.MemoryGB, usageText(c.Spec, alarms)) +
		familyText(c, isListed)
	return d
}

// familyText returns the end of a sentence that says why only flavors of the same family count; empty if others do too.
func familyText(c autopilot.Case, isListed bool) string {
	if !isListed || c.IsOffered {
		return ""
	}
	return "; only the same family counts, because the cloud has no resize list for the instance: " + c.NotOffered
}

// checkOtherFlavor waits while the cloud has not made the flavor that another writer requested in the Rds.
func checkOtherFlavor(w *walk, _ *proposal) answer {
	c := *w.c
	has, wanted := c.Instance.Flavor, c.Wanted.Flavor
	if wanted == has || wanted == "" || change.IsRequestOfOurs(c.Status.Changes, flavor, wanted) {
		return answer{}
	}
	if since, stalled := stalledRequest(c, flavor); stalled {
		return no(autopilot.ReasonStalled, c.Recheck,
			"The Rds has requested %s since %s and the cloud still has %s, although the instance is %s. Check the operator, or correct spec.flavorref",
			wanted, autopilot.TimeText(since), has, autopilot.StatusActive)
	}
	return no(autopilot.ReasonChangePending, c.Recheck,
		"The Rds requests %s and the cloud still has %s. That change comes first", wanted, has)
}

// checkFlavorsKnown demands everything from which a larger flavor is chosen.
func checkFlavorsKnown(w *walk, ch *proposal) answer {
	if !w.need(ch, catalogue) {
		return no(autopilot.ReasonNoData, autopilot.DataRequeue, "The cloud's flavors could not be read")
	}
	return lacksSizes(requirements(*w.c, ch.alarms, false))
}

// lacksSizes stops if the size of the present flavor, a cap or a zone is not known.
func lacksSizes(required flavors.Requirements) answer {
	switch {
	case required.Current.VCPUs <= 0 || required.Current.MemoryGB <= 0:
		return no(autopilot.ReasonNoData, soldOutRequeue,
			"The vCPUs and memory of %s are not known, so no larger flavor can be chosen", required.Current.Code)
	case required.MaxVCPUs <= 0 || required.MaxMemoryGB <= 0:
		return no(autopilot.ReasonNoData, soldOutRequeue,
			"The size of the instance at first arming is not known, so the flavor has no cap. Set spec.flavor.maxVCPUs and spec.flavor.maxMemoryGB")
	case len(required.Zones) == 0 || slices.Contains(required.Zones, ""):
		return no(autopilot.ReasonNoData, soldOutRequeue,
			"The zones of the instance are not known, so no flavor is known to be available")
	}
	return answer{}
}

// checkLarger stops if no larger flavor is available, or each one is above a read replica.
func checkLarger(w *walk, ch *proposal) answer { return checkAvailable(w, ch, false) }

// checkAvailable stops if none of the larger flavors can be used, for the sake of the first one that the caps allow.
func checkAvailable(w *walk, ch *proposal, isListed bool) answer {
	all := w.ladder(ch, isListed)
	if _, ok := flavors.Next(all); ok {
		return answer{}
	}
	capped := ""
	for _, f := range all {
		switch f.Refused {
		case flavors.RefusedReplica:
			for _, r := range knownReplicas(*w.c.Instance) {
				if f.VCPUs > r.VCPUs || f.MemoryGB > r.MemoryGB {
					return no(autopilot.ReasonReplicaTooSmall, soldOutRequeue,
						"%s (%d vCPUs, %d GB) is larger than the read replica %s (%d vCPUs, %d GB): enlarge the replica first",
						f.Code, f.VCPUs, f.MemoryGB, r.Name, r.VCPUs, r.MemoryGB)
				}
			}
		case flavors.RefusedSoldOut:
			return no(autopilot.ReasonSoldOut, soldOutRequeue, "No larger flavor: %s is %s in %s", f.Code,
				zoneStateText(f.State), f.Zone)
		case flavors.RefusedCap:
			capped = cmp.Or(capped, f.Code)
		}
	}
	if capped != "" {
		vcpus, memory := autopilot.Caps(w.c.Spec, w.c.Status.Baseline)
		return answer{reason: autopilot.ReasonCapReached, capped: true, text: fmt.Sprintf(
			"No larger flavor: %s is above the caps of %d vCPUs and %d GB", capped, vcpus, memory)}
	}
	return no(autopilot.ReasonNoLargerFlavor, soldOutRequeue,
		"No larger flavor: the cloud has none above %s for this instance%s", w.c.Instance.Flavor, familyText(*w.c, isListed))
}

// knownReplicas returns the read replicas of a PostgreSQL instance whose size is known. The primary must not become
// larger than one of them.
func knownReplicas(inst autopilot.Instance) (known []autopilot.Replica) {
	for _, r := range inst.Replicas {
		if inst.Engine == autopilot.EnginePostgreSQL && r.VCPUs > 0 && r.MemoryGB > 0 {
			known = append(known, r)
		}
	}
	return known
}

// checkResizeList demands that the instance can change to one of the flavors that all guards above allow.
func checkResizeList(w *walk, ch *proposal) answer {
	if !w.need(ch, resizeList) {
		return no(autopilot.ReasonNoData, autopilot.DataRequeue,
			"The flavors that the instance can change to could not be read")
	}
	return checkAvailable(w, ch, true)
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
