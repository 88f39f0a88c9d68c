// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// UsedSpace is a measurement of the used space of a volume.
type UsedSpace struct {
	// gb is the used space in GB, with one decimal.
	GB string `json:"gb"`
	// time is that of the datapoint in Cloud Eye.
	Time metav1.Time `json:"time"`
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
	// gb is the size of that part in GB, with one decimal, if it is known.
	// +optional
	GB string `json:"gb,omitempty"`
	// usedPercent is the share of that part in the used space, in percent. It is 0 for a cause that is not a size, such
	// as LongTransaction. It is always written, because kube-state-metrics shows no gauge without a value.
	// +optional
	UsedPercent int32 `json:"usedPercent"`
	// growthPercent is the share of that part in the growth since the last change of size, or of the last day, in
	// percent.
	// +optional
	GrowthPercent int32 `json:"growthPercent,omitempty"`
	// message explains the cause in one sentence.
	Message string `json:"message"`
	// time is when the cause was found.
	Time metav1.Time `json:"time"`
}

// CapForecast is when a volume of spec.storage.maxGB would be read-only.
type CapForecast struct {
	// maxGB is the cap in GB for which it was computed.
	MaxGB int32 `json:"maxGB"`
	// readOnlyTime is the forecast. Without it, the database will not be read-only in the time that can be foreseen, or
	// the time is not known. The message says which.
	// +optional
	ReadOnlyTime *metav1.Time `json:"readOnlyTime,omitempty"`
	// message explains the forecast in one sentence.
	Message string `json:"message"`
	// time is when it was computed.
	Time metav1.Time `json:"time"`
}
