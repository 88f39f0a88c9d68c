// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// TargetCache reads the databases from the cache, which may be behind the API server. Callers must not modify what it
// returns.
type TargetCache interface {
	// Target returns nil if there is no Rds with that name, and no RdsAutopilot with that name that sets
	// spec.instanceID.
	Target(namespace, name string) *autopilot.Target
	// TargetsByInstance returns every target that claims the instance.
	TargetsByInstance(id string) []*autopilot.Target
	EachTarget(f func(*autopilot.Target))
}

// AutopilotCache reads the RdsAutopilots from the cache, which may be behind the API server. Callers must not modify
// what it returns.
type AutopilotCache interface {
	Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool)
	EachAutopilot(f func(*v1alpha1.RdsAutopilot))
}

// LiveReader reads from the API server, not from the cache. A missing object is autopilot.ErrGone.
type LiveReader interface {
	LiveTarget(ctx context.Context, namespace, name string) (*autopilot.Target, error)
	LiveAutopilot(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error)
	// LiveAutopilots returns the RdsAutopilots of all watched namespaces.
	LiveAutopilots(ctx context.Context) ([]*v1alpha1.RdsAutopilot, error)
}

// AutopilotWriter creates and deletes RdsAutopilots and sets their finalizer. A write on top of an older version
// returns autopilot.ErrConflict. A missing object is autopilot.ErrGone.
type AutopilotWriter interface {
	CreateAutopilot(ctx context.Context, t *autopilot.Target) error
	DeleteAutopilot(ctx context.Context, a *v1alpha1.RdsAutopilot) error
	SetFinalizer(ctx context.Context, a *v1alpha1.RdsAutopilot) (*v1alpha1.RdsAutopilot, error)
	RemoveFinalizer(ctx context.Context, a *v1alpha1.RdsAutopilot) error
}

// StatusWriter writes the status of RdsAutopilots.
type StatusWriter interface {
	// WriteStatus stores the status, except the intake, and returns the object as stored. It returns
	// autopilot.ErrConflict if the object has changed since it was read. If the status is equal to the one that was
	// read, it sends nothing and returns read.
	WriteStatus(ctx context.Context, read *v1alpha1.RdsAutopilot, next v1alpha1.Status) (*v1alpha1.RdsAutopilot, error)
}

// RdsPatcher requests a change from the operator.
type RdsPatcher interface {
	// PatchRds writes the intent's size or flavor into the spec of the Rds. It does so only if the old value, the uid
	// and the instance id are as they were read. It returns the Rds as the API server stored it, or
	// autopilot.ErrConflict, autopilot.ErrGone or an *autopilot.RefusedError.
	PatchRds(ctx context.Context, read *autopilot.Target, i v1alpha1.Intent) (*autopilot.Target, error)
}

// CloudChanger requests changes from the cloud, for databases with spec.apply: Cloud.
type CloudChanger interface {
	// Change requests the absolute size or flavor of the intent, only if the instance is still as it was decided on;
	// otherwise it returns autopilot.ErrConflict. It returns the id of the started job, or an empty id if the
	// instance already has that size or flavor. An *autopilot.RefusedError is a refusal. After
	// autopilot.ErrNotRequested no job has started. After any other error that is unknown.
	Change(ctx context.Context, instanceID string, i v1alpha1.Intent) (jobID string, err error)
	// Job returns the state of a job. It may return JobRunning without a request to the cloud if many jobs are running.
	Job(ctx context.Context, id string) (autopilot.Job, error)
}

// FieldManagers reads the managed fields of an Rds.
type FieldManagers interface {
	// Writer returns the field manager that wrote the requested size or flavor. It returns an empty string if that is
	// unknown or if it is this service.
	Writer(ctx context.Context, t *autopilot.Target, kind v1alpha1.ChangeKind) (string, error)
}

// Recorder emits events.
type Recorder interface {
	// Event emits an event on the Rds and one on the RdsAutopilot. Either may be nil.
	Event(t *autopilot.Target, a *v1alpha1.RdsAutopilot, e autopilot.Event)
}

// InstanceReader reads instances and flavors from the cloud.
type InstanceReader interface {
	// Instance returns the instance as the cloud had it at notBefore or later, or nil if the cloud has no such
	// instance. A notBefore in the future, from the clock of another replica, counts as now.
	Instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error)
	// Catalogue returns the flavors of an instance's engine and version.
	Catalogue(ctx context.Context, inst autopilot.Instance) ([]flavors.Flavor, error)
	// ResizeList returns the codes of the flavors that this instance can change to. known is false if the cloud has
	// no such list.
	ResizeList(ctx context.Context, inst autopilot.Instance) (codes []string, known bool, err error)
}

