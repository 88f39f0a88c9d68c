// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Condition types of an RdsAutopilot.
const (
	ConditionArmed       = "Armed"       // an alarm would reach the service now
	ConditionProgressing = "Progressing" // a change of the autopilot is in progress
	ConditionLimited     = "Limited"     // the policy allows less than an alarm needs
	ConditionContested   = "Contested"   // another writer reverts the autopilot's change
	ConditionReady       = "Ready"       // armed and checked, or off as its user requested
	ConditionUnreadable  = "Unreadable"  // a field of the Rds has another type
)

// Metric is what an alarm watches.
//
// +kubebuilder:validation:Enum=storage;cpu;memory
type Metric string

// The metrics.
const (
	MetricStorage Metric = "storage"
	MetricCPU     Metric = "cpu"
	MetricMemory  Metric = "memory"
)

// ChangeKind is what a change modifies.
//
// +kubebuilder:validation:Enum=Volume;Flavor
type ChangeKind string

// The kinds of change, each one field of the Rds.
const (
	KindVolume ChangeKind = "Volume" // spec.volumesize
	KindFlavor ChangeKind = "Flavor" // spec.flavorref
)

// State is the state of an alarm, as Cloud Eye names it.
type State string

// The states of an alarm.
const (
	StateOK               State = "ok"
	StateAlarm            State = "alarm"
	StateInsufficientData State = "insufficient_data"
)

// Status holds everything that must survive a restart. The webhook writes intake only; the leader writes the rest.
type Status struct {
	// observedGeneration is the metadata.generation of the last check. If it is smaller than metadata.generation, the
	// autopilot has not observed the last change of the spec yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// effectiveMode is the mode that applies: the stricter one of spec.mode and --mode.
	// +optional
	EffectiveMode Mode `json:"effectiveMode,omitempty"`
	// conditions are Ready (armed and checked, or off as you requested), Armed (an alarm would reach the service),
	// Progressing (a change is in progress), Limited (a cap allows less than an alarm needs), Contested (another writer
	// reverts a change), and Unreadable (a field of the Rds has another type).
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// summary describes the last change and the last decision in a few words.
	// +optional
	Summary Summary `json:"summary,omitzero"`
	// switch is the last explicit value of spec.autopilot of the Rds. It is stored because the archived operator
	// removes the field within a second, and an absent field changes nothing.
	// +optional
	Switch Switch `json:"switch,omitzero"`
	// baseline is the instance when it was first armed.
	// +optional
	Baseline *Baseline `json:"baseline,omitempty"`
	// maxGB is the cap of the volume in GB: spec.storage.maxGB, or its default by the baseline.
	// +optional
	MaxGB int32 `json:"maxGB,omitempty"`
	// instance is the instance as the last check found it in the cloud.
	// +optional
	Instance *Instance `json:"instance,omitempty"`
	// alarms describes the rules that exist in the cloud for this database.
	// +optional
	Alarms Alarms `json:"alarms,omitzero"`
	// intake holds the messages of the cloud. Only the webhook writes it.
	// +optional
	Intake Intake `json:"intake,omitzero"`
	// used is the used space of the volume as the last sweeps read it. A sweep stores a new value if it differs by 1 % of
	// the volume, or if the stored one is older than 30 minutes.
	// +optional
	Used *UsedSpace `json:"used,omitempty"`
	// overThresholdSince is since when every value read of the used space was at or over the threshold. A lower value
	// clears it, and a growth of the volume restarts it. A failed read does not change it.
	// +optional
	OverThresholdSince *metav1.Time `json:"overThresholdSince,omitempty"`
	// readOnly is set while the database is read-only: since its used space reached the limit of its size, or the
	// instance was in STORAGE FULL, until a newer measurement shows that it is writable. Meanwhile the storage alarm
	// counts as in force.
	// +optional
	ReadOnly *ReadOnly `json:"readOnly,omitempty"`
	// deferred is a flavor change that waits for the window.
	// +optional
	Deferred *Deferred `json:"deferred,omitempty"`
	// held lists the changes that an alarm needs and that are not made, at most one of each kind.
	// +listType=map
	// +listMapKey=kind
	// +optional
	Held []Held `json:"held,omitempty"`
	// changes lists the changes of size and flavor, newest first: the autopilot's flavors of 7 days, and of each kind the
	// newest 8 of the autopilot and the newest 4 of others. Requested and Started are pending.
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	Changes []Change `json:"changes,omitempty"`
	// warned lists the warnings that still hold, so that each is reported once.
	// +listType=map
	// +listMapKey=reason
	// +optional
	Warned []Warned `json:"warned,omitempty"`
	// decisions lists the decisions, newest first.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Decisions []DecisionRecord `json:"decisions,omitempty"`
}

