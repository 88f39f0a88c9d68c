// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Refusal describes why the last attempt of a change has failed.
type Refusal struct {
	// count is the number of failed attempts in a row, within a day, also of earlier changes of that kind.
	Count int32 `json:"count"`
	// time is when the last attempt failed.
	Time metav1.MicroTime `json:"time"`
	// message is the text of the API server or of the cloud.
	Message string `json:"message"`
	// reason is the code of the failure, as in decisions. It is empty if the API server refuses.
	// +optional
	Reason string `json:"reason,omitempty"`
	// nextTime is the earliest time of the next attempt.
	// +optional
	NextTime *metav1.MicroTime `json:"nextTime,omitempty"`
}

// Deferred is a flavor change that waits for the window.
type Deferred struct {
	// metrics are the metrics whose alarms led to the change.
	// +listType=atomic
	Metrics []Metric `json:"metrics"`
	// valuePercent is the last measured value of the first metric in percent.
	ValuePercent string `json:"valuePercent"`
	// morePercents are the values of the other metrics, in their order.
	// +listType=atomic
	// +optional
	MorePercents []string `json:"morePercents,omitempty"`
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

// ChangeState is how far a change has come. Requested and Started are pending. docs/decisions.md has every transition.
//
// +kubebuilder:validation:Enum=Requested;Started;Refused;Completed;Failed;Lost;Replaced;Reverted;Withdrawn
type ChangeState string

// The states of a change.
const (
	StateRequested ChangeState = "Requested" // stored, and about to be sent or sent; nobody knows yet whether it has begun
	StateStarted   ChangeState = "Started"   // the cloud has accepted it, or the flavor was seen changing
	StateRefused   ChangeState = "Refused"   // every request was clearly refused; it waits for its next attempt
	StateCompleted ChangeState = "Completed" // the cloud has it
	StateFailed    ChangeState = "Failed"    // it had started, and is not there
	StateLost      ChangeState = "Lost"      // it was requested, and there is no trace of it
	StateReplaced  ChangeState = "Replaced"  // somebody else has requested something else
	StateReverted  ChangeState = "Reverted"  // the cloud left the flavor although the spec requests it
	StateWithdrawn ChangeState = "Withdrawn" // it was refused, and then not needed or not allowed any more
)

// Change is a change of the size or the flavor, from its request to its end.
type Change struct {
	// kind is Volume or Flavor.
	Kind ChangeKind `json:"kind"`
	// by says whose size or flavor it is: Autopilot or Other. Those of others are Requested or Completed.
	By Author `json:"by"`
	// from is the size in GB, or the flavor's code, before the change.
	From string `json:"from"`
	// to is the requested size in GB, or the code of the requested flavor.
	To string `json:"to"`
	// state is how far the change has come.
	// +optional
	State ChangeState `json:"state,omitempty"`
	// metrics are the metrics whose alarms led to the change.
	// +listType=atomic
	// +optional
	Metrics []Metric `json:"metrics,omitempty"`
	// valuePercent is the measured value of the first metric in percent.
	// +optional
	ValuePercent string `json:"valuePercent,omitempty"`
	// morePercents are the values of the other metrics, in their order.
	// +listType=atomic
	// +optional
	MorePercents []string `json:"morePercents,omitempty"`
	// evidenceTime is when Cloud Eye measured the value.
	// +optional
	EvidenceTime *metav1.MicroTime `json:"evidenceTime,omitempty"`
	// requestTime is when the autopilot stored the last attempt, just before it sent the request. Of another writer's
	// change, it is when a check first found it in the spec of the Rds.
	// +optional
	RequestTime *metav1.MicroTime `json:"requestTime,omitempty"`
	// seenTime is when a check first found the spec of the Rds with it.
	// +optional
	SeenTime *metav1.MicroTime `json:"seenTime,omitempty"`
	// startTime is when the cloud accepted the request, or when a check first saw the flavor changing.
	// +optional
	StartTime *metav1.MicroTime `json:"startTime,omitempty"`
	// jobID is the id of the cloud's job, if the autopilot has requested the change from the cloud itself.
	// +optional
	JobID string `json:"jobID,omitempty"`
	// endTime is when the change reached its present state, if that is not pending or refused.
	// +optional
	EndTime metav1.MicroTime `json:"endTime,omitzero"`
	// refusal is the last refusal of the API server or of the cloud, a missing answer, or why the change failed.
	// +optional
	Refusal *Refusal `json:"refusal,omitempty"`
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
