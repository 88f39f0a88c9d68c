// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Guard is one row of the table: a condition that must hold before a change is made.
type Guard struct {
	Name    string              // the condition
	Kind    v1alpha1.ChangeKind // the kind of change that it is about; empty means both
	Reasons []autopilot.Reason  // every reason that the check can give
	// perAlarm means that each alarm passes the guard by itself. The other guards judge the change that serves all
	// alarms that are left.
	perAlarm bool
	check    func(w *walk, ch *proposal) answer
}

// proposal is a change that a guard judges: what it is for, and what it would be.
type proposal struct {
	kind   v1alpha1.ChangeKind
	alarms []autopilot.Alarm // as far as they were read; for a guard per alarm, exactly one
}

// answer is what a guard says about a change. The zero value means that the guard lets it pass.
type answer struct {
	reason autopilot.Reason // why the change must not be made; empty if it may
	text   string           // the sentence for people
	wait   time.Duration    // until the next check; 0 if an event starts it
	capped bool             // the policy allows less than the alarm needs
	silent bool             // the alarm needs no decision: only the time of the next check counts
	guard  string           // the name of the guard
}

// These aliases keep one row of the table on one screen.
const (
	volume, flavor = v1alpha1.KindVolume, v1alpha1.KindFlavor

	alarmState, usedSpace, usage = autopilot.FactAlarmState, autopilot.FactUsedSpace, autopilot.FactUsage
	catalogue, resizeList, place = autopilot.FactCatalogue, autopilot.FactResizeList, autopilot.FactPlace
	sizeWriter, flavorWriter     = autopilot.FactSizeWriter, autopilot.FactFlavorWriter
)

// Table returns all guards, first to last. The order decides which reason wins.
func Table() []Guard {
	type reasons = []autopilot.Reason
	return []Guard{
		{
			Name:     "The alarm is in force, or the used space stands in for it, or the database is read-only",
			perAlarm: true, check: checkInForce,
			Reasons: reasons{autopilot.ReasonAlarmCleared, autopilot.ReasonNoData},
		}, {
			Name:     "Autopilot is on for the database and the metric, and the policy of this kind of change is valid",
			perAlarm: true, check: checkOn,
			Reasons: reasons{autopilot.ReasonPolicyInvalid, autopilot.ReasonNotEnabled},
		}, {
			Name:     "The instance is known, allowed, in the cloud, and no rule of another owner watches it",
			perAlarm: true, check: checkInstance,
			Reasons: reasons{autopilot.ReasonNotAllowed, autopilot.ReasonInstanceUnknown, autopilot.ReasonInstanceClaimed},
		}, {
			Name:     "A recent measurement is at or over the threshold (storage: or the database is read-only; flavor: it is newer than the last change)",
			perAlarm: true, check: checkEvidence,
			Reasons: reasons{autopilot.ReasonNoData, autopilot.ReasonStaleEvidence, autopilot.ReasonBelowThreshold},
		}, {
			Name: "Storage does not grow at the same time",
			Kind: flavor, check: checkStorageFirst,
			Reasons: reasons{autopilot.ReasonChangePending},
		}, {
			Name:    "No change of ours is pending, and no larger size of another writer (a pending flavor delays storage for 10 minutes)",
			check:   checkPending,
			Reasons: reasons{autopilot.ReasonChangePending, autopilot.ReasonStalled, autopilot.ReasonStorageFull},
		}, {
			Name: "The cloud did not revert our flavor within 24 hours while the Rds requested it",
			Kind: flavor, check: checkRolledBack,
			Reasons: reasons{autopilot.ReasonRolledBack},
		}, {
			Name: "The Rds requests the flavor that the instance has",
			Kind: flavor, check: checkOtherFlavor,
			Reasons: reasons{autopilot.ReasonChangePending, autopilot.ReasonStalled},
		}, {
			Name:    "The instance is ACTIVE (storage: or in STORAGE FULL; flavor: for 15 minutes, or for a shorter cooldown)",
			check:   checkActive,
			Reasons: reasons{autopilot.ReasonInstanceBusy},
		}, {
			Name: "The cloud's flavors, the size of this one and the caps are known",
			Kind: flavor, check: checkFlavorsKnown,
			Reasons: reasons{autopilot.ReasonNoData},
		}, {
			Name:    "The policy's caps allow more",
			check:   checkCaps,
			Reasons: reasons{autopilot.ReasonCapReached},
		}, {
			Name: "A larger flavor exists, is available in every zone, and is not above a read replica",
			Kind: flavor, check: checkLarger,
			Reasons: reasons{autopilot.ReasonNoLargerFlavor, autopilot.ReasonSoldOut, autopilot.ReasonReplicaTooSmall},
		}, {
			Name: "The cooldown has passed since our last change, and fewer changes than allowed were made in 24 hours",
			Kind: flavor, check: checkCooldown,
			Reasons: reasons{autopilot.ReasonCooldown, autopilot.ReasonBudgetSpent},
		}, {
			Name: "Of our last two changes for this metric, one had an effect",
			Kind: flavor, perAlarm: true, check: checkEffect,
			Reasons: reasons{autopilot.ReasonNoEffect},
		}, {
			Name:    "No other writer reverts our change",
			check:   checkContested,
			Reasons: reasons{autopilot.ReasonContested},
		}, {
			Name: "The window is open",
			Kind: flavor, check: checkWindow,
			Reasons: reasons{autopilot.ReasonOutsideWindow},
		}, {
			Name: "The mode is Auto", check: checkMode,
			Reasons: reasons{autopilot.ReasonRecommend},
		}, {
			Name:    "The last refusal of this change, by the API server or the cloud, is long enough ago",
			check:   checkRefusal,
			Reasons: refusalReasons(),
		}, {
			Name: "Fewer flavors than --max-flavor-changes are changing in the cluster",
			Kind: flavor, check: checkPlace,
			Reasons: reasons{autopilot.ReasonFleetBrake},
		}, {
			Name: "The instance's own resize list has a larger flavor (read last, when everything else allows the change)",
			Kind: flavor, check: checkResizeList,
			Reasons: reasons{autopilot.ReasonNoData, autopilot.ReasonCapReached, autopilot.ReasonNoLargerFlavor,
				autopilot.ReasonSoldOut, autopilot.ReasonReplicaTooSmall},
		},
	}
}

