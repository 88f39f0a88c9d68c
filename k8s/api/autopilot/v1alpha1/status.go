// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of an RdsAutopilot.
const (
	ConditionArmed       = "Armed"       // an alarm would reach us now
	ConditionProgressing = "Progressing" // a change of ours is pending
	ConditionLimited     = "Limited"     // a wish was cut by the policy
	ConditionContested   = "Contested"   // someone undoes what we did
	ConditionReady       = "Ready"       // armed and looked after, or off as its user wants it
)

// Metric is what is watched.
//
// +kubebuilder:validation:Enum=storage;cpu;memory
type Metric string

// The metrics.
const (
	MetricStorage Metric = "storage"
	MetricCPU     Metric = "cpu"
	MetricMemory  Metric = "memory"
)

// ChangeKind is what a change alters.
//
// +kubebuilder:validation:Enum=Volume;Flavor
type ChangeKind string

// The kinds of change, each one field of the Rds.
const (
	KindVolume ChangeKind = "Volume" // spec.volumesize
	KindFlavor ChangeKind = "Flavor" // spec.flavorref
)

// State is an alarm's state, in Cloud Eye's words.
type State string

// The states Cloud Eye knows.
const (
	StateOK               State = "ok"
	StateAlarm            State = "alarm"
	StateInsufficientData State = "insufficient_data"
)

// Status is everything that must outlive a process. The webhook writes intake and nothing else; the leader writes the rest.
type Status struct {
	// observedGeneration is the metadata.generation that was last looked at. A smaller one means that a change of the spec
	// has not been seen yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready (armed and looked after, or off as you want it), Armed (an alarm would reach the service),
	// Progressing (a change is under way), Limited (a cap cuts a wish) and Contested (somebody undoes a change).
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// summary says in a few words what happened last.
	// +optional
	Summary Summary `json:"summary,omitzero"`
	// switch is the last word of spec.autopilot of the Rds, as seen in any watch event: the archived operator drops the
	// field within a second, the word stays.
	// +optional
	Switch Switch `json:"switch,omitempty"`
	// baseline is the instance at first arming.
	// +optional
	Baseline *Baseline `json:"baseline,omitempty"`
	// instance is what the cloud had when last seen.
	// +optional
	Instance *Instance `json:"instance,omitempty"`
	// alarms is what exists in the cloud for this database.
	// +optional
	Alarms Alarms `json:"alarms,omitzero"`
	// intake is written by the webhook alone.
	// +optional
	Intake Intake `json:"intake,omitzero"`
	// pending is the intent: recorded before anything is changed, moved to changes once the cloud has it.
	// +optional
	Pending *Intent `json:"pending,omitempty"`
	// overtaken is a flavor intent that was pending for so long that storage had to go first.
	// +optional
	Overtaken *Intent `json:"overtaken,omitempty"`
	// unfulfilled is what the Rds asks for without us and the cloud has not got.
	// +listType=map
	// +listMapKey=kind
	// +optional
	Unfulfilled []Unfulfilled `json:"unfulfilled,omitempty"`
	// deferred is a wish that waits for the window.
	// +optional
	Deferred *Deferred `json:"deferred,omitempty"`
	// changes, newest first: the last 2 of kind Volume, the last 10 of kind Flavor.
	// +kubebuilder:validation:MaxItems=12
	// +listType=atomic
	// +optional
	Changes []Change `json:"changes,omitempty"`
	// formerVolumes are the sizes the volume had within the last 7 days, newest first, one a day at most; none where it has
	// not grown.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	FormerVolumes []FormerVolume `json:"formerVolumes,omitempty"`
	// warned is what people were warned of, once, for as long as it holds.
	// +listType=map
	// +listMapKey=reason
	// +optional
	Warned []Warned `json:"warned,omitempty"`
	// decisions, newest first.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Decisions []DecisionRecord `json:"decisions,omitempty"`
}

// Switch is what spec.autopilot of an Rds said.
//
// +kubebuilder:validation:Enum="On";"Off"
type Switch string

// The words of spec.autopilot: true and false.
const (
	SwitchOn  Switch = "On"
	SwitchOff Switch = "Off"
)

// Summary is what happened last, in a few words: the columns of kubectl get. Programs should read changes and decisions.
type Summary struct {
	// lastChange is the last change of size or flavor, by whomever, such as "40 → 50 GB".
	// +optional
	LastChange string `json:"lastChange,omitempty"`
	// lastDecision is the reason and the metric of the last decision that was new, such as "AlarmInForce (storage)".
	// +optional
	LastDecision string `json:"lastDecision,omitempty"`
}

// Baseline is the instance at first arming.
type Baseline struct {
	// volumeGB is the size of the volume in GB.
	VolumeGB int32 `json:"volumeGB"`
	// flavor is its code.
	Flavor string `json:"flavor"`
	// vcpus of the flavor.
	VCPUs int32 `json:"vcpus"`
	// memoryGB of the flavor, in GB.
	MemoryGB int32 `json:"memoryGB"`
}

