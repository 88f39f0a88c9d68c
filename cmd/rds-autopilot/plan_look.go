package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

const (
	autoscalingLimit = 5 * time.Second  // for what only a note depends on
	pageLimit        = 15 * time.Second // for one page of Rds
)

// planner asks the cluster and the cloud what a decision depends on, and changes neither.
type planner struct {
	kube   *k8s.Cluster
	config *rest.Config
	api    *otc.Cloud
	cloud  *cloud.Cloud
	mode   v1alpha1.Mode // the upper bound
	now    func() time.Time
}

// situation is what there is to decide on, without an alarm.
type situation struct {
	autopilot.Case
	namespace, name string
	evidence        map[v1alpha1.Metric]autopilot.Evidence
	notes           []string
}

func (s *situation) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// look reads what the controller's round reads, live. An error is something that must be known and could not be read.
func (p planner) look(ctx context.Context, t *autopilot.Target) (*situation, error) {
	s := &situation{namespace: t.Namespace, name: t.Name}
	rap, err := p.policy(ctx, s, t)
	if err != nil {
		return nil, err
	}
	_, off := controller.Off(t, rap, rap.Status.Switch)
	if off != "" {
		s.note("%s", off)
	}
	if t.InstanceID == "" {
		s.note("The operator has not entered an id in status.id of the Rds")
	}
	observer := controller.Observer{
		Cloud: p.cloud, Mode: p.mode, Recheck: app.Defaults().Recheck, Log: zap.NewNop(), Now: p.now,
		Shared: func(ctx context.Context, t *autopilot.Target) (bool, error) { return p.shared(ctx, s, t) },
	}
	if s.Case, err = observer.Observe(ctx, t, rap, p.now()); err != nil {
		return nil, err
	}
	s.Enabled = off == ""
	if s.Instance == nil {
		return s, nil
	}
	s.Status = autopilot.Follow(s.Case).Status
	if s.Catalogue, err = p.cloud.Catalogue(ctx, *s.Instance); err != nil {
		return nil, fmt.Errorf("read flavors: %w", err)
	}
	if s.evidence, err = p.cloud.Evidence(ctx, *s.Instance, s.wanted(rap.Status)); err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	if s.Offered, s.OfferedKnown, err = p.cloud.ResizeList(ctx, *s.Instance); err != nil {
		return nil, fmt.Errorf("read the resize list: %w", err)
	}
	if !s.OfferedKnown {
		s.note("The cloud has no resize list of this instance: only its own family is considered")
	}
	for _, kind := range []v1alpha1.ChangeKind{v1alpha1.KindVolume, v1alpha1.KindFlavor} {
		if s.Interfered(kind) {
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
		return &v1alpha1.RdsAutopilot{Spec: defaultPolicy()}, nil
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
	others, err := p.others(ctx, metav1.NamespaceAll, t)
	if apierrors.IsForbidden(err) {
		s.note("Not considered: whether an Rds of another namespace has the same instance, for you may not list those")
		others, err = p.others(ctx, t.Namespace, t)
	}
	if err != nil {
		return false, fmt.Errorf("list Rds: %w", err)
	}
	return others, nil
}

// others decodes into the type that has none of an Rds's passwords.
func (p planner) others(ctx context.Context, namespace string, t *autopilot.Target) (bool, error) {
	scheme := runtime.NewScheme()
	if err := otcv1.AddToScheme(scheme); err != nil {
		return false, err
	}
	cfg, gv := rest.CopyConfig(p.config), otcv1.GroupVersion()
	cfg.APIPath, cfg.GroupVersion, cfg.UserAgent = "/apis", &gv, "rds-autopilot/"+version
	cfg.ContentType, cfg.NegotiatedSerializer = runtime.ContentTypeJSON, serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(cfg)
	if err != nil {
		return false, err
	}
	for opts := (metav1.ListOptions{Limit: 500}); ; {
		var page otcv1.RdsList
		one, cancel := context.WithTimeout(ctx, pageLimit)
		err := client.Get().NamespaceIfScoped(namespace, namespace != metav1.NamespaceAll).Resource(otcv1.Resource).
			VersionedParams(&opts, runtime.NewParameterCodec(scheme)).Do(one).Into(&page)
		cancel()
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(page.Items, func(o otcv1.Rds) bool { return o.UID != t.UID && o.Status.ID == t.InstanceID }) {
			return true, nil
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			return false, nil
		}
	}
}

// defaultPolicy is what the CRD's schema makes of an empty spec.
func defaultPolicy() v1alpha1.Spec {
	on := func() v1alpha1.Trigger { return v1alpha1.Trigger{Enabled: new(true), ThresholdPercent: 90} }
	return v1alpha1.Spec{
		Mode: v1alpha1.ModeAuto,
		Storage: v1alpha1.Storage{
			StepGB: 10, MaxGB: 4000, ThresholdPercent: 90,
			Alarm: v1alpha1.StorageAlarm{PeriodSeconds: 1, Count: 5, RepeatSeconds: new(int32(900))},
		},
		Flavor: v1alpha1.Flavor{
			CPU: on(), Memory: on(), CooldownSeconds: new(int32(3600)), MaxChangesPerDay: 2,
			Alarm: v1alpha1.FlavorAlarm{PeriodSeconds: 300, Count: 3, RepeatSeconds: new(int32(1800))},
		},
	}
}
