// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RdsAutopilot is the autopilot of the Rds with the same namespace and name, or of the instance that it names itself.
//
// +kubebuilder:validation:XValidation:rule="has(self.status) && has(self.status.observedGeneration) || !has(self.spec.flavor.window) || [self.spec.flavor.window.timeZone].all(z, z != 'Local' && !z.contains(':') && timestamp('2026-01-01T00:00:00Z').getHours(z) >= 0)",message="spec.flavor.window.timeZone must be a name of the IANA time zone database, such as Europe/Berlin",fieldPath=".spec.flavor.window.timeZone"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.flavor.window) || has(oldSelf.spec.flavor.window) && oldSelf.spec.flavor.window.timeZone == self.spec.flavor.window.timeZone || [self.spec.flavor.window.timeZone].all(z, z != 'Local' && !z.contains(':') && timestamp('2026-01-01T00:00:00Z').getHours(z) >= 0)",message="spec.flavor.window.timeZone must be a name of the IANA time zone database, such as Europe/Berlin",fieldPath=".spec.flavor.window.timeZone"
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=rdsautopilots,singular=rdsautopilot,shortName=rap,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=`.status.effectiveMode`
// +kubebuilder:printcolumn:name="ARMED",type=string,JSONPath=`.status.conditions[?(@.type=="Armed")].status`
// +kubebuilder:printcolumn:name="VOLUME",type=string,JSONPath=`.status.summary.volume`
// +kubebuilder:printcolumn:name="MAX",type=string,JSONPath=`.status.summary.max`
// +kubebuilder:printcolumn:name="FLAVOR",type=string,JSONPath=`.status.instance.flavor`
// +kubebuilder:printcolumn:name="LAST CHANGE",type=string,JSONPath=`.status.summary.lastChange`
// +kubebuilder:printcolumn:name="LAST DECISION",type=string,JSONPath=`.status.summary.lastDecision`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="USED",type=string,priority=1,JSONPath=`.status.summary.used`
// +kubebuilder:printcolumn:name="READY",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="REASON",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
type RdsAutopilot struct {
	// The rules check the time zone only when it is written: at creation, before the leader has observed the object,
	// and when it changes. A wrong zone that an older schema accepted must not prevent a status write, because the
	// webhook stores the alarm of a full disk there. CEL returns an error for a zone that the API server does not know,
	// and the API server does not ignore errors of unchanged fields.

	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy: what the autopilot may change, and up to which limits.
	// +kubebuilder:default={}
	// +optional
	Spec Spec `json:"spec,omitzero"`
	// status is written by the autopilot only. Before the first check, Ready is Unknown, so that a tool that waits for
	// Ready does not report a database without alarms as healthy.
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "NotYet", message: "Waiting for the first check of this database", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	// +optional
	Status Status `json:"status,omitzero"`
}

// RdsAutopilotList is a list of RdsAutopilots.
//
// +kubebuilder:object:root=true
type RdsAutopilotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RdsAutopilot `json:"items"`
}

// Mode limits what the autopilot may do.
//
// +kubebuilder:validation:Enum=Auto;Recommend;Off
type Mode string

// The modes, from the least to the most strict.
const (
	ModeAuto      Mode = "Auto"      // decides, records and patches
	ModeRecommend Mode = "Recommend" // decides and records, but patches nothing
	ModeOff       Mode = "Off"       // does nothing and removes its alarms from the cloud
)

// Apply names the system that makes a change.
//
// +kubebuilder:validation:Enum=Operator;Cloud
type Apply string

// The ways to make a change.
const (
	// ApplyOperator lets the autopilot patch the Rds. The operator of the Rds then changes the instance.
	ApplyOperator Apply = "Operator"
	// ApplyCloud lets the autopilot request the change of an instance without an Rds from the cloud itself.
	ApplyCloud Apply = "Cloud"
)

