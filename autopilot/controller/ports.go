package controller

import (
	"context"
	"errors"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// Cluster is what the loop reads and writes in Kubernetes. Reads may be behind; writes say on top of what they go.
// Writes return autopilot.ErrConflict or autopilot.ErrGone.
type Cluster interface {
	Rds(namespace, name string) (*otcv1.Rds, bool)
	RdsByInstance(id string) []*otcv1.Rds
	Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool)
	// EachRds and EachAutopilot show every object as last seen. They are not copies: f must not alter them.
	EachRds(f func(*otcv1.Rds))
	EachAutopilot(f func(*v1alpha1.RdsAutopilot))
	// LiveAutopilot asks the API server.
	LiveAutopilot(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error)
	// LiveAutopilots asks the API server for all of them, in every namespace.
	LiveAutopilots(ctx context.Context) ([]*v1alpha1.RdsAutopilot, error)

	CreateAutopilot(ctx context.Context, rds *otcv1.Rds) error
	DeleteAutopilot(ctx context.Context, a *v1alpha1.RdsAutopilot) error
	SetFinalizer(ctx context.Context, a *v1alpha1.RdsAutopilot) (*v1alpha1.RdsAutopilot, error)
	RemoveFinalizer(ctx context.Context, a *v1alpha1.RdsAutopilot) error
	// WriteStatus stores the status, the intake excepted, on top of the version that was read.
	WriteStatus(ctx context.Context, read *v1alpha1.RdsAutopilot, next v1alpha1.Status) (*v1alpha1.RdsAutopilot, error)
	// PatchRds writes the one field of the Rds that an intent is about, if that field, the uid and the instance id still are
	// as they were read. It returns the Rds as the API server answers with it, or an autopilot.RefusedError.
	PatchRds(ctx context.Context, rds *otcv1.Rds, i v1alpha1.Intent) (*otcv1.Rds, error)

	// Writer says which other field manager wrote the size or flavor that the Rds asks for; empty where nobody knows.
	Writer(ctx context.Context, rds *otcv1.Rds, kind v1alpha1.ChangeKind) (string, error)

	// Event tells people: on the Rds and on its autopilot, whichever is there.
	Event(rds *otcv1.Rds, a *v1alpha1.RdsAutopilot, e Event)
}

// Event is something a person should know.
type Event struct {
	Warning bool
	Change  bool // it tells of a change: another one with the same reason is another event
	Reason  string
	Action  string
	Note    string
}

// Cloud is what a decision reads from the cloud.
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
	// name but are another cluster's, or nobody's that we can tell.
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
