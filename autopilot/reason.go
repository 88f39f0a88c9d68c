// SPDX-License-Identifier: Apache-2.0

package autopilot

import "github.com/mcsps/rds-autopilot/autopilot/change"

// Reason is the code of the reason for a decision. It is the same in the record, events, conditions, metrics and logs.
type Reason string

// The reasons. ReasonTable gives the meaning of each.
const (
	ReasonAlarmInForce    Reason = "AlarmInForce" // the only one with an action in mode Auto
	ReasonPolicyInvalid   Reason = "PolicyInvalid"
	ReasonNotEnabled      Reason = "NotEnabled"
	ReasonInstanceUnknown Reason = "InstanceUnknown"
	ReasonInstanceClaimed Reason = "InstanceClaimed"
	ReasonNotAllowed      Reason = "NotAllowed"
	ReasonAlarmCleared    Reason = "AlarmCleared"
	ReasonNoData          Reason = "NoData"
	ReasonBelowThreshold  Reason = "BelowThreshold"
	ReasonStaleEvidence   Reason = "StaleEvidence"
	ReasonChangePending   Reason = "ChangePending"
	ReasonStalled         Reason = change.Stalled
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
	ReasonRefused         Reason = "Refused" // the API server refuses the patch

	// Refusals of the cloud with apply: Cloud. It may also answer SoldOut, StorageFull and InstanceBusy.
	ReasonQuotaExceeded   Reason = "QuotaExceeded"
	ReasonPaymentRequired Reason = "PaymentRequired"
	ReasonNotPermitted    Reason = "NotPermitted"
	ReasonCloudRefused    Reason = "CloudRefused"
	ReasonJobFailed       Reason = change.JobFailed

	ReasonCauseNotData   Reason = "CauseNotData"
	ReasonNearCap        Reason = "NearCap"
	ReasonReplicaSmaller Reason = "ReplicaSmaller"
	ReasonRuleSilent     Reason = "RuleSilent"
	ReasonReadOnly       Reason = "ReadOnly"

	ReasonStatusNotStored Reason = "StatusNotStored"
	ReasonInternalError   Reason = "InternalError"
)

// Reasons of the condition Armed that no decision has, except CloudUnreachable.
const (
	ArmedReason         = "AlarmsInPlace"
	SubscriptionPending = "SubscriptionPending"
	SubscriptionRefused = "SubscriptionRefused"
	RuleMissing         = "RuleMissing"
	NameTooLong         = "NameTooLong"
	QuotaExceeded       = string(ReasonQuotaExceeded)
	CloudUnreachable    = change.NoAnswer // also of a decision with apply: Cloud
)

// ReadFailed is the only reason of the condition Ready that Armed does not have.
const ReadFailed = "ReadFailed"

// Source is the part of the service that gives a reason.
type Source string

// The sources. The condition Armed and warnings may have the reason of a decision, too.
const (
	SourceDecision  Source = "decision"
	SourceWarning   Source = "warning"   // UpdateWarnings gives it, or a check that failed
	SourceCondition Source = "condition" // Armed or Ready has it, and no decision
)

// ReasonRow is one row of the table of reasons.
type ReasonRow struct {
	Reason  Reason
	Source  Source
	Meaning string // the text in docs/runbooks/reasons.md, without a full stop at the end

	IsWarning     bool // the event is a Warning, because a needed change is not made
	KeepsLimited  bool // the decision does not show whether a cap applies, so the condition Limited stays
	LacksEvidence bool // there is no measurement at or over the threshold
	NotArmed      bool // the condition Armed may be False for it
}