// Spec is the policy.
//
// +kubebuilder:validation:XValidation:rule="has(self.instanceID) == (has(self.apply) && self.apply == 'Cloud')",message="spec.apply: Cloud and spec.instanceID need each other: they are for an instance without an Rds",fieldPath=".instanceID"
type Spec struct {
	// mode is "Auto" (decides, records and patches), "Recommend" (decides and records, but patches nothing) or "Off"
	// (does nothing and removes its alarms from the cloud). Write "Off" in quotes, because YAML reads a bare Off as
	// false. Default: Auto.
	// +kubebuilder:default=Auto
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// apply names the system that makes a change: "Operator" (the autopilot patches the Rds, and its operator changes
	// the instance) or "Cloud" (the autopilot requests the change of instanceID from the cloud itself and follows the
	// job; there must be no Rds of this name). Cloud needs a service that runs with --allow-apply=Cloud. Default:
	// Operator.
	// +kubebuilder:default=Operator
	// +optional
	Apply Apply `json:"apply,omitempty"`
	// instanceID is the cloud's id of an instance that has no Rds, for example one created with Terraform. It needs
	// apply: Cloud. Default: the id in status.id of the Rds with this namespace and name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z][0-9A-Za-z-]*$')",message="must be the id of an instance, as the cloud shows it"
	// +optional
	InstanceID string `json:"instanceID,omitempty"`
	// storage is the policy for the volume.
	// +kubebuilder:default={}
	// +optional
	Storage Storage `json:"storage,omitzero"`
	// flavor is the policy for CPU and memory.
	// +kubebuilder:default={}
	// +optional
	Flavor Flavor `json:"flavor,omitzero"`
}

// Storage is the policy for the volume.
type Storage struct {
	// stepGB is how many GB the volume grows at a time: 10 to 3960, a multiple of 10. A step that was not enough
	// doubles, and the volume grows by more than one step if it needs to. Default: 10.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3960
	// +kubebuilder:validation:MultipleOf=10
	// +optional
	StepGB int32 `json:"stepGB,omitempty"`
	// stepPercent is the step in percent of the volume: 1 to 50. It counts if, rounded up to tens of GB, it is more than
	// stepGB. A large volume then needs fewer steps. Default: none.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +optional
	StepPercent int32 `json:"stepPercent,omitempty"`
	// maxGB is the cap of the volume in GB: 40 to 4000, a multiple of 10. The autopilot never exceeds it and clamps the
	// last step to it. Default: four times the volume when the instance was first armed (status.baseline), but at least
	// 200 and at most 4000.
	// +kubebuilder:validation:Minimum=40
	// +kubebuilder:validation:Maximum=4000
	// +kubebuilder:validation:MultipleOf=10
	// +optional
	MaxGB int32 `json:"maxGB,omitempty"`
	// thresholdPercent is how many percent of the storage must be used to raise the alarm: 1 to 99. The alarm comes
	// earlier if less than 10 GB, or an eighth of a small volume, would lie between it and read-only: at 75 % of 40 GB,
	// at 85 % of 100 GB, at 90 % from 150 GB on. Default: 90.
	// +kubebuilder:default=90
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=99
	// +optional
	ThresholdPercent int32 `json:"thresholdPercent,omitempty"`
	// alarm is how Cloud Eye, the cloud's monitoring, evaluates the rule.
	// +kubebuilder:default={}
	// +optional
	Alarm StorageAlarm `json:"alarm,omitzero"`
}

// StorageAlarm is how Cloud Eye evaluates the storage rule.
type StorageAlarm struct {
	// periodSeconds is one of Cloud Eye's periods in seconds: 1, 300, 1200, 3600, 14400 or 86400. 1 means raw data, one
	// value a minute. Default: 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Enum=1;300;1200;3600;14400;86400
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// count is how many periods in a row must be at or over the threshold: 1 to 5. Default: 5.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +optional
	Count int32 `json:"count,omitempty"`
	// repeatSeconds is the interval at which Cloud Eye repeats an alarm that lasts, in seconds: 300, 600, 900, 1800,
	// 3600, 10800, 21600, 43200, 86400, or 0 for never. Default: 900.
	// +kubebuilder:default=900
	// +kubebuilder:validation:Enum=0;300;600;900;1800;3600;10800;21600;43200;86400
	// +optional
	RepeatSeconds *int32 `json:"repeatSeconds,omitempty"`
}

