// SPDX-License-Identifier: Apache-2.0

package autopilot

import "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"

// Action is what a decision does to the Rds.
type Action string

// The actions.
const (
	ActionNone         Action = "None"
	ActionGrowVolume   Action = "GrowVolume"   // write spec.volumesize
	ActionChangeFlavor Action = "ChangeFlavor" // write spec.flavorref
)

// actionFor is the action that makes a change of that kind.
func actionFor(kind v1alpha1.ChangeKind) Action {
	switch kind {
	case v1alpha1.KindVolume:
		return ActionGrowVolume
	case v1alpha1.KindFlavor:
		return ActionChangeFlavor
	}
	return ActionNone
}

// Reason is the one code for why: the same in record, event, condition, metric and log.
type Reason string

// The reasons; ReasonTable says what each means.
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

	// What the cloud says where it is asked for a change itself; see also SoldOut, StorageFull and InstanceBusy.
	ReasonQuotaExceeded   Reason = "QuotaExceeded"
	ReasonPaymentRequired Reason = "PaymentRequired"
	ReasonNotPermitted    Reason = "NotPermitted"
	ReasonCloudRefused    Reason = "CloudRefused"
	ReasonJobFailed       Reason = "JobFailed"

	ReasonNearCap       Reason = "NearCap"
	ReasonVolumeDoubled Reason = "VolumeDoubled"
	ReasonRuleSilent    Reason = "RuleSilent"
	ReasonNotPercent    Reason = "NotPercent"
)

// Reasons of the condition Armed beyond those of decisions.
const (
	ArmedReason         = "AlarmsInPlace"
	SubscriptionPending = "SubscriptionPending"
	RuleMissing         = "RuleMissing"
	QuotaExceeded       = string(ReasonQuotaExceeded)
	CloudUnreachable    = "CloudUnreachable" // and of a decision, where the cloud was asked for a change itself
	NotAllowed          = "NotAllowed"
)

// LookFailed is the reason of the condition Ready beyond those of Armed.
const LookFailed = "LookFailed"

// Source is what gives a reason.
type Source string

// The sources. A decision's reason may be one of the condition Armed, or of a warning, too.
const (
	SourceDecision  Source = "decision"
	SourceWarning   Source = "warning"   // see UpdateWarnings
	SourceCondition Source = "condition" // Armed or Ready, and no decision
)

// ReasonRow is one row of the table of reasons.
type ReasonRow struct {
	Reason  Reason
	Source  Source
	Guard   int    // the number of its guard in docs/decisions.md; 0 where no guard gives it
	Meaning string // as docs/decisions.md has it, without a full stop at the end

	IsWarning     bool // the event is a Warning: nothing is done although something should be
	IsPostponed   bool // the change is still wanted, only not now: an intent that was not patched yet is kept
	KeepsLimited  bool // it is not known what would be done otherwise: the condition Limited stays as it is
	LacksEvidence bool // there is no measurement at or over the threshold to decide on
	EndsByItself  bool // it ends at a known time, without anybody doing anything
	NotArmed      bool // the condition Armed may be False for it
}

