package autopilot

import "slices"

// Action is what a decision does to the Rds.
type Action string

// The actions.
const (
	ActionNone         Action = "None"
	ActionGrowVolume   Action = "GrowVolume"   // write spec.volumesize
	ActionChangeFlavor Action = "ChangeFlavor" // write spec.flavorref
)

// Reason is the one code for why: the same in record, event, condition, metric and log.
type Reason string

// The reasons, in the order of the guards that give them.
const (
	ReasonAlarmInForce    Reason = "AlarmInForce" // the only one with an action in mode Auto
	ReasonPolicyInvalid   Reason = "PolicyInvalid"
	ReasonNotEnabled      Reason = "NotEnabled"
	ReasonInstanceUnknown Reason = "InstanceUnknown"
	ReasonAlarmCleared    Reason = "AlarmCleared"
	ReasonNoData          Reason = "NoData"
	ReasonBelowThreshold  Reason = "BelowThreshold"
	ReasonStaleEvidence   Reason = "StaleEvidence"
	ReasonChangePending   Reason = "ChangePending"
	ReasonStalled         Reason = "Stalled"
	ReasonInstanceBusy    Reason = "InstanceBusy"
	ReasonStorageFull     Reason = "StorageFull"
	ReasonCapReached      Reason = "CapReached"
	ReasonNoLargerFlavor  Reason = "NoLargerFlavor"
	ReasonSoldOut         Reason = "SoldOut"
	ReasonReplicaTooSmall Reason = "ReplicaTooSmall"
	ReasonCooldown        Reason = "Cooldown"
	ReasonBudgetSpent     Reason = "BudgetSpent"
	ReasonNoEffect        Reason = "NoEffect"
	ReasonContested       Reason = "Contested"
	ReasonRolledBack      Reason = "RolledBack"
	ReasonFleetBrake      Reason = "FleetBrake"
	ReasonOutsideWindow   Reason = "OutsideWindow"
	ReasonRecommend       Reason = "Recommend"
	ReasonRefused         Reason = "Refused" // by the API server
)

// Reasons of warnings, beside ReasonCapReached.
const (
	ReasonNearCap       Reason = "NearCap"       // 80 % of spec.storage.maxGB
	ReasonVolumeDoubled Reason = "VolumeDoubled" // within 7 days
)

// Loud reports whether a person should be told by a Warning: nothing is done although something should be.
func (r Reason) Loud() bool { return slices.Contains(LoudReasons(), r) }

// LoudReasons are the reasons of which a person should be told.
func LoudReasons() []Reason {
	return []Reason{
		ReasonPolicyInvalid, ReasonStalled, ReasonStorageFull, ReasonCapReached, ReasonNoLargerFlavor, ReasonSoldOut,
		ReasonReplicaTooSmall, ReasonInstanceUnknown, ReasonNoData, ReasonBudgetSpent, ReasonNoEffect, ReasonContested,
		ReasonRolledBack, ReasonRefused,
	}
}
