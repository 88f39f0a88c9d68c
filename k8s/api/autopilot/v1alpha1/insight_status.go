// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Insight explains what happened, from Cloud Eye's history. No decision depends on it.
type Insight struct {
	// lookTime is when the history was last read, with success or without.
	LookTime metav1.Time `json:"lookTime"`
	// cause is what fills the volume.
	// +optional
	Cause *Cause `json:"cause,omitempty"`
	// flavor says whether a larger flavor helps.
	// +optional
	Flavor *FlavorInsight `json:"flavor,omitempty"`
	// cap is when the largest volume that the policy allows would be read-only.
	// +optional
	Cap *CapForecast `json:"cap,omitempty"`
}

// CauseName is what fills a volume.
//
// +kubebuilder:validation:Enum=Data;WAL;ReplicationSlot;TempFiles;LongTransaction;AuditLog;Unknown
type CauseName string

// The causes.
const (
	CauseData            CauseName = "Data"            // nothing else is large or grows
	CauseWAL             CauseName = "WAL"             // transaction logs of PostgreSQL
	CauseReplicationSlot CauseName = "ReplicationSlot" // a slot or a replica keeps transaction logs
	CauseTempFiles       CauseName = "TempFiles"       // temporary files, or tempdb of SQL Server
	CauseLongTransaction CauseName = "LongTransaction" // an open transaction prevents the reuse of space
	CauseAuditLog        CauseName = "AuditLog"        // logs of pgaudit
	CauseUnknown         CauseName = "Unknown"         // the engine has no metric of it, or Cloud Eye has no data
)

// Cause is what fills a volume.
type Cause struct {
	// name is Data, WAL, ReplicationSlot, TempFiles, LongTransaction, AuditLog or Unknown.
	Name CauseName `json:"name"`
	// usedPercent is the share of that part in the used space, in percent. It is 0 for a cause that is not a size, such
	// as LongTransaction. It is always written, because kube-state-metrics shows no gauge without a value.
	// +optional
	UsedPercent int32 `json:"usedPercent"`
	// message explains the cause in one sentence.
	Message string `json:"message"`
	// time is when the cause was found.
	Time metav1.Time `json:"time"`
	// failedTime is when a later read failed.
	// +optional
	FailedTime *metav1.Time `json:"failedTime,omitempty"`
}

// FlavorInsight says whether a larger flavor helps.
type FlavorInsight struct {
	// to is the code of the requested flavor.
	To string `json:"to"`
	// findings say why the flavor may not help.
	// +listType=atomic
	// +optional
	Findings []Finding `json:"findings,omitempty"`
	// before is the average load in the hour before the change was requested.
	// +optional
	Before *Load `json:"before,omitempty"`
	// after is the average load in the first hour with the flavor.
	// +optional
	After *Load `json:"after,omitempty"`
	// time is when the load was last read.
	Time metav1.Time `json:"time"`
	// failedTime is when a later read failed.
	// +optional
	FailedTime *metav1.Time `json:"failedTime,omitempty"`
}

// Finding says why a larger flavor may not help against the alarm of a metric.
type Finding struct {
	// metric is cpu or memory.
	Metric Metric `json:"metric"`
	// reason is IoBound, LockBound or MemoryNotShort.
	Reason string `json:"reason"`
	// message explains the finding in one sentence.
	Message string `json:"message"`
}

// Load is the average load of an instance in an hour. A value that Cloud Eye does not have is missing.
type Load struct {
	// cpuPercent is the CPU usage in percent.
	// +optional
	CPUPercent string `json:"cpuPercent,omitempty"`
	// memoryPercent is the memory usage in percent.
	// +optional
	MemoryPercent string `json:"memoryPercent,omitempty"`
}

// CapForecast is when the largest volume that the policy allows would be read-only.
type CapForecast struct {
	// maxGB is the size in GB for which it was computed: the cap, or the volume if that is larger.
	MaxGB int32 `json:"maxGB"`
	// readOnlyTime is the forecast. Without it, the database will not be read-only in the time that can be foreseen, or
	// the time is not known. The message says which.
	// +optional
	ReadOnlyTime *metav1.Time `json:"readOnlyTime,omitempty"`
	// message explains the forecast in one sentence.
	Message string `json:"message"`
	// time is when it was computed.
	Time metav1.Time `json:"time"`
	// failedTime is when a later read failed.
	// +optional
	FailedTime *metav1.Time `json:"failedTime,omitempty"`
}
