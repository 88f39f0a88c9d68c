// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Refusal describes why the API server refuses a patch, or the cloud a change.
type Refusal struct {
	// count is the number of refusals in a row.
	Count int32 `json:"count"`
	// time is the time of the last refusal.
	Time metav1.MicroTime `json:"time"`
	// message is the text of the API server or of the cloud.
	Message string `json:"message"`
	// reason is the code of the cloud's refusal, as in decisions. It is empty if the API server refuses.
	// +optional
	Reason string `json:"reason,omitempty"`
	// nextTime is the earliest time of the next request.
	// +optional
	NextTime *metav1.MicroTime `json:"nextTime,omitempty"`
}

// Deferred is a flavor change that waits for the window.
type Deferred struct {
	// metrics are the metrics whose alarms led to the change.
	// +listType=atomic
	Metrics []Metric `json:"metrics"`
	// valuePercent is the last measured value in percent.
	ValuePercent string `json:"valuePercent"`
	// firstTime is the time of the first deferral.
	FirstTime metav1.Time `json:"firstTime"`
	// lastTime is the time of the last deferral. The change expires 7 days later.
	LastTime metav1.Time `json:"lastTime"`
}

// Held is a change that an alarm needs and that is not made.
type Held struct {
	// kind is Volume or Flavor.
	Kind ChangeKind `json:"kind"`
	// reason is the last reason that prevented it, as in decisions. AlarmInForce and ChangePending mean that nothing has.
	Reason string `json:"reason"`
	// sinceTime is when a check first found the need, or when the last change of that kind was completed.
	SinceTime metav1.Time `json:"sinceTime"`
}

// Author is the origin of a change.
//
// +kubebuilder:validation:Enum=Autopilot;Other
type Author string

// The authors of changes.
const (
	ByAutopilot Author = "Autopilot"
	ByOther     Author = "Other"
)

// Outcome is how a change ended. It is empty while the change is pending.
//
// +kubebuilder:validation:Enum=Completed;Failed;Refused;Withdrawn;Lost;Reverted
type Outcome string

// The outcomes of changes.
const (
	OutcomeCompleted Outcome = "Completed" // the cloud has made the change
	OutcomeFailed    Outcome = "Failed"    // the cloud accepted it, and its job failed or did nothing
	OutcomeRefused   Outcome = "Refused"   // the API server or the cloud refused it until no alarm needed it any more
	OutcomeWithdrawn Outcome = "Withdrawn" // it was never requested: no longer needed, switched off, or another instance
	OutcomeLost      Outcome = "Lost"      // the Rds no longer requests it, and the cloud did not make it
	OutcomeReverted  Outcome = "Reverted"  // the cloud had it, and another writer or the cloud itself took it back
)

// Change is a change of the size or the flavor, from its decision to its end.
type Change struct {
	// kind is Volume or Flavor.
	Kind ChangeKind `json:"kind"`
	// by says whose size or flavor it is: Autopilot or Other.
	By Author `json:"by"`
	// from is the size in GB, or the flavor's code, before the change.
	From string `json:"from"`
	// to is the requested size in GB, or the code of the requested flavor.
	To string `json:"to"`
	// replaces is the earlier candidate that the Rds requested at the decision. It does not count as another writer's
	// until the Rds requests this one.
	// +optional
	Replaces string `json:"replaces,omitempty"`
	// metrics are the metrics whose alarms led to the change.
	// +listType=atomic
	// +optional
	Metrics []Metric `json:"metrics,omitempty"`
	// valuePercent is the measured value in percent, of the first metric.
	// +optional
	ValuePercent string `json:"valuePercent,omitempty"`
	// morePercents are the values of the other metrics, in their order.
	// +listType=atomic
	// +optional
	MorePercents []string `json:"morePercents,omitempty"`
	// evidenceTime is when Cloud Eye measured the value.
	// +optional
	EvidenceTime *metav1.MicroTime `json:"evidenceTime,omitempty"`
	// decisionTime is the time of the autopilot's decision. Changes that only others made have none.
	// +optional
	DecisionTime *metav1.MicroTime `json:"decisionTime,omitempty"`
	// requestTime is when the Rds requested the change, as a check first found it, or when the autopilot requested it
	// from the cloud.
	// +optional
	RequestTime *metav1.MicroTime `json:"requestTime,omitempty"`
	// startTime is when the cloud accepted the autopilot's request, or when a check first found the change in the cloud.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`
	// jobID is the id of the cloud's job, if the autopilot has requested the change from the cloud itself.
	// +optional
	JobID string `json:"jobID,omitempty"`
	// completionTime is when the change ended, or when a check found that it was reverted.
	// +optional
	CompletionTime metav1.MicroTime `json:"completionTime,omitzero"`
	// outcome is how the change ended. Without one it is pending.
	// +optional
	Outcome Outcome `json:"outcome,omitempty"`
	// refusal is the last refusal of the API server or of the cloud, and why a change failed.
	// +optional
	Refusal *Refusal `json:"refusal,omitempty"`
	// message gives the reason for the change in one sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// count is the number of equal changes within a day that this entry stands for: a size of the autopilot that
	// another writer reset, or a change of others. completionTime is the time of the last one.
	// +optional
	Count int32 `json:"count,omitempty"`
	// generation is the metadata.generation of the policy at the decision.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// Warned is a warning that was reported and still holds.
type Warned struct {
	// reason is the code of the event.
	Reason string `json:"reason"`
	// time is the time of the warning.
	Time metav1.Time `json:"time"`
}

// DecisionRecord is one decision, or several equal decisions in a row.
type DecisionRecord struct {
	// time is the time of the first of them.
	Time metav1.Time `json:"time"`
	// lastTime is the time of the last of them. It is updated at most every 5 minutes.
	// +optional
	LastTime metav1.Time `json:"lastTime,omitzero"`
	// count is the number of updates of this record, beginning with 1.
	Count int32 `json:"count"`
	// metric is the metric of the alarm: storage, cpu or memory.
	Metric Metric `json:"metric"`
	// action is GrowVolume, ChangeFlavor or None.
	Action string `json:"action"`
	// reason is the code of the reason, which is the same in events, conditions, metrics and logs.
	Reason string `json:"reason"`
	// from is the size in GB, or the flavor's code, at the decision.
	// +optional
	From string `json:"from,omitempty"`
	// to is the requested size in GB, or the code of the requested flavor.
	// +optional
	To string `json:"to,omitempty"`
	// valuePercent is the measured value in percent.
	// +optional
	ValuePercent string `json:"valuePercent,omitempty"`
	// messageID is the id of the message that started the check, if a message did.
	// +optional
	MessageID string `json:"messageID,omitempty"`
	// message explains the decision in one sentence.
	Message string `json:"message"`
}