// Instance is what the cloud had when last seen.
type Instance struct {
	// id of the instance in the cloud.
	// +optional
	ID string `json:"id,omitempty"`
	// status in the cloud's words, such as ACTIVE.
	// +optional
	Status string `json:"status,omitempty"`
	// activeSince is when the status was first seen ACTIVE without a break.
	// +optional
	ActiveSince *metav1.Time `json:"activeSince,omitempty"`
	// volumeGB is the size of the volume in GB.
	// +optional
	VolumeGB int32 `json:"volumeGB,omitempty"`
	// flavor is its code.
	// +optional
	Flavor string `json:"flavor,omitempty"`
	// vcpus of the flavor.
	// +optional
	VCPUs int32 `json:"vcpus,omitempty"`
	// memoryGB of the flavor, in GB.
	// +optional
	MemoryGB int32 `json:"memoryGB,omitempty"`
	// zones are the availability zones of its nodes.
	// +listType=atomic
	// +optional
	Zones []string `json:"zones,omitempty"`
	// nodeIDs of the instance: an alarm may name a node instead of the instance.
	// +listType=atomic
	// +optional
	NodeIDs []string `json:"nodeIDs,omitempty"`
	// primary is the id of the primary node.
	// +optional
	Primary string `json:"primary,omitempty"`
}

// Alarms is what exists in the cloud for this database.
type Alarms struct {
	// topicURN names the topic that the alarms are published to.
	// +optional
	TopicURN string `json:"topicURN,omitempty"`
	// subscriptionURN names the subscription of the public URL to the topic.
	// +optional
	SubscriptionURN string `json:"subscriptionURN,omitempty"`
	// subscription is Pending, Confirmed or Missing.
	// +kubebuilder:validation:Enum=Pending;Confirmed;Missing
	// +optional
	Subscription SubscriptionState `json:"subscription,omitempty"`
	// subscribedTime is when the confirmation was last asked for.
	// +optional
	SubscribedTime *metav1.Time `json:"subscribedTime,omitempty"`
	// rules are the alarm rules, one for each metric that is watched.
	// +listType=map
	// +listMapKey=metric
	// +optional
	Rules []Rule `json:"rules,omitempty"`
}

// SubscriptionState is how far the subscription is.
type SubscriptionState string

// The states of a subscription.
const (
	SubscriptionPending   SubscriptionState = "Pending"
	SubscriptionConfirmed SubscriptionState = "Confirmed"
	SubscriptionMissing   SubscriptionState = "Missing"
)

// Rule is one alarm rule in Cloud Eye.
type Rule struct {
	// metric that it watches: storage, cpu or memory.
	Metric Metric `json:"metric"`
	// alarmID is its id in Cloud Eye.
	// +optional
	AlarmID string `json:"alarmID,omitempty"`
	// thresholdPercent that the rule has in the cloud, in percent.
	// +optional
	ThresholdPercent int32 `json:"thresholdPercent,omitempty"`
	// dimension is the rule's, as name:value.
	// +optional
	Dimension string `json:"dimension,omitempty"`
	// state in Cloud Eye's words: ok, alarm or insufficient_data.
	// +optional
	State State `json:"state,omitempty"`
	// stateTime is when the state last changed, by Cloud Eye.
	// +optional
	StateTime *metav1.MicroTime `json:"stateTime,omitempty"`
}

