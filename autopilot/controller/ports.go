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
	AllRds() []*otcv1.Rds
	Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool)
	Autopilots() []*v1alpha1.RdsAutopilot

	CreateAutopilot(ctx context.Context, rds *otcv1.Rds) error
	DeleteAutopilot(ctx context.Context, a *v1alpha1.RdsAutopilot) error
	SetFinalizer(ctx context.Context, a *v1alpha1.RdsAutopilot) (*v1alpha1.RdsAutopilot, error)
	RemoveFinalizer(ctx context.Context, a *v1alpha1.RdsAutopilot) error
	// WriteStatus stores the status, the intake excepted, on top of the version that was read.
	WriteStatus(ctx context.Context, read *v1alpha1.RdsAutopilot, next v1alpha1.Status) (*v1alpha1.RdsAutopilot, error)
	// PatchVolumeSize and PatchFlavorRef write one field of the Rds if it still is as it was read.
	PatchVolumeSize(ctx context.Context, rds *otcv1.Rds, toGB int32) error
	PatchFlavorRef(ctx context.Context, rds *otcv1.Rds, to string) error

	// Event tells people: on the Rds and on its autopilot, whichever is there.
	Event(rds *otcv1.Rds, a *v1alpha1.RdsAutopilot, e Event)
}

// Event is something a person should know.
type Event struct {
	Warning bool
	Reason  string
	Action  string
	Note    string
}

// Cloud is what a decision reads from the cloud.
type Cloud interface {
	// Instance returns nil where the cloud has no such instance.
	Instance(ctx context.Context, id string) (*autopilot.Instance, error)
	// AlarmStates returns the state of every alarm rule by its id.
	AlarmStates(ctx context.Context) (map[string]AlarmState, error)
	// Evidence returns the newest measurement of each rule's metric; those without data are missing.
	Evidence(ctx context.Context, inst autopilot.Instance, rules []EvidenceOf) (map[v1alpha1.Metric]autopilot.Evidence, error)
	// Catalogue returns the flavors of an instance's engine and, where the cloud has one, the list of codes it may
	// change to.
	Catalogue(ctx context.Context, inst autopilot.Instance) (Catalogue, error)
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
}

// Catalogue is what an instance can become.
type Catalogue struct {
	Flavors      []flavors.Flavor
	Offered      []string
	OfferedKnown bool
}

// Arming makes the alarms come, and stop. Errors wrap ErrQuota where the tenant has no room left.
type Arming interface {
	// Ensure brings topic, subscription and rules up to what is wanted, and calls record after every step that a later
	// one relies on.
	Ensure(ctx context.Context, w Arms, have v1alpha1.Alarms, record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, error)
	// Remove removes all of it and nothing else.
	Remove(ctx context.Context, a *v1alpha1.RdsAutopilot, have v1alpha1.Alarms) error
}

// Arms is what should exist in the cloud for one database.
type Arms struct {
	Autopilot *v1alpha1.RdsAutopilot // whose they are
	Instance  autopilot.Instance
	Rules     []autopilot.Rule
}

// ErrQuota is a tenant that has no room for another topic or rule.
var ErrQuota = errors.New("quota exceeded")