// ReasonTable returns all reasons, those of decisions in the order of their guards.
func ReasonTable() []ReasonRow {
	const decision, warning, condition = SourceDecision, SourceWarning, SourceCondition
	return []ReasonRow{
		{Reason: ReasonAlarmInForce, Source: decision, Meaning: "The `Rds` was patched, or the cloud asked where there is none. The event has the action as its reason: `GrowVolume` or `ChangeFlavor`"},
		{Reason: ReasonPolicyInvalid, Source: decision, Guard: 1, IsWarning: true, NotArmed: true, Meaning: "The policy holds a value that the schema did not catch. The message names the field. A wrong flavor policy does not stop storage"},
		{Reason: ReasonNotEnabled, Source: decision, Guard: 1, NotArmed: true, Meaning: "Autopilot is off for this database or this metric"},
		{Reason: ReasonInstanceUnknown, Source: decision, Guard: 2, IsWarning: true, KeepsLimited: true, NotArmed: true, Meaning: "The id in `status.id` of the `Rds`, or in `spec.instanceID`, is not in the cloud, or another object has the same id"},
		{Reason: ReasonAlarmCleared, Source: decision, Guard: 3, Meaning: "The alarm was over when the leader looked"},
		{Reason: ReasonNoData, Source: decision, Guard: 3, IsWarning: true, IsPostponed: true, KeepsLimited: true, LacksEvidence: true, NotArmed: true, Meaning: "Cloud Eye has no measurement, or the catalogue or the size of the flavor could not be read. The leader looks again after 1 to 5 minutes"},
		{Reason: ReasonBelowThreshold, Source: decision, Guard: 3, LacksEvidence: true, Meaning: "The alarm is in force, but the newest measurement is below the threshold"},
		{Reason: ReasonStaleEvidence, Source: decision, Guard: 3, IsPostponed: true, KeepsLimited: true, LacksEvidence: true, Meaning: "The newest measurement is too old"},
		{Reason: ReasonChangePending, Source: decision, Guard: 4, IsPostponed: true, KeepsLimited: true, Meaning: "A change is under way, ours or somebody else's, or storage goes first"},
		{Reason: ReasonStalled, Source: decision, Guard: 4, IsWarning: true, IsPostponed: true, KeepsLimited: true, Meaning: "A change was asked for 15 minutes ago, the instance is `ACTIVE`, and the change has not arrived; or a job of the cloud has run for an hour"},
		{Reason: ReasonInstanceBusy, Source: decision, Guard: 5, IsPostponed: true, KeepsLimited: true, Meaning: "The instance is not `ACTIVE`, or not for long enough"},
		{Reason: ReasonStorageFull, Source: decision, Guard: 5, IsWarning: true, KeepsLimited: true, Meaning: "The instance is in `STORAGE FULL`. A larger volume was asked for; the cloud may refuse"},
		{Reason: ReasonCapReached, Source: decision, Guard: 6, IsWarning: true, Meaning: "`maxGB`, `maxVCPUs` or `maxMemoryGB` does not allow more"},
		{Reason: ReasonNoLargerFlavor, Source: decision, Guard: 7, IsWarning: true, Meaning: "The cloud has no larger flavor for this instance"},
		{Reason: ReasonSoldOut, Source: decision, Guard: 7, IsWarning: true, Meaning: "The next flavor is not available in one zone. The message names both. With `apply: Cloud`, also where the cloud says so only when asked for it"},
		{Reason: ReasonReplicaTooSmall, Source: decision, Guard: 7, IsWarning: true, Meaning: "The primary would become larger than its PostgreSQL read replica"},
		{Reason: ReasonCooldown, Source: decision, Guard: 8, EndsByItself: true, Meaning: "The last change of flavor is too recent"},
		{Reason: ReasonBudgetSpent, Source: decision, Guard: 8, IsWarning: true, EndsByItself: true, Meaning: "`maxChangesPerDay` changes of flavor in 24 hours"},
		{Reason: ReasonNoEffect, Source: decision, Guard: 9, IsWarning: true, EndsByItself: true, Meaning: "Two larger flavors in a row did not help"},
		{Reason: ReasonContested, Source: decision, Guard: 10, IsWarning: true, IsPostponed: true, EndsByItself: true, Meaning: "Somebody took our size back, or put a smaller flavor in place of ours. The message names the field manager if it is known"},
		{Reason: ReasonRolledBack, Source: decision, Guard: 10, IsWarning: true, EndsByItself: true, Meaning: "The cloud left our flavor although the `Rds` still asks for it. Flavors wait for 24 hours"},
		{Reason: ReasonFleetBrake, Source: decision, Guard: 11, Meaning: "As many flavors as `--max-flavor-changes` are changing. Looked at again every minute. After 6 hours there is one Warning"},
		{Reason: ReasonOutsideWindow, Source: decision, Guard: 11, EndsByItself: true, Meaning: "The window is closed. The wish is kept until it opens"},
		{Reason: ReasonRecommend, Source: decision, Guard: 12, Meaning: "Mode is `Recommend`: this would have been done"},
		{Reason: ReasonRefused, Source: decision, IsWarning: true, IsPostponed: true, Meaning: "The Kubernetes API refuses the patch. The message has its words. Tried again after 1, 2, 4, 8 and then every 15 minutes"},

		{Reason: ReasonQuotaExceeded, Source: decision, IsWarning: true, IsPostponed: true, NotArmed: true, Meaning: "The tenant has no room: for another topic or alarm rule or, with `apply: Cloud`, for the change"},
		{Reason: ReasonPaymentRequired, Source: decision, IsWarning: true, IsPostponed: true, Meaning: "With `apply: Cloud`: the cloud makes no change for an account that is frozen or has not paid"},
		{Reason: ReasonNotPermitted, Source: decision, IsWarning: true, IsPostponed: true, Meaning: "With `apply: Cloud`: the service's user may not change instances. The second statement of `deploy/examples/policy.json` lets it"},
		{Reason: ReasonCloudRefused, Source: decision, IsWarning: true, IsPostponed: true, Meaning: "With `apply: Cloud`: the cloud refuses the change. The message has its words. Tried again after 1, 2, 4, 8 and then every 15 minutes"},
		{Reason: ReasonJobFailed, Source: decision, IsWarning: true, IsPostponed: true, Meaning: "With `apply: Cloud`: the cloud began the change and failed. Tried again like `CloudRefused`"},
		{Reason: CloudUnreachable, Source: decision, IsWarning: true, IsPostponed: true, NotArmed: true, Meaning: "The cloud does not answer, or refuses. A change whose answer was lost is asked for again, after 10 seconds to 2 minutes: that changes nothing if it has begun"},

		{Reason: ReasonNearCap, Source: warning, IsWarning: true, Meaning: "The volume has 80 % of `maxGB`"},
		{Reason: ReasonVolumeDoubled, Source: warning, IsWarning: true, Meaning: "The volume has doubled within 7 days: something may be filling it"},
		{Reason: ReasonRuleSilent, Source: warning, IsWarning: true, Meaning: "The storage is full by Cloud Eye's own data, and its alarm rule does not say so. The used space is acted on all the same, at each sweep. `doctor` says what is wrong with the rules"},
		{Reason: ReasonNotPercent, Source: warning, IsWarning: true, Meaning: "Cloud Eye gives the percentages of this engine as fractions of 1, which no threshold reaches. Storage is acted on by its used space; CPU and memory raise no alarm"},

		{Reason: SubscriptionPending, Source: condition, NotArmed: true, Meaning: "The topic's subscription is missing or not confirmed yet"},
		{Reason: RuleMissing, Source: condition, NotArmed: true, Meaning: "Cloud Eye has no alarm rule for a metric yet"},
		{Reason: NotAllowed, Source: condition, NotArmed: true, Meaning: "`spec.apply` is `Cloud`, and `--allow-apply` or `--allowed-instances` does not allow that"},
		{Reason: LookFailed, Source: condition, Meaning: "The database is armed, and the last look at it failed in part"},
		{Reason: ArmedReason, Source: condition, Meaning: "The alarm rules exist and the subscription is confirmed"},
	}
}

// row is the zero row for a reason of another version.
func (r Reason) row() ReasonRow {
	for _, row := range ReasonTable() {
		if row.Reason == r {
			return row
		}
	}
	return ReasonRow{Reason: r}
}

// IsWarning reports whether the event is a Warning: nothing is done although something should be.
func (r Reason) IsWarning() bool { return r.row().IsWarning }

// LacksEvidence reports whether there is no measurement at or over the threshold to decide on.
func (r Reason) LacksEvidence() bool { return r.row().LacksEvidence }

// EndsByItself reports whether a decision for this reason ends at a known time, without anybody doing anything.
func (r Reason) EndsByItself() bool { return r.row().EndsByItself }

// WarningReasons are the reasons of decisions whose event is a Warning.
func WarningReasons() []Reason {
	var reasons []Reason
	for _, row := range ReasonTable() {
		if row.IsWarning && row.Source == SourceDecision {
			reasons = append(reasons, row.Reason)
		}
	}
	return reasons
}

// NotArmedReasons are all reasons for which the condition Armed is False.
func NotArmedReasons() []string {
	var reasons []string
	for _, row := range ReasonTable() {
		if row.NotArmed {
			reasons = append(reasons, string(row.Reason))
		}
	}
	return reasons
}