// AlarmReader reads alarm states and measurements from Cloud Eye.
type AlarmReader interface {
	// ListMaxAge returns how old a list may be that a decision uses. It grows with the time that listing takes.
	ListMaxAge() time.Duration
	// AlarmStates returns the state of every alarm rule by its id, as it was at notBefore or later. Callers must not
	// modify the map.
	AlarmStates(ctx context.Context, notBefore time.Time) (map[string]AlarmState, error)
	EvidenceReader
}

// EvidenceReader reads measurements from Cloud Eye.
type EvidenceReader interface {
	// Evidence returns the newest measurement of a metric; the zero value if there is no data. Calls of about the same
	// time share requests.
	Evidence(ctx context.Context, inst autopilot.Instance, request EvidenceRequest) (autopilot.Evidence, error)
}

// SeriesReader reads measurements that explain a decision and that no decision has to wait for.
type SeriesReader interface {
	// Series returns the averages of up to ten of Cloud Eye's metrics since then, in one request. A metric without data
	// is missing in the result.
	Series(ctx context.Context, inst autopilot.Instance, request SeriesRequest) (autopilot.Series, error)
	// UsedSpace returns the averages of the used space in GB of autopilot.CapSpan, oldest first. Calls of about the same
	// time share requests.
	UsedSpace(ctx context.Context, inst autopilot.Instance, dimension string) ([]autopilot.Point, error)
}

// SeriesRequest names up to ten metrics of one instance.
type SeriesRequest struct {
	Metrics   []string      // Cloud Eye's names
	Dimension string        // name:value of the rule's dimension; empty means the dimension of the instance
	Period    time.Duration // of one average, one of Cloud Eye's; a second means raw data
	Since     time.Time
}

// AlarmState is the state of an alarm rule in Cloud Eye.
type AlarmState struct {
	State v1alpha1.State
	Since time.Time
}

// EvidenceRequest names one measurement.
type EvidenceRequest struct {
	Metric        v1alpha1.Metric
	Dimension     string // name:value of the rule's dimension; empty means the dimension of the instance
	PeriodSeconds int
	NotBefore     time.Time // reject cached values that were read before this time, because they do not contain the news
}

// Arming creates and removes the topic, the subscription and the alarm rules of a database. Errors are one line that
// contains the cloud's own text.
type Arming interface {
	// Ensure makes the cloud's objects equal to the desired ones. It calls record after every step that a later step
	// relies on. It calls no API if the lists show that nothing differs. repaired has one sentence for each thing
	// that someone else had changed. observed is what exists afterwards, as far as known, also if there is an error.
	// The error wraps ErrQuota if the tenant's quota is full, ErrConfirmationLimit if only the subscription has to
	// wait, and ErrSubscriptionRefused if SMN refuses it and the rest of the cloud answers.
	Ensure(ctx context.Context, desired DesiredAlarms, last v1alpha1.Alarms, record func(v1alpha1.Alarms) error,
	) (observed v1alpha1.Alarms, repaired []string, err error)
	// Remove removes all objects of this database, and nothing else.
	Remove(ctx context.Context, a *v1alpha1.RdsAutopilot, last v1alpha1.Alarms) error
}

// DimensionFinder finds out where Cloud Eye has the data of an instance.
type DimensionFinder interface {
	// Dimension returns the dimension, as name:value, that has data of the instance. primarySince is when its primary
	// node was first seen. Older measurements may be those of another primary.
	Dimension(ctx context.Context, inst autopilot.Instance, primarySince time.Time) (string, error)
}

// OrphanRemover removes alarm objects whose RdsAutopilot is gone.
type OrphanRemover interface {
	// Orphans removes the objects that bear this cluster's id and belong to none of the known RdsAutopilots. Before
	// it removes anything, it calls live and keeps what belongs to one of those. It returns the names of the removed
	// objects, and how many objects have our form of name but belong to another cluster or an unknown owner.
	Orphans(ctx context.Context, notBefore time.Time, known []*v1alpha1.RdsAutopilot,
		live func(context.Context) ([]*v1alpha1.RdsAutopilot, error)) (removed []string, foreign int, err error)
}

// DesiredAlarms are the alarm objects that should exist in the cloud for one database.
type DesiredAlarms struct {
	Autopilot *v1alpha1.RdsAutopilot
	Instance  autopilot.Instance
	Dimension string // name:value; empty means the dimension of the instance
	Rules     []v1alpha1.DesiredRule
	Renewed   bool      // the policy has changed, so a difference that follows from it is not reported as a repair
	NotBefore time.Time // ignore lists that were read before this time
}

// Errors of Arming.Ensure.
var (
	// ErrQuota means that the tenant's quota allows no further topic or rule.
	ErrQuota = errors.New("quota exceeded")
	// ErrConfirmationLimit means that the limit of confirmations in ten minutes is reached, so the subscription has
	// to wait.
	ErrConfirmationLimit = errors.New("confirmations are limited")
	// ErrSubscriptionRefused means that SMN refuses the topic or the subscription of the public URL.
	ErrSubscriptionRefused = errors.New("subscription refused")
)
