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

// Cache is what Kubernetes has, as last seen: it may be behind, but not behind what the Store or the receiver of this process has
// written or read anew. What it returns must not be altered.
type Cache interface {
	// Target returns nil where there is no such Rds, and no autopilot that names its instance itself.
	Target(namespace, name string) *autopilot.Target
	TargetsByInstance(id string) []*autopilot.Target
	EachTarget(f func(*autopilot.Target))
	Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool)
	// EachAutopilot may leave out changes, former volumes and decisions.
	EachAutopilot(f func(*v1alpha1.RdsAutopilot))
}

// Store is where RdsAutopilots are kept. It asks the API server. Writes name the version on top of which they go,
// and return autopilot.ErrConflict or autopilot.ErrGone.
type Store interface {
	LiveAutopilot(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error)
	// LiveAutopilots returns those of all namespaces that are watched.
	LiveAutopilots(ctx context.Context) ([]*v1alpha1.RdsAutopilot, error)
	CreateAutopilot(ctx context.Context, t *autopilot.Target) error
	DeleteAutopilot(ctx context.Context, a *v1alpha1.RdsAutopilot) error
	SetFinalizer(ctx context.Context, a *v1alpha1.RdsAutopilot) (*v1alpha1.RdsAutopilot, error)
	RemoveFinalizer(ctx context.Context, a *v1alpha1.RdsAutopilot) error
	// WriteStatus stores the status, the intake excepted, on top of the version that was read. Where nothing differs, it writes
	// nothing, and the version stays.
	WriteStatus(ctx context.Context, read *v1alpha1.RdsAutopilot, next v1alpha1.Status) (*v1alpha1.RdsAutopilot, error)
}

// Applier asks for what is intended. It does so only if what the intent changes, the uid and the instance id still are as they
// were read. It returns the target as it is afterwards, or autopilot.ErrConflict, autopilot.ErrGone or an
// autopilot.RefusedError.
type Applier interface {
	Apply(ctx context.Context, read *autopilot.Target, i v1alpha1.Intent) (*autopilot.Target, error)
}

// Changer makes changes in the cloud itself, where spec.apply is Cloud.
type Changer interface {
	// Change asks the cloud for what is intended, which is absolute. It does so only if the instance still is as it was decided
	// on, and returns autopilot.ErrConflict else. It returns the id of the job that has begun; none where the instance has it
	// already. An autopilot.RefusedError is the cloud's no; after any other error it is not known whether a job has begun.
	Change(ctx context.Context, instanceID string, i v1alpha1.Intent) (jobID string, err error)
	Job(ctx context.Context, id string) (autopilot.Job, error)
}

// Writers knows which other field manager wrote the size or flavor that is asked for; empty where nobody knows.
type Writers interface {
	Writer(ctx context.Context, t *autopilot.Target, kind v1alpha1.ChangeKind) (string, error)
}

// Recorder emits events for people: on the Rds and on its autopilot, whichever is not nil.
type Recorder interface {
	Event(t *autopilot.Target, a *v1alpha1.RdsAutopilot, e autopilot.Event)
}

// Cloud is what a decision reads from the cloud. A notBefore that is ahead, by the clock of another replica, means now.
type Cloud interface {
	// ListedFor is how long a listing serves decisions: the longer, the more calls it costs.
	ListedFor() time.Duration
	// Instance returns nil where the cloud has no such instance. It is as the cloud had it at that time or later, for
	// listings are shared.
	Instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error)
	// AlarmStates returns the state of every alarm rule by its id, at that time or later.
	AlarmStates(ctx context.Context, notBefore time.Time) (map[string]AlarmState, error)
	// Evidence returns the newest measurement of each rule's metric; those without data are missing.
	Evidence(ctx context.Context, inst autopilot.Instance, rules []EvidenceOf) (map[v1alpha1.Metric]autopilot.Evidence, error)
	// Catalogue returns the flavors of an instance's engine and version.
	Catalogue(ctx context.Context, inst autopilot.Instance) ([]flavors.Flavor, error)
	// ResizeList returns the codes that this very instance may change to; known is false where the cloud has no such list.
	ResizeList(ctx context.Context, inst autopilot.Instance) (codes []string, known bool, err error)
}

// AlarmState is the state of an alarm rule in Cloud Eye.
type AlarmState struct {
	State v1alpha1.State
	Since time.Time
}

// EvidenceOf says which measurement is wanted.
type EvidenceOf struct {
	Metric        v1alpha1.Metric
	Dimension     string // name:value, as the rule has it; empty means the instance's own
	PeriodSeconds int
	NotBefore     time.Time // when it must have been read at the earliest: what was read before the news does not know of it
	WithPercent   bool      // of storage: also what Cloud Eye says in percent
}

// Arming makes the alarms come, and stop. Errors are one line in the cloud's words, and wrap ErrQuota where the tenant has no
// room left.
type Arming interface {
	// Ensure brings topic, rules and subscription up to what is wanted, and calls record after every step that a later
	// one relies on. Where a listing shows that all is well, it asks the cloud nothing. It says in sentences what it
	// mended that somebody else had broken. now is what is there as far as is known, also where there is an error: the
	// rules wait for neither topic nor subscription. The error wraps ErrLater where nothing else failed.
	Ensure(ctx context.Context, w Arms, have v1alpha1.Alarms, record func(v1alpha1.Alarms) error) (now v1alpha1.Alarms, mended []string, err error)
	// Dimension looks for the dimension, as name:value, that delivers data of an instance.
	Dimension(ctx context.Context, inst autopilot.Instance) (string, error)
	// Orphans removes what is ours, by name and cluster, and belongs to no living autopilot: none that is known, and none
	// of those it asks for before it removes anything. It returns what it removed, and how many things have our form of
	// name but are another cluster's, or of an owner that we do not know.
	Orphans(ctx context.Context, notBefore time.Time, known []*v1alpha1.RdsAutopilot, ask func(context.Context) ([]*v1alpha1.RdsAutopilot, error)) (removed []string, foreign int, err error)
	// Remove removes all of it and nothing else.
	Remove(ctx context.Context, a *v1alpha1.RdsAutopilot, have v1alpha1.Alarms) error
}

// Arms is what should exist in the cloud for one database.
type Arms struct {
	Autopilot *v1alpha1.RdsAutopilot // whose they are
	Instance  autopilot.Instance
	Dimension string // name:value; empty means the instance's own
	Rules     []v1alpha1.DesiredRule
	Renewed   bool      // the policy was changed: what differs by it nobody has broken
	NotBefore time.Time // how new a listing must be to be believed
}

// Errors of arming.
var (
	// ErrQuota is a tenant that has no room for another topic or rule.
	ErrQuota = errors.New("quota exceeded")
	// ErrLater is a confirmation that may not be asked for now: SMN sends a limited number in ten minutes.
	ErrLater = errors.New("confirmations are limited")
)