// Intent is a change that is decided and not yet completed.
type Intent struct {
	// kind is Volume or Flavor.
	Kind ChangeKind `json:"kind"`
	// metrics whose alarms ask for it.
	// +listType=atomic
	Metrics []Metric `json:"metrics"`
	// from is the size in GB, or the flavor's code, before.
	From string `json:"from"`
	// to is the size in GB, or the flavor's code, that is wanted.
	To string `json:"to"`
	// evidenceTime is when the value was measured.
	EvidenceTime metav1.MicroTime `json:"evidenceTime"`
	// valuePercent is what was measured, in percent.
	ValuePercent string `json:"valuePercent"`
	// decisionTime is when it was decided.
	DecisionTime metav1.MicroTime `json:"decisionTime"`
	// message is the sentence that says why.
	// +optional
	Message string `json:"message,omitempty"`
	// askedTime is when the API server accepted the patch, or the Rds was first seen to ask for it. Without an Rds it is
	// when the cloud began.
	// +optional
	AskedTime *metav1.MicroTime `json:"askedTime,omitempty"`
	// jobID is the cloud's job that makes the change, where the autopilot has asked the cloud itself.
	// +optional
	JobID string `json:"jobID,omitempty"`
	// jobTime is when the cloud began that job.
	// +optional
	JobTime *metav1.MicroTime `json:"jobTime,omitempty"`
	// refusal is set while the API server refuses the patch, or the cloud the change.
	// +optional
	Refusal *Refusal `json:"refusal,omitempty"`
	// generation of the policy that it was decided by.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// Refusal is the API server's answer to the patch of an intent, or the cloud's to the change.
type Refusal struct {
	// count of refusals in a row.
	Count int32 `json:"count"`
	// time of the last one.
	Time metav1.MicroTime `json:"time"`
	// message is in the words of the API server or of the cloud.
	Message string `json:"message"`
	// reason is the code of the cloud's refusal, as in decisions. The API server's has none.
	// +optional
	Reason string `json:"reason,omitempty"`
	// nextTime is when the cloud is asked again at the earliest.
	// +optional
	NextTime *metav1.MicroTime `json:"nextTime,omitempty"`
}

// Unfulfilled is a size or flavor that somebody else put into the Rds and that the cloud has not got.
type Unfulfilled struct {
	// kind is Volume or Flavor.
	Kind ChangeKind `json:"kind"`
	// to is the size in GB, or the flavor's code.
	To string `json:"to"`
	// sinceTime is when it was first seen.
	SinceTime metav1.Time `json:"sinceTime"`
}

// Deferred is a wish for a flavor that waits for the window.
type Deferred struct {
	// metrics whose alarms ask for it.
	// +listType=atomic
	Metrics []Metric `json:"metrics"`
	// valuePercent is what was measured last, in percent.
	ValuePercent string `json:"valuePercent"`
	// firstTime is when it was first wished for.
	FirstTime metav1.Time `json:"firstTime"`
	// lastTime is when it was last wished for. It is kept for 7 days from then on.
	LastTime metav1.Time `json:"lastTime"`
}

// Author is who made a change.
//
// +kubebuilder:validation:Enum=Autopilot;Other
type Author string

// The authors of changes.
const (
	ByAutopilot Author = "Autopilot"
	ByOther     Author = "Other"
)

// Outcome is how a change ended.
//
// +kubebuilder:validation:Enum=Completed;Lost;RolledBack
type Outcome string

// The outcomes of changes.
const (
	OutcomeCompleted Outcome = "Completed" // the cloud has it
	OutcomeLost      Outcome = "Lost"      // the Rds no longer asks for it and the cloud has not got it
	// OutcomeRolledBack is a change by others: the cloud left a flavor of ours although the Rds still asked for it.
	OutcomeRolledBack Outcome = "RolledBack"
)

// Change is a change that has ended.
type Change struct {
	// kind is Volume or Flavor.
	Kind ChangeKind `json:"kind"`
	// by is who made it: Autopilot or Other.
	By Author `json:"by"`
	// from is the size in GB, or the flavor's code, before.
	From string `json:"from"`
	// to is the size in GB, or the flavor's code, after it.
	To string `json:"to"`
	// metrics whose alarms asked for it.
	// +listType=atomic
	// +optional
	Metrics []Metric `json:"metrics,omitempty"`
	// valuePercent is what was measured, in percent.
	// +optional
	ValuePercent string `json:"valuePercent,omitempty"`
	// evidenceTime is when the value was measured.
	// +optional
	EvidenceTime *metav1.MicroTime `json:"evidenceTime,omitempty"`
	// decisionTime is when it was decided.
	// +optional
	DecisionTime *metav1.MicroTime `json:"decisionTime,omitempty"`
	// completionTime is when it ended.
	CompletionTime metav1.MicroTime `json:"completionTime"`
	// outcome is Completed, Lost or RolledBack.
	Outcome Outcome `json:"outcome"`
	// count is how often it happened, where equal changes within a day are one entry: a size of ours that was taken back,
	// a flavor that others changed. completionTime is the last one's.
	// +optional
	Count int32 `json:"count,omitempty"`
	// generation of the policy that it was decided by.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// FormerVolume is a size the volume had.
type FormerVolume struct {
	// volumeGB is the size in GB.
	VolumeGB int32 `json:"volumeGB"`
	// until is when it was first seen with another size.
	Until metav1.Time `json:"until"`
}

// Warned is one thing people were warned of.
type Warned struct {
	// reason is the code in the event.
	Reason string `json:"reason"`
	// volumeGB is the size of the volume at that time, in GB.
	VolumeGB int32 `json:"volumeGB"`
	// time of the warning.
	Time metav1.Time `json:"time"`
}

// DecisionRecord is one decision, or several equal ones in a row.
type DecisionRecord struct {
	// time of the first of them.
	Time metav1.Time `json:"time"`
	// lastTime is that of the last, written at most every 5 minutes.
	// +optional
	LastTime metav1.Time `json:"lastTime,omitzero"`
	// count of them, as far as they were written.
	Count int32 `json:"count"`
	// metric that it is about: storage, cpu or memory.
	Metric Metric `json:"metric"`
	// action is GrowVolume, ChangeFlavor or None.
	Action string `json:"action"`
	// reason is one code; the same in event, condition, metric and log.
	Reason string `json:"reason"`
	// from is the size in GB, or the flavor's code, at that time.
	// +optional
	From string `json:"from,omitempty"`
	// to is the size in GB, or the flavor's code, that was decided on.
	// +optional
	To string `json:"to,omitempty"`
	// valuePercent is what was measured, in percent.
	// +optional
	ValuePercent string `json:"valuePercent,omitempty"`
	// messageID of the message that made the leader look, if one did.
	// +optional
	MessageID string `json:"messageID,omitempty"`
	// message is one sentence a person understands.
	Message string `json:"message"`
}