// FlavorAlarm is how Cloud Eye evaluates the CPU and memory rules.
type FlavorAlarm struct {
	// periodSeconds is one of Cloud Eye's periods in seconds: 1, 300, 1200, 3600, 14400 or 86400. 1 means raw data, one
	// value a minute. Default: 300.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Enum=1;300;1200;3600;14400;86400
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// count is how many periods in a row must be at or over the threshold: 1 to 5. Default: 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +optional
	Count int32 `json:"count,omitempty"`
	// repeatSeconds is the interval at which Cloud Eye repeats an alarm that lasts, in seconds: 300, 600, 900, 1800,
	// 3600, 10800, 21600, 43200, 86400, or 0 for never. Default: 1800.
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Enum=0;300;600;900;1800;3600;10800;21600;43200;86400
	// +optional
	RepeatSeconds *int32 `json:"repeatSeconds,omitempty"`
}

// Flavor is the policy for CPU and memory.
type Flavor struct {
	// cpu sets whether and when CPU usage leads to a larger flavor.
	// +kubebuilder:default={}
	// +optional
	CPU Trigger `json:"cpu,omitzero"`
	// memory sets whether and when memory usage leads to a larger flavor.
	// +kubebuilder:default={}
	// +optional
	Memory Trigger `json:"memory,omitzero"`
	// alarm is how Cloud Eye evaluates both rules.
	// +kubebuilder:default={}
	// +optional
	Alarm FlavorAlarm `json:"alarm,omitzero"`
	// maxVCPUs is the cap of the flavor's vCPUs: 1 or more. Default: four times the vCPUs of the instance when it was
	// first armed (status.baseline).
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxVCPUs *int32 `json:"maxVCPUs,omitempty"`
	// maxMemoryGB is the cap of the flavor's memory in GB: 1 or more. Default: four times the memory of the instance
	// when it was first armed (status.baseline).
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxMemoryGB *int32 `json:"maxMemoryGB,omitempty"`
	// cooldownSeconds is the minimum time between two changes of flavor, in seconds: 0 or more. Default: 3600.
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=0
	// +optional
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`
	// maxChangesPerDay is the maximum number of changes of flavor in any 24 hours: 1 to 10. Default: 2.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	MaxChangesPerDay int32 `json:"maxChangesPerDay,omitempty"`
	// window limits to a part of the week when the autopilot requests a flavor, because such a change restarts the
	// database. When an operator applies the request is its own affair: **it may be after the window**. Storage grows at
	// any time. Default: at any time.
	// +optional
	Window *Window `json:"window,omitempty"`
}

// Trigger switches one metric on and sets its threshold.
type Trigger struct {
	// enabled sets whether the autopilot watches this metric: true or false. A metric that is not watched has no alarm
	// rule in the cloud. Default: true.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// thresholdPercent is how many percent must be in use to raise the alarm: 1 to 100. Default: 90.
	// +kubebuilder:default=90
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	ThresholdPercent int32 `json:"thresholdPercent,omitempty"`
}

// Day is a day of the week.
//
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Day string

// Window is a part of the week. An end at or before its start is on the next day.
type Window struct {
	// days are the days on which the window opens: Mon, Tue, Wed, Thu, Fri, Sat, Sun, each at most once. Default: every
	// day.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	// +listType=set
	// +optional
	Days []Day `json:"days,omitempty"`
	// start is when the window opens, as HH:MM, 00:00 to 23:59, in quotes. Required.
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="must be HH:MM in quotes, such as \"05:00\""
	// +required
	Start string `json:"start"`
	// end is when the window closes, as HH:MM, 00:00 to 23:59, in quotes. An end at or before start is on the next day.
	// Required.
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="must be HH:MM in quotes, such as \"05:00\""
	// +required
	End string `json:"end"`
	// timeZone is a name of the IANA time zone database, such as Europe/Berlin. An offset such as +02:00 is rejected.
	// Default: UTC.
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}