// Switch is an explicit value of spec.autopilot of an Rds.
type Switch struct {
	// value is On for true and Off for false.
	// +optional
	Value SwitchValue `json:"value,omitempty"`
	// uid is that of the Rds. A value of a former Rds says nothing about the next one of its name.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// SwitchValue is On or Off.
//
// +kubebuilder:validation:Enum="On";"Off"
type SwitchValue string

// The values of spec.autopilot: true and false.
const (
	SwitchOn  SwitchValue = "On"
	SwitchOff SwitchValue = "Off"
)

// Summary holds the texts of the columns of kubectl get, with their units. Programs should read instance, maxGB, used,
// changes and decisions instead.
type Summary struct {
	// volume is the size of the volume, such as "50 GB".
	// +optional
	Volume string `json:"volume,omitempty"`
	// max is the cap of the volume, such as "200 GB".
	// +optional
	Max string `json:"max,omitempty"`
	// used is the used part of the volume as the last sweeps read it, such as "83 %".
	// +optional
	Used string `json:"used,omitempty"`
	// lastChange describes the last change of size or flavor by any writer, such as "40 → 50 GB".
	// +optional
	LastChange string `json:"lastChange,omitempty"`
	// lastDecision is the reason and the metric of the last new decision, such as "AlarmInForce (storage)".
	// +optional
	LastDecision string `json:"lastDecision,omitempty"`
}

// Baseline is the instance when it was first armed.
type Baseline struct {
	// volumeGB is the size of the volume in GB.
	VolumeGB int32 `json:"volumeGB"`
	// vcpus is the number of vCPUs of the flavor.
	VCPUs int32 `json:"vcpus"`
	// memoryGB is the memory of the flavor in GB.
	MemoryGB int32 `json:"memoryGB"`
}

// Instance is the instance as the last check found it in the cloud.
type Instance struct {
	// id is the id of the instance in the cloud.
	// +optional
	ID string `json:"id,omitempty"`
	// status is the status as the cloud names it, such as ACTIVE.
	// +optional
	Status string `json:"status,omitempty"`
	// activeSince is when the status became ACTIVE. It is kept as long as every check finds ACTIVE.
	// +optional
	ActiveSince *metav1.Time `json:"activeSince,omitempty"`
	// volumeGB is the size of the volume in GB.
	// +optional
	VolumeGB int32 `json:"volumeGB,omitempty"`
	// flavor is the code of the flavor.
	// +optional
	Flavor string `json:"flavor,omitempty"`
	// vcpus is the number of vCPUs of the flavor.
	// +optional
	VCPUs int32 `json:"vcpus,omitempty"`
	// memoryGB is the memory of the flavor in GB.
	// +optional
	MemoryGB int32 `json:"memoryGB,omitempty"`
	// zones are the availability zones of its nodes.
	// +listType=atomic
	// +optional
	Zones []string `json:"zones,omitempty"`
	// nodeIDs are the ids of the nodes of the instance, because an alarm may name a node instead of the instance.
	// +listType=atomic
	// +optional
	NodeIDs []string `json:"nodeIDs,omitempty"`
}

// Alarms describes the alarm rules that exist in the cloud for a database.
type Alarms struct {
	// rules are the alarm rules, one for each watched metric.
	// +listType=map
	// +listMapKey=metric
	// +optional
	Rules []Rule `json:"rules,omitempty"`
	// refused is Cloud Eye's answer if it creates no rule, because of a quota or a missing right.
	// +optional
	Refused string `json:"refused,omitempty"`
}

// Rule is one alarm rule in Cloud Eye.
type Rule struct {
	// metric is the metric that the rule watches: storage, cpu or memory.
	Metric Metric `json:"metric"`
	// alarmID is the id of the rule in Cloud Eye.
	// +optional
	AlarmID string `json:"alarmID,omitempty"`
	// thresholdPercent is the threshold of the rule in the cloud, in percent.
	// +optional
	ThresholdPercent int32 `json:"thresholdPercent,omitempty"`
	// dimension is the dimension of the rule, as name:value.
	// +optional
	Dimension string `json:"dimension,omitempty"`
	// state is the state of the alarm as Cloud Eye names it: ok, alarm or insufficient_data.
	// +optional
	State State `json:"state,omitempty"`
	// stateTime is when the state last changed, by Cloud Eye's clock.
	// +optional
	StateTime *metav1.MicroTime `json:"stateTime,omitempty"`
}

// UsedSpace is a measurement of the used space of a volume.
type UsedSpace struct {
	// gb is the used space in GB, with one decimal.
	GB string `json:"gb"`
	// time is that of the datapoint in Cloud Eye.
	Time metav1.Time `json:"time"`
}

// ReadOnly is the state of a database that the cloud does not let write.
type ReadOnly struct {
	// sinceTime is when the measurement that showed it was taken, or when the instance was first seen in STORAGE FULL.
	SinceTime metav1.Time `json:"sinceTime"`
}
