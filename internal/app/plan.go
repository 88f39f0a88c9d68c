// SPDX-License-Identifier: Apache-2.0

package app

import (
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
	"github.com/mcsps/rds-autopilot/autopilot/insight"
	"github.com/mcsps/rds-autopilot/autopilot/plan"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// autoscalingLimit is short, because only a note of the plan depends on the answer.
const autoscalingLimit = 5 * time.Second

// planner reads from the cluster and the cloud everything that a decision depends on. It changes neither.
type planner struct {
	kube    planKube
	api     *otc.Cloud
	cloud   *cloud.Cloud
	options Options
}

// planKube is the part of Kubernetes that a plan reads. *k8s.Cluster implements it with calls to the API server.
type planKube interface {
	LiveAutopilot(ctx context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error)
	LiveTargetsByInstance(ctx context.Context, id, namespace string) ([]*autopilot.Target, error)
	Writer(ctx context.Context, t *autopilot.Target, kind v1alpha1.ChangeKind) (string, error)
}

// situation collects the facts of a decision and the notes for the reader.
type situation struct{ plan.Situation }

func (s *situation) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// Plan returns what the autopilot would decide now for a database if an alarm came. It connects as New does, but only
// to that namespace, and writes nothing. Each call has its own deadline. The total time depends on the number of calls
// and on their rate.
func Plan(ctx context.Context, config *rest.Config, o Options, namespace, name string) (*plan.Plan, error) {
	starting, started := context.WithTimeout(ctx, startLimit)
	defer started()
	o.Namespaces = []string{namespace} // the caller may have the right to read only this one
	kube, err := ConnectKube(starting, config, o)
	if err != nil {
		return nil, err
	}
	// Read the Rds before connecting to the cloud, because a wrong name is the most likely mistake.
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
	return planner{kube: kube, api: api, cloud: cloud.New(api, o.Now), options: o}.plan(ctx, target)
}

func (p planner) plan(ctx context.Context, t *autopilot.Target) (*plan.Plan, error) {
	s, err := p.observe(ctx, t)
	if err != nil {
		return nil, err
	}
	return s.Plan(ctx), nil
}

// observe reads live what a round of the controller reads before its first guard, and what a plan shows whatever the
// guards say: the measurements and the larger flavors. It returns an error if one of these is missing.
func (p planner) observe(ctx context.Context, t *autopilot.Target) (*situation, error) {
	s := &situation{plan.Situation{
		Namespace: t.Namespace, Name: t.Name,
		Read: p.facts(t).Read,
	}}
	rap, err := p.policy(ctx, s, t)
	if err != nil {
		return nil, err
	}
	if t.InstanceID == "" {
		s.note("The operator has not set status.id of the Rds yet")
	}
	observer := controller.Observer{
		Instances: p.cloud, Mode: p.options.Mode, Recheck: p.options.Recheck, Log: p.options.Log, Now: p.options.Now,
		Allowed: p.options.Allowed,
		Claims: func(ctx context.Context, id string) ([]*autopilot.Target, error) {
			return p.claims(ctx, s, id, t.Namespace)
		},
	}
	if s.Case, err = observer.Observe(ctx, t, rap, p.options.Now()); err != nil {
		return nil, err
	}
	s.Off = autopilot.OffFor(t, rap, rap.Status.Switch, p.options.Mode, p.options.Allowed)
	if s.Off.Message != "" {
		s.note("%s", s.Off.Message)
	}
	if s.Instance == nil {
		return s, nil
	}
	s.Status = record.FollowUp(s.Case).Status
	for _, m := range autopilot.Metrics() { // the plan supposes that they are in force
		s.Alarms = append(s.Alarms, autopilot.Alarm{Metric: m, State: v1alpha1.StateAlarm, StateTime: s.Now})
	}
	s.Read(ctx, &s.Case, []autopilot.Fact{
		autopilot.FactUsedSpace, autopilot.FactUsage, autopilot.FactCatalogue, autopilot.FactResizeList,
	})
	if err := s.ReadError(); err != nil {
		return nil, err
	}
	record.SetSizes(&s.Case, s.Instance.WithSizes(s.Catalogue))
	s.Evidence = make(map[v1alpha1.Metric]autopilot.Evidence)
	for _, a := range s.Alarms {
		s.Evidence[a.Metric] = a.Evidence
	}
	if !s.IsOffered {
		s.note("The cloud returns no resize list for this instance, so the plan considers only flavors of the same family: %s",
			s.NotOffered)
	}
	s.explain(ctx, p.cloud)
	s.noteAutoscaling(ctx, p.api)
	return s, nil
}

// explain reads what fills the volume, when its cap is full, and what speaks against a larger flavor. No decision
// depends on it, so a failed read is only noted.
func (s *situation) explain(ctx context.Context, reader controller.SeriesReader) {
	h := controller.ReadHistory(ctx, reader, s.Case, insight.Due{Cause: true, Load: true, Cap: true})
	if s.Insight = *insight.Update(s.Case, insight.Due{Cause: h.CauseErr == nil, Cap: h.UsedErr == nil}, h); h.LoadErr == nil {
		s.Insight.Flavor = &v1alpha1.FlavorInsight{
			Findings: insight.Findings(*s.Instance, h.Load, autopilot.Metrics(), s.Now),
		}
	}
	for _, read := range []struct {
		what string
		err  error
	}{
		{"what fills the volume", h.CauseErr}, {"when the volume reaches its cap", h.UsedErr},
		{"whether a larger flavor helps", h.LoadErr},
	} {
		if read.err != nil {
			s.note("Not known: %s (%v)", read.what, read.err)
		}
	}
}

// facts returns the reader of the facts. The state of the alarms is supposed, and so is a place for another flavor.
func (p planner) facts(t *autopilot.Target) controller.FactReader {
	return controller.FactReader{
		Instances: p.cloud, Evidence: p.cloud,
		Writer: func(ctx context.Context, kind v1alpha1.ChangeKind) (string, error) {
			return p.kube.Writer(ctx, t, kind)
		},
		Reserve: func() bool { return true },
	}
}

// noteAutoscaling notes whether the cloud's own autoscaling is on. No decision depends on it, so a failed call is only
// noted.
func (s *situation) noteAutoscaling(ctx context.Context, c *otc.Cloud) {
	ctx, cancel := context.WithTimeout(ctx, autoscalingLimit)
	defer cancel()
	policy, err := c.StoragePolicy(ctx, s.Instance.ID)
	switch {
	case errors.Is(err, otc.ErrNotFound): // the cloud has none
	case err != nil:
		s.note("Cannot read whether the cloud's own storage autoscaling is on: %v", err)
	case policy.On:
		ours := autopilot.Threshold(s.Instance.VolumeGB, int(s.Spec.Storage.ThresholdPercent))
		cloud := 100 - max(policy.TriggerPercent, 1000/max(s.Instance.VolumeGB, 1)) // it also acts at 10 GB free
		first := "The autopilot acts first"
		if ours >= cloud {
			first = fmt.Sprintf("The cloud acts first. Set spec.storage.thresholdPercent below %d, so that the autopilot does", cloud)
		}
		s.note("The cloud's own storage autoscaling is on: it acts at %d %% free, up to %d GB; the autopilot at %d %% used, up to %d GB. "+
			"%s. The autopilot continues from a size that the cloud has set", policy.TriggerPercent, policy.LimitGB, ours,
			autopilot.MaxGB(s.Spec, s.Status.Baseline, s.Instance.VolumeGB), first)
	}
}

// policy returns the database's RdsAutopilot, or one with the defaults if there is none yet.
func (p planner) policy(ctx context.Context, s *situation, t *autopilot.Target) (*v1alpha1.RdsAutopilot, error) {
	rap, err := p.kube.LiveAutopilot(ctx, t.Namespace, t.Name)
	if errors.Is(err, autopilot.ErrGone) {
		s.note("There is no RdsAutopilot yet, so no alarm can come. This plan uses the default policy. Set spec.autopilot: true in the Rds to create one")
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
		s.note("A request for a larger flavor (%v at %s %%, since %s) is waiting for the window", w.Metrics, w.ValuePercent,
			w.FirstTime.UTC().Format(time.RFC3339))
	}
	return rap, nil
}

// claims returns the targets that name the instance, among those that the caller may list.
func (p planner) claims(ctx context.Context, s *situation, id, namespace string) ([]*autopilot.Target, error) {
	targets, err := p.kube.LiveTargetsByInstance(ctx, id, metav1.NamespaceAll)
	if apierrors.IsForbidden(err) {
		s.note("Not checked: whether an Rds of another namespace names the same instance, because you may not list those")
		targets, err = p.kube.LiveTargetsByInstance(ctx, id, namespace)
	}
	return targets, err
}
