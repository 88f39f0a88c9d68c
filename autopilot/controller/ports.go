// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Kubernetes is the API server and the caches that watch it. A cache may be behind the API server. Callers must not
// modify what a cache returns. A missing object is autopilot.ErrGone. A write on top of an older version returns
// autopilot.ErrConflict.
type Kubernetes interface {
	// Target reads the cache. It returns nil if there is no Rds with that name, and no RdsAutopilot with that name that
	// sets spec.instanceID.
	Target(namespace, name string) *autopilot.Target
	EachTarget(f func(*autopilot.Target))
	// Autopilot reads the cache. It returns false if there is no such RdsAutopilot.
	Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool)
	EachAutopilot(f func(*v1alpha1.RdsAutopilot))

	// LiveTarget and LiveAutopilot read the API server.
	LiveTarget(ctx context.Context, namespace, name string) (*autopilot.Target, error)
	LiveAutopilot(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error)
	// IsWatched reports whether this installation watches a namespace.
	IsWatched(namespace string) bool
	// Writer returns the field manager that wrote the requested size or flavor. It returns an empty string if that is
	// unknown or if it is this service.
	Writer(ctx context.Context, t *autopilot.Target, kind v1alpha1.ChangeKind) (string, error)

	CreateAutopilot(ctx context.Context, t *autopilot.Target) error
	// WriteStatus stores the status, except the intake, and returns the object as stored. If the status is equal to the
	// one that was read, it sends nothing and returns read.
	WriteStatus(ctx context.Context, read *v1alpha1.RdsAutopilot, next v1alpha1.Status) (*v1alpha1.RdsAutopilot, error)
	// PatchRds writes the intent's size or flavor into the spec of the Rds, which requests the change from the operator.
	// It does so only if the old value, the uid and the instance id are as they were read; otherwise it returns
	// autopilot.ErrConflict. It returns the Rds as stored. An *autopilot.RefusedError is a refusal of the API server.
	PatchRds(ctx context.Context, read *autopilot.Target, i v1alpha1.Change) (*autopilot.Target, error)
	// Event emits an event on the Rds and one on the RdsAutopilot. Either may be nil.
	Event(t *autopilot.Target, a *v1alpha1.RdsAutopilot, e autopilot.Event)

	// Topic reads the topic of the installation from the cache, and LiveTopic from the API server. It is empty if none is
	// recorded.
	Topic() v1alpha1.Topic
	LiveTopic(ctx context.Context) (v1alpha1.Topic, error)
	// WriteTopic stores the topic of the installation, or that there is none.
	WriteTopic(ctx context.Context, t v1alpha1.Topic) error
}

// Cloud is Open Telekom Cloud: what it has, what Cloud Eye measures, and the alarm objects of the databases.
type Cloud interface {
	InstanceReader
	EvidenceReader

	// ListMaxAge returns how old a list may be that a decision uses. It grows with the time that listing takes.
	ListMaxAge() time.Duration
	// AlarmStates returns the state of every alarm rule by its id, as it was at notBefore or later. Callers must not
	// modify the map.
	AlarmStates(ctx context.Context, notBefore time.Time) (map[string]autopilot.AlarmState, error)
	// WAL returns what Cloud Eye measures of the WAL of a PostgreSQL instance. dimension is that of the rule, as
	// name:value; empty means the dimension of the instance. No decision waits for it.
	WAL(ctx context.Context, inst autopilot.Instance, dimension string) (autopilot.WAL, error)
	// Dimension returns the dimension, as name:value, that has data of the instance.
	Dimension(ctx context.Context, inst autopilot.Instance) (string, error)

	// Change requests the absolute size or flavor of the change, only if the instance is still as it was decided on, and
	// returns the id of the started job. It calls confirm last, right before it sends the request. An
	// *autopilot.RefusedError is a refusal. After autopilot.ErrNotRequested nothing was sent. After any other error that is
	// unknown.
	Change(ctx context.Context, instanceID string, ch v1alpha1.Change, confirm func(context.Context) error) (jobID string, err error)
	// Job returns the state of a job. If many jobs are running, it may return the last known state, or JobRunning.
	Job(ctx context.Context, id string) (autopilot.Job, error)

	ClaimReader

	// ReconcileTopic makes the topic of the installation, the subscription of our URL and the ConfigMap, which read and
	// write access, as wanted. It returns what exists, also with an error.
	ReconcileTopic(ctx context.Context, wanted bool, read func(context.Context) (v1alpha1.Topic, error),
		write func(context.Context, v1alpha1.Topic) error) (v1alpha1.Topic, error)
	// Ensure makes the alarm rules of a database equal to the desired ones. It calls record after each new rule. observed
	// is what exists afterwards, as far as known, also with an error. repaired are the metrics whose recorded rule it
	// created again or wrote with effect. The error is one line with the cloud's own text. It wraps v1alpha1.ErrQuota,
	// ErrRuleRefused or ErrNameTooLong if that is the reason.
	Ensure(ctx context.Context, desired v1alpha1.DesiredAlarms, record func(v1alpha1.Alarms) error,
	) (observed v1alpha1.Alarms, repaired []v1alpha1.Metric, err error)
	// Remove deletes the alarm rules that bear the mark of an object, as the list shows them at notBefore or later, and
	// returns how many they were. It calls confirm before it deletes the first one, and stops at its error.
	Remove(ctx context.Context, namespace, name string, notBefore time.Time, confirm func(context.Context) error) (int, error)
	// Marked calls f for each rule of an object of this cluster in the cloud, as of notBefore or later.
	Marked(ctx context.Context, notBefore time.Time, f func(namespace, name string)) error
}

// ClaimReader is the part of Cloud that reads who manages an instance. The dry run of plan has it as well.
type ClaimReader interface {
	// Claim reports who manages an instance, by the rules that watch one of the ids, as of notBefore or later.
	Claim(ctx context.Context, namespace, name string, ids []string, notBefore time.Time) (v1alpha1.Claim, error)
}

// InstanceReader is the part of Cloud that reads instances and flavors. The dry run of plan has it as well.
type InstanceReader interface {
	// Instance returns the instance as the cloud had it at notBefore or later, or nil if the cloud has no such
	// instance. If the id is a node's, it returns the node's instance, which has another id. A notBefore in the future,
	// from the clock of another replica, counts as now.
	Instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error)
	// Catalogue returns the flavors of an instance's engine and version.
	Catalogue(ctx context.Context, inst autopilot.Instance) ([]flavors.Flavor, error)
	// ResizeList returns the codes of the flavors that this instance can change to. An *autopilot.RefusedError means
	// that the cloud has no such list, or none for this instance.
	ResizeList(ctx context.Context, inst autopilot.Instance) (codes []string, err error)
}

// EvidenceReader is the part of Cloud that reads the measurements of a decision. The dry run of plan has it as well.
type EvidenceReader interface {
	// Points returns the newest datapoints of metrics. Calls of about the same time share requests. An error wraps
	// autopilot.ErrOutage if no other metric can be read now.
	Points(ctx context.Context, inst autopilot.Instance, request autopilot.EvidenceRequest) autopilot.Readings
}
