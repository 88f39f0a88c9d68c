// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const autoscalingLimit = 5 * time.Second // for what only a note depends on

// planner asks the cluster and the cloud what a decision depends on, and changes neither.
type planner struct {
	kube    planKube
	api     *otc.Cloud
	cloud   *cloud.Cloud
	options Options
}

// planKube is what a plan needs of Kubernetes; *k8s.Cluster is one that asks the API server.
type planKube interface {
	LiveAutopilot(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error)
	LiveTargetsByInstance(ctx context.Context, id, namespace string) ([]*autopilot.Target, error)
	Writer(ctx context.Context, t *autopilot.Target, kind v1alpha1.ChangeKind) (string, error)
}

// situation collects what there is to decide on.
type situation struct{ autopilot.Situation }

func (s *situation) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// Plan says what would be decided now for a database if an alarm came. It connects as New does, to the one namespace, and
// writes nothing anywhere. Each call has its own deadline; how many there are, and how fast they may be made, depends on the
// cloud.
func Plan(ctx context.Context, config *rest.Config, o Options, namespace, name string) (*autopilot.Plan, error) {
	starting, started := context.WithTimeout(ctx, startLimit)
	defer started()
	o.Namespaces = []string{namespace} // one may be allowed to read only this one
	kube, err := ConnectKube(starting, config, o)
	if err != nil {
		return nil, err
	}
	// Before the cloud is asked for anything: a wrong name is the likeliest mistake.
	target, err := kube.LiveTarget(starting, namespace, name)
	if errors.Is(err, autopilot.ErrGone) {
		return nil, fmt.Errorf("there is no Rds %s/%s, and no RdsAutopilot with spec.instanceID", namespace, name)
	}
	if err != nil {
		return nil, err
	}
	api, err := ConnectCloud(starting, o, nil, false)
	if err != nil {
		return nil, err
	}
	s, err := planner{kube: kube, api: api, cloud: cloud.New(api, o.Now), options: o}.observe(ctx, target)
	if err != nil {
		return nil, err
	}
	return s.Plan(), nil
}

// observe reads what the controller's round reads, live. An error is something that must be known and could not be read.
func (p planner) observe(ctx context.Context, t *autopilot.Target) (*situation, error) {
	s := &situation{autopilot.Situation{Namespace: t.Namespace, Name: t.Name}}
	rap, err := p.policy(ctx, s, t)
	if err != nil {
		return nil, err
	}
	_, off := controller.OffReason(t, rap, rap.Status.Switch)
	if off = cmp.Or(off, p.options.Allowed.Refuses(rap.Spec, t)); off != "" {
		s.note("%s", off)
	}
	if t.InstanceID == "" {
		s.note("The operator has not entered an id in status.id of the Rds")
	}
	observer := controller.Observer{
		Cloud: p.cloud, Mode: p.options.Mode, Recheck: p.options.Recheck, Log: p.options.Log, Now: p.options.Now,
		Shared: func(ctx context.Context, t *autopilot.Target) (bool, error) { return p.shared(ctx, s, t) },
	}
	if s.Case, err = observer.Observe(ctx, t, rap, p.options.Now()); err != nil {
		return nil, err
	}
	s.Enabled = off == ""
	if s.Instance == nil {
		return s, nil
	}
	s.Status = autopilot.FollowUp(s.Case).Status
	if s.Catalogue, err = p.cloud.Catalogue(ctx, *s.Instance); err != nil {
		return nil, fmt.Errorf("read flavors: %w", err)
	}
	if s.Evidence, err = p.cloud.Evidence(ctx, *s.Instance, s.wanted(rap.Status)); err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	if s.Offered, s.OfferedKnown, err = p.cloud.ResizeList(ctx, *s.Instance); err != nil {
		return nil, fmt.Errorf("read the resize list: %w", err)
	}
	if !s.OfferedKnown {
		s.note("The cloud has no resize list of this instance: only its own family is considered")
	}
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		if !t.NoRds && s.Interfered(kind) {
			if s.Rival, err = p.kube.Writer(ctx, t, kind); err != nil {
				return nil, err
			}
		}
	}
	s.noteAutoscaling(ctx, p.api)
	return s, nil
}

// noteAutoscaling says whether the cloud grows the volume as well. Nothing is decided by it, so its failure is no error.
func (s *situation) noteAutoscaling(ctx context.Context, c *otc.Cloud) {
	ctx, cancel := context.WithTimeout(ctx, autoscalingLimit)
	defer cancel()
	policy, err := c.StoragePolicy(ctx, s.Instance.ID)
	switch {
	case errors.Is(err, otc.ErrNotFound): // the cloud has none
	case err != nil:
		s.note("Not known: whether the cloud's own storage autoscaling is on: %v", err)
	case policy.On:
		s.note("The cloud's own storage autoscaling is on: it acts at %d %% free, up to %d GB; the autopilot at %d %% used, up to %d GB. Whoever comes first acts; the autopilot goes on from a size that the cloud has grown",
			policy.TriggerPercent, policy.LimitGB, autopilot.Threshold(s.Instance.VolumeGB, int(s.Spec.Storage.ThresholdPercent)), s.Spec.Storage.MaxGB)
	}
}

// policy is the RdsAutopilot, or one with the defaults where there is none yet.
func (p planner) policy(ctx context.Context, s *situation, t *autopilot.Target) (*v1alpha1.RdsAutopilot, error) {
	rap, err := p.kube.LiveAutopilot(ctx, t.Namespace, t.Name)
	if errors.Is(err, autopilot.ErrGone) {
		s.note("There is no RdsAutopilot yet, and so no alarm: this is with the default policy. spec.autopilot: true of the Rds makes one")
		return &v1alpha1.RdsAutopilot{Spec: autopilot.DefaultSpec()}, nil
	}
	if err != nil {
		return nil, err
	}
	armed := meta.FindStatusCondition(rap.Status.Conditions, v1alpha1.ConditionArmed)
	switch {
	case armed == nil:
		s.note("Not armed yet: no alarm would reach the autopilot")
	case armed.Status != metav1.ConditionTrue:
		s.note("Not armed (%s): no alarm would reach the autopilot. %s", armed.Reason, armed.Message)
	}
	if w := rap.Status.Deferred; w != nil {
		s.note("A wish for a larger flavor (%v at %s %%, since %s) waits for the window", w.Metrics, w.ValuePercent, w.FirstTime.UTC().Format(time.RFC3339))
	}
	return rap, nil
}

// wanted are the measurements of all metrics, on the dimensions that the rules of this instance have.
func (s *situation) wanted(have v1alpha1.Status) []controller.EvidenceOf {
	var wanted []controller.EvidenceOf
	for _, m := range autopilot.MetricTable() {
		w := controller.EvidenceOf{Metric: m.Metric, PeriodSeconds: m.PeriodSeconds(s.Spec)}
		for _, r := range have.Alarms.Rules {
			if r.Metric == m.Metric && have.Instance != nil && have.Instance.ID == s.Instance.ID {
				w.Dimension = r.Dimension
			}
		}
		wanted = append(wanted, w)
	}
	return wanted
}

// shared reports whether another Rds has the same instance, as far as one may look.
func (p planner) shared(ctx context.Context, s *situation, t *autopilot.Target) (bool, error) {
	targets, err := p.kube.LiveTargetsByInstance(ctx, t.InstanceID, metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		s.note("Not considered: whether an Rds of another namespace has the same instance, for you may not list those")
		targets, err = p.kube.LiveTargetsByInstance(ctx, t.InstanceID, t.Namespace)
	}
	return p.options.Allowed.Shared(targets), err
}
