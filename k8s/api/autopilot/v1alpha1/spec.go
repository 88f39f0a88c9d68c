package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RdsAutopilot is the autopilot of the Rds with the same namespace and name.
//
// +kubebuilder:validation:XValidation:rule="has(self.status) || !has(self.spec.flavor.window) || [self.spec.flavor.window.timeZone].all(z, z != 'Local' && !z.contains(':') && timestamp('2026-01-01T00:00:00Z').getHours(z) >= 0)",message="spec.flavor.window.timeZone must be a name of the IANA time zone database, such as Europe/Berlin",fieldPath=".spec.flavor.window.timeZone"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.flavor.window) || has(oldSelf.spec.flavor.window) && oldSelf.spec.flavor.window.timeZone == self.spec.flavor.window.timeZone || [self.spec.flavor.window.timeZone].all(z, z != 'Local' && !z.contains(':') && timestamp('2026-01-01T00:00:00Z').getHours(z) >= 0)",message="spec.flavor.window.timeZone must be a name of the IANA time zone database, such as Europe/Berlin",fieldPath=".spec.flavor.window.timeZone"
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=rdsautopilots,singular=rdsautopilot,shortName=rap,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="MODE",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="ARMED",type=string,JSONPath=`.status.conditions[?(@.type=="Armed")].status`
// +kubebuilder:printcolumn:name="VOLUME",type=integer,JSONPath=`.status.instance.volumeGB`
// +kubebuilder:printcolumn:name="MAX",type=integer,JSONPath=`.spec.storage.maxGB`
// +kubebuilder:printcolumn:name="FLAVOR",type=string,JSONPath=`.status.instance.flavor`
// +kubebuilder:printcolumn:name="LAST CHANGE",type=date,JSONPath=`.status.changes[0].completionTime`
// +kubebuilder:printcolumn:name="LAST DECISION",type=string,JSONPath=`.status.decisions[0].reason`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type RdsAutopilot struct {
	// The rules look at the time zone when it is written: at creation, which is before there is a status, and when it
	// changes. A wrong one that an older schema let through must not keep the status from being written, for a full
	// disk's alarm is stored there: CEL answers an error for a zone that the API server does not find, and an error is
	// not forgiven where nothing changed.

	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the policy: what may be done, and how far.
	// +kubebuilder:default={}
	// +optional
	Spec Spec `json:"spec,omitzero"`
	// status is written by the autopilot only.
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

// Mode says how far the autopilot may go.
//
// +kubebuilder:validation:Enum=Auto;Recommend;Off
type Mode string

// The modes, from the widest to the narrowest.
const (
	ModeAuto      Mode = "Auto"      // decide, record and patch
	ModeRecommend Mode = "Recommend" // decide and record, patch nothing
	ModeOff       Mode = "Off"       // do nothing, keep nothing in the cloud
)

// Spec is the policy.
type Spec struct {
	// mode is Auto, Recommend (decides and records, patches nothing) or "Off": in quotes, because YAML reads a bare Off
	// as false.
	// +kubebuilder:default=Auto
	// +optional
	Mode Mode `json:"mode,omitempty"`
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
	// stepGB is how many GB the volume grows at a time: a multiple of 10.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3960
	// +kubebuilder:validation:MultipleOf=10
	// +optional
	StepGB int32 `json:"stepGB,omitempty"`
	// maxGB is never exceeded; the last step is clamped to it.
	// +kubebuilder:default=4000
	// +kubebuilder:validation:Minimum=40
	// +kubebuilder:validation:Maximum=4000
	// +kubebuilder:validation:MultipleOf=10
	// +optional
	MaxGB int32 `json:"maxGB,omitempty"`
	// thresholdPercent of used storage raises the alarm. The smaller of it and what leaves 10 GB free is in effect.
	// +kubebuilder:default=90
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=99
	// +optional
	ThresholdPercent int32 `json:"thresholdPercent,omitempty"`
	// alarm is how Cloud Eye evaluates the rule.
	// +kubebuilder:default={}
	// +optional
	Alarm StorageAlarm `json:"alarm,omitzero"`
}

// StorageAlarm is how Cloud Eye evaluates the storage rule.
type StorageAlarm struct {
	// periodSeconds is one of Cloud Eye's periods; 1 means raw data, one value a minute.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Enum=1;300;1200;3600;14400;86400
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// count is how many periods in a row must be over the threshold.
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +optional
	Count int32 `json:"count,omitempty"`
	// repeatSeconds is how often Cloud Eye repeats a lasting alarm; 0 means once.
	// +kubebuilder:default=900
	// +kubebuilder:validation:Enum=0;300;600;900;1800;3600;10800;21600;43200;86400
	// +optional
	RepeatSeconds *int32 `json:"repeatSeconds,omitempty"`
}

// FlavorAlarm is how Cloud Eye evaluates the CPU and memory rules.
type FlavorAlarm struct {
	// periodSeconds is one of Cloud Eye's periods; 1 means raw data, one value a minute.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Enum=1;300;1200;3600;14400;86400
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// count is how many periods in a row must be over the threshold.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	// +optional
	Count int32 `json:"count,omitempty"`
	// repeatSeconds is how often Cloud Eye repeats a lasting alarm; 0 means once.
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Enum=0;300;600;900;1800;3600;10800;21600;43200;86400
	// +optional
	RepeatSeconds *int32 `json:"repeatSeconds,omitempty"`
}

// Flavor is the policy for CPU and memory.
type Flavor struct {
	// cpu says whether and when CPU usage asks for a larger flavor.
	// +kubebuilder:default={}
	// +optional
	CPU Trigger `json:"cpu,omitzero"`
	// memory says whether and when memory usage asks for a larger flavor.
	// +kubebuilder:default={}
	// +optional
	Memory Trigger `json:"memory,omitzero"`
	// alarm is how Cloud Eye evaluates both rules.
	// +kubebuilder:default={}
	// +optional
	Alarm FlavorAlarm `json:"alarm,omitzero"`
	// maxVCPUs is never exceeded. Omitted: four times the instance at first arming.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxVCPUs *int32 `json:"maxVCPUs,omitempty"`
	// maxMemoryGB is never exceeded. Omitted: four times the instance at first arming.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxMemoryGB *int32 `json:"maxMemoryGB,omitempty"`
	// cooldownSeconds is the least time between two changes of flavor.
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=0
	// +optional
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`
	// maxChangesPerDay is the most changes of flavor in any 24 hours.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	MaxChangesPerDay int32 `json:"maxChangesPerDay,omitempty"`
	// window is when a flavor may change, for a change interrupts the database. Omitted: at any time.
	// +optional
	Window *Window `json:"window,omitempty"`
}

// Trigger switches one metric on and sets its threshold.
type Trigger struct {
	// enabled: a disabled metric has no rule in the cloud.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// thresholdPercent raises the alarm.
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
	// days on which the window opens. Omitted: every day.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	// +listType=set
	// +optional
	Days []Day `json:"days,omitempty"`
	// start, as HH:MM.
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	// +required
	Start string `json:"start"`
	// end, as HH:MM.
	// +kubebuilder:validation:Pattern=`^([01][0-9]|2[0-3]):[0-5][0-9]$`
	// +required
	End string `json:"end"`
	// timeZone is a name of the IANA database, such as Europe/Berlin.
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}