// ReasonTable returns all reasons, those of decisions about in the order of their guards.
func ReasonTable() []ReasonRow {
	const decision, warning, condition = SourceDecision, SourceWarning, SourceCondition
	return []ReasonRow{
		{Reason: ReasonAlarmInForce, Source: decision, KeepsLimited: true,
			Meaning: "The autopilot patched the `Rds` or, with `apply: Cloud`, the cloud accepted the request. The event has the action as its reason: `GrowVolume` or `ChangeFlavor`"},
		{Reason: ReasonPolicyInvalid, Source: decision, IsWarning: true, NotArmed: true,
			Meaning: "The window has a value that the schema does not catch, such as an unknown time zone: storage still grows. Or `apply: Cloud` stands beside an `Rds` of the same name: then nothing is done. The message says what to correct"},
		{Reason: ReasonNotEnabled, Source: decision, NotArmed: true,
			Meaning: "Autopilot is off for this database or this metric"},
		{Reason: ReasonInstanceUnknown, Source: decision, IsWarning: true, KeepsLimited: true, NotArmed: true,
			Meaning: "There is no `Rds` of this name, or the id in its `status.id` or in `spec.instanceID` is not in the cloud"},
		{Reason: ReasonInstanceClaimed, Source: decision, IsWarning: true, KeepsLimited: true, NotArmed: true,
			Meaning: "An alarm rule under the name of another object watches the instance, so that object manages it. If Cloud Eye creates no rule, the smaller of two names does"},
		{Reason: ReasonNotAllowed, Source: decision, IsWarning: true, KeepsLimited: true, NotArmed: true,
			Meaning: "`--allowed-instances` does not allow this namespace to name the instance, or `spec.apply` is `Cloud` and `--allow-apply` is `Operator`"},
		{Reason: ReasonAlarmCleared, Source: decision, Meaning: "The alarm had ended before the leader checked it"},
		{Reason: ReasonNoData, Source: decision, IsWarning: true, KeepsLimited: true,
			LacksEvidence: true, NotArmed: true, Meaning: "No measurement is sound, or the flavors, sizes or zones are not known. The next check is after 1 to 5 minutes"},
		{Reason: ReasonBelowThreshold, Source: decision, LacksEvidence: true,
			Meaning: "The alarm is in force, but the newest measurement is below the threshold"},
		{Reason: ReasonStaleEvidence, Source: decision, KeepsLimited: true, LacksEvidence: true,
			Meaning: "The newest measurement is too old"},
		{Reason: ReasonChangePending, Source: decision, KeepsLimited: true,
			Meaning: "A change of the autopilot or of another writer is in progress, or storage grows first"},
		{Reason: ReasonStalled, Source: decision, IsWarning: true, KeepsLimited: true,
			Meaning: "A change was requested 15 minutes ago, the instance is `ACTIVE`, and the change is not done; or a job of the cloud has run for an hour. With `apply: Cloud` the autopilot then decides again"},
		{Reason: ReasonInstanceBusy, Source: decision, KeepsLimited: true,
			Meaning: "The instance is not `ACTIVE`, or not for long enough"},
		{Reason: ReasonStorageFull, Source: decision, IsWarning: true, KeepsLimited: true,
			Meaning: "The instance is in `STORAGE FULL`. A larger volume was requested, and the cloud may refuse it"},
		{Reason: ReasonCapReached, Source: decision, IsWarning: true,
			Meaning: "`maxGB`, `maxVCPUs` or `maxMemoryGB` does not allow more"},
		{Reason: ReasonNoLargerFlavor, Source: decision, IsWarning: true,
			Meaning: "The cloud has no larger flavor for this instance"},
		{Reason: ReasonSoldOut, Source: decision, IsWarning: true,
			Meaning: "The next flavor is not available in one zone. The message names both. With `apply: Cloud`, the cloud may also refuse the request because it does not offer the flavor"},
		{Reason: ReasonReplicaTooSmall, Source: decision, IsWarning: true,
			Meaning: "The primary would become larger than its PostgreSQL read replica"},
		{Reason: ReasonCooldown, Source: decision, Meaning: "The last change of flavor is too recent"},
		{Reason: ReasonBudgetSpent, Source: decision, IsWarning: true,
			Meaning: "`maxChangesPerDay` changes of flavor in 24 hours"},
		{Reason: ReasonNoEffect, Source: decision, IsWarning: true,
			Meaning: "Two larger flavors in a row did not help"},
		{Reason: ReasonContested, Source: decision, IsWarning: true,
			Meaning: "Another writer reset the autopilot's size, or replaced its flavor by a smaller one. The message names the field manager if it is known"},
		{Reason: ReasonRolledBack, Source: decision, IsWarning: true,
			Meaning: "The cloud reverted the autopilot's flavor although the `Rds` still requests it. Flavors wait for 24 hours"},
		{Reason: ReasonFleetBrake, Source: decision,
			Meaning: "As many flavors as `--max-flavor-changes` are changing. The next check is after 1 minute. After 6 hours there is one Warning"},
		{Reason: ReasonOutsideWindow, Source: decision,
			Meaning: "The window is closed. The change is kept until it opens"},
		{Reason: ReasonRecommend, Source: decision, Meaning: "Mode is `Recommend`: this would have been done"},
		{Reason: ReasonRefused, Source: decision, IsWarning: true,
			Meaning: "The Kubernetes API refuses the patch. The message has its text. The autopilot retries after 1, 2, 4, 8 and then every 15 minutes"},

		{Reason: ReasonQuotaExceeded, Source: decision, IsWarning: true, NotArmed: true,
			Meaning: "The tenant's quota does not allow another alarm rule or, with `apply: Cloud`, the change"},
		{Reason: ReasonPaymentRequired, Source: decision, IsWarning: true,
			Meaning: "With `apply: Cloud`: the cloud makes no change for an account that is frozen or has not paid"},
		{Reason: ReasonNotPermitted, Source: decision, IsWarning: true,
			Meaning: "With `apply: Cloud`: the service's user may not change instances. `deploy/examples/policy-apply-cloud.json` grants that"},
		{Reason: ReasonCloudRefused, Source: decision, IsWarning: true,
			Meaning: "With `apply: Cloud`: the cloud refuses the change. The message has its text. The autopilot retries after 1, 2, 4, 8 and then every 15 minutes"},
		{Reason: ReasonJobFailed, Source: decision, IsWarning: true,
			Meaning: "With `apply: Cloud`: the cloud started the change and failed. The autopilot retries as for `CloudRefused`"},
		{Reason: CloudUnreachable, Source: decision, IsWarning: true, NotArmed: true,
			Meaning: "The cloud does not answer, or refuses the connection. If the answer to a change was lost, the autopilot repeats the request after 10 seconds to 2 minutes. A change that has started is not made twice"},

		{Reason: ReasonNearCap, Source: warning, IsWarning: true, Meaning: "The volume has 80 % of `maxGB`"},
		{Reason: ReasonCauseNotData, Source: warning, IsWarning: true,
			Meaning: "At least a fifth of the used space of a PostgreSQL volume that grows is WAL. The message says how much, and whether an inactive slot keeps it. The volume still grows"},
		{Reason: ReasonReplicaSmaller, Source: warning, IsWarning: true,
			Meaning: "A read replica has a smaller volume than its primary, so it is full first, and no RdsAutopilot manages it"},
		{Reason: ReasonRuleSilent, Source: warning, IsWarning: true,
			Meaning: "The storage is full by Cloud Eye's own data, but no alarm rule reports an alarm. The autopilot acts on the used space. `doctor` shows whether Cloud Eye evaluates rules"},
		{Reason: ReasonReadOnly, Source: warning, IsWarning: true,
			Meaning: "The used space has reached the limit at which the cloud makes the database read-only, or the instance is in `STORAGE FULL`. It lasts until a measurement shows that the database is writable: at most 87 % used, from 1,000 GB on at least 150 GB free"},

		{Reason: ReasonStatusNotStored, Source: warning, IsWarning: true,
			Meaning: "The Kubernetes API refuses to store the status of the `RdsAutopilot`, so no change is made. The message has its text. It is reported at each attempt"},
		{Reason: ReasonInternalError, Source: warning, IsWarning: true,
			Meaning: "A check of this database ended with an error of the program. The autopilot repeats it at growing intervals, up to 2 minutes. It is reported each time"},

		{Reason: SubscriptionPending, Source: condition, NotArmed: true,
			Meaning: "The subscription of the public URL is not confirmed yet"},
		{Reason: SubscriptionRefused, Source: condition, NotArmed: true,
			Meaning: "SMN refuses the topic or the subscription of the public URL. The message has its text. The alarm rules exist, and each sweep acts on them"},
		{Reason: RuleMissing, Source: condition, NotArmed: true,
			Meaning: "Cloud Eye has no alarm rule for a metric yet, or refuses to create it. The message has its text"},
		{Reason: NameTooLong, Source: condition, NotArmed: true,
			Meaning: "Namespace and name have more than 160 characters together, so no alarm rule can bear their mark"},
		{Reason: ReadFailed, Source: condition,
			Meaning: "The database is armed, but the last check could not read everything"},
		{Reason: ArmedReason, Source: condition, Meaning: "The alarm rules exist and the subscription is confirmed"},
	}
}

// Row returns the row of a reason. A reason of another version gets a row without flags.
func (r Reason) Row() ReasonRow {
	for _, row := range ReasonTable() {
		if row.Reason == r {
			return row
		}
	}
	return ReasonRow{Reason: r}
}

// IsWarning reports whether the event is a Warning, because a needed change is not made.
func (r Reason) IsWarning() bool { return r.Row().IsWarning }

// LacksEvidence reports whether the decision lacks a measurement at or over the threshold.
func (r Reason) LacksEvidence() bool { return r.Row().LacksEvidence }

// WarningReasons returns the reasons of decisions whose event is a Warning.
func WarningReasons() []Reason {
	var reasons []Reason
	for _, row := range ReasonTable() {
		if row.IsWarning && row.Source == SourceDecision {
			reasons = append(reasons, row.Reason)
		}
	}
	return reasons
}

// NotArmedReasons returns the reasons for which the condition Armed is False.
func NotArmedReasons() []string {
	var reasons []string
	for _, row := range ReasonTable() {
		if row.NotArmed {
			reasons = append(reasons, string(row.Reason))
		}
	}
	return reasons
}