// isFor reports whether the guard is about that kind of change. Alarms of an unknown metric have no kind.
func (g Guard) isFor(kind v1alpha1.ChangeKind) bool { return g.Kind == "" || g.Kind == kind }

func checkOn(w *walk, ch *proposal) answer {
	c, a := w.c, ch.alarms[0]
	metric, err := autopilot.LookupMetric(a.Metric)
	if err != nil {
		return no(autopilot.ReasonPolicyInvalid, 0, "This version ignores the alarm: %v", err)
	}
	if err := autopilot.Validate(c.Spec); err != nil && metric.HelpedBy == flavor {
		return no(autopilot.ReasonPolicyInvalid, 0, "The policy is invalid, so the autopilot ignores the %s alarm: %v",
			metric.Label, err)
	}
	switch {
	case c.Off.Reason == autopilot.ReasonNotEnabled, c.Off.Reason == autopilot.ReasonPolicyInvalid:
		return no(c.Off.Reason, 0, "%s", c.Off.Message)
	case !metric.Enabled(c.Spec):
		return no(autopilot.ReasonNotEnabled, 0, "The %s alarm is switched off: spec.flavor.%s.enabled is false",
			metric.Label, a.Metric)
	}
	return answer{}
}

func checkInstance(w *walk, _ *proposal) answer {
	c := w.c
	switch {
	case c.Off.Reason != "":
		return no(c.Off.Reason, 0, "%s", c.Off.Message)
	case c.Instance == nil:
		return no(autopilot.ReasonInstanceUnknown, c.Recheck, "%s", c.DescribeUnknownInstance())
	case c.Claim.By != "":
		return no(autopilot.ReasonInstanceClaimed, c.Recheck, "%s", autopilot.DescribeClaim(c.Claim))
	case !c.MayAct():
		return silence(c.Recheck) // its first rule starts the next check
	}
	return answer{}
}

func checkWindow(w *walk, _ *proposal) answer {
	if opens := w.c.UntilWindowOpens(); opens > 0 {
		return no(autopilot.ReasonOutsideWindow, opens, "The window is closed. The flavor change is kept until it opens")
	}
	return answer{}
}

// checkMode leaves the sentence to the walk, which describes the change that would have been made.
func checkMode(w *walk, _ *proposal) answer {
	if w.c.Mode == v1alpha1.ModeRecommend {
		return answer{reason: autopilot.ReasonRecommend}
	}
	return answer{}
}

func checkPlace(w *walk, ch *proposal) answer {
	if w.need(ch, place); !w.c.HasPlace {
		return no(autopilot.ReasonFleetBrake, fleetRequeue,
			"The flavor waits, because as many flavors as --max-flavor-changes allows are changing in the cluster")
	}
	return answer{}
}
