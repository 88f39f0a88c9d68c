package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// cluster is Kubernetes as the receiver and the controller want it: their interfaces, the domain's errors.
type cluster struct{ *k8s.Cluster }

// domain translates errors of the adapter into the domain's.
func domain(err error) error {
	switch {
	case errors.Is(err, k8s.ErrConflict), errors.Is(err, k8s.ErrChanged):
		return fmt.Errorf("%w: %w", autopilot.ErrConflict, err)
	case errors.Is(err, k8s.ErrRefused):
		return fmt.Errorf("%w: %w", &autopilot.RefusedError{Words: words(err)}, err)
	case errors.Is(err, k8s.ErrGone):
		return fmt.Errorf("%w: %w", autopilot.ErrGone, err)
	}
	return err
}

// words are the API server's own.
func words(err error) string {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status.ErrStatus.Message
	}
	return err.Error()
}

func (c cluster) ByTopic(urn string) []*v1alpha1.RdsAutopilot { return c.AutopilotsByTopic(urn) }

func (c cluster) ByTopicLive(ctx context.Context, urn string) ([]*v1alpha1.RdsAutopilot, error) {
	found, err := c.AutopilotsByTopicLive(ctx, urn)
	return found, domain(err)
}

func (c cluster) LiveAutopilots(ctx context.Context) ([]*v1alpha1.RdsAutopilot, error) {
	all, err := c.Cluster.LiveAutopilots(ctx)
	return all, domain(err)
}

func (c cluster) Live(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error) {
	a, err := c.GetAutopilot(ctx, namespace, name)
	return a, domain(err)
}

func (c cluster) WriteIntake(ctx context.Context, read *v1alpha1.RdsAutopilot, in v1alpha1.Intake) error {
	next := read.DeepCopy()
	next.Status.Intake = in
	_, err := c.PatchIntake(ctx, read, next)
	return domain(err)
}

func (c cluster) WriteStatus(ctx context.Context, read *v1alpha1.RdsAutopilot, status v1alpha1.Status) (*v1alpha1.RdsAutopilot, error) {
	next := read.DeepCopy()
	next.Status = status
	stored, err := c.PatchStatus(ctx, read, next)
	return stored, domain(err)
}

func (c cluster) CreateAutopilot(ctx context.Context, rds *otcv1.Rds) error {
	_, err := c.Cluster.CreateAutopilot(ctx, rds)
	return domain(err)
}

func (c cluster) DeleteAutopilot(ctx context.Context, a *v1alpha1.RdsAutopilot) error {
	return domain(c.Cluster.DeleteAutopilot(ctx, a.Namespace, a.Name, a.UID))
}

func (c cluster) SetFinalizer(ctx context.Context, a *v1alpha1.RdsAutopilot) (*v1alpha1.RdsAutopilot, error) {
	stored, err := c.Cluster.SetFinalizer(ctx, a)
	return stored, domain(err)
}

func (c cluster) RemoveFinalizer(ctx context.Context, a *v1alpha1.RdsAutopilot) error {
	return domain(c.Cluster.RemoveFinalizer(ctx, a))
}

func (c cluster) PatchRds(ctx context.Context, rds *otcv1.Rds, i v1alpha1.Intent) (*otcv1.Rds, error) {
	if i.Kind == v1alpha1.KindFlavor {
		stored, err := c.PatchFlavorRef(ctx, rds, i.To)
		return stored, domain(err)
	}
	to, err := strconv.ParseInt(i.To, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read the size of an intent: %w", err)
	}
	stored, err := c.PatchVolumeSize(ctx, rds, int32(to))
	return stored, domain(err)
}

func (c cluster) Writer(ctx context.Context, rds *otcv1.Rds, kind v1alpha1.ChangeKind) (string, error) {
	field := "volumesize"
	if kind == v1alpha1.KindFlavor {
		field = "flavorref"
	}
	who, err := c.FieldWriter(ctx, rds, field)
	return who, domain(err)
}

func (c cluster) LiveAutopilot(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error) {
	return c.Live(ctx, namespace, name)
}

func (c cluster) Event(rds *otcv1.Rds, a *v1alpha1.RdsAutopilot, e controller.Event) {
	told := k8s.Event{Type: corev1.EventTypeNormal, Reason: e.Reason, Action: e.Action, Note: e.Note, Single: e.Change}
	if e.Warning {
		told.Type = corev1.EventTypeWarning
	}
	if rds != nil {
		c.RdsEvent(rds, told)
	}
	if a != nil {
		c.AutopilotEvent(a, told)
	}
}

// warn is the receiver's word about a message: on the autopilot, and on the Rds where people look.
func (c cluster) warn(a *v1alpha1.RdsAutopilot, reason, note string) {
	rds, _ := c.Rds(a.Namespace, a.Name)
	c.Event(rds, a, controller.Event{Warning: true, Reason: reason, Action: "Receive", Note: note})
}
