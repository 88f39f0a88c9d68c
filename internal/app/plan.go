// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// planner reads from the cluster and the cloud everything that a decision depends on. It changes neither.
type planner struct {
	kube    *k8s.Cluster
	cloud   *otc.Cloud
	claims  controller.ClaimReader
	options Options
	hasNoID bool     // the cluster's id could not be read, so the object's own rules look like those of another one
	notes   []string // sentences for the reader of the plan
}

func (p *planner) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// Plan returns the text of what the autopilot would decide now for a database if an alarm came. It connects as New
// does, but only to that namespace, and writes nothing. Each call has its own deadline. The total time depends on the
// number of calls and on their rate.
func Plan(ctx context.Context, config *rest.Config, o Options, namespace, name string) (string, error) {
	starting, started := context.WithTimeout(ctx, startLimit)
	defer started()
	if own, err := o.ownNamespace(); err == nil {
		o.Allowed.OwnNamespace = own
	}
	o.Namespaces, o.LeaseNamespace = []string{namespace}, namespace // the caller may have the right to read only this one
	kube, err := ConnectKube(starting, config, o)
	if err != nil {
		return "", err
	}
	// Read the Rds before connecting to the cloud, because a wrong name is the most likely mistake.
	target, err := kube.LiveTarget(starting, namespace, name)
	if errors.Is(err, autopilot.ErrGone) {
		return "", fmt.Errorf("there is no Rds %s/%s, and no RdsAutopilot with spec.instanceID", namespace, name)
	}
	if err != nil {
		return "", err
	}
	api, err := ConnectCloud(starting, o, nil, false)
	if err != nil {
		return "", err
	}
	p := &planner{kube: kube, cloud: api, options: o}
	clusterID, err := kube.ClusterID(starting)
	if err != nil {
		p.note("Not checked: whether another object manages the instance, because its rules bear the cluster's id: %v", err)
		p.hasNoID = true
	}
	p.claims = alarms.New(alarms.Options{Cloud: api, ClusterID: clusterID, IsGone: kube.IsGone, Now: o.Now})
	plan, err := p.observe(ctx, target)
	if err != nil {
		return "", err
	}
	return plan.Text(ctx), nil
}

// observe reads live what a round of the controller reads before its first guard, and what a plan shows whatever the
// guards say: the measurements and the larger flavors. It returns an error if one of these is missing.
func (p *planner) observe(ctx context.Context, t *autopilot.Target) (*decide.Plan, error) {
	rap, err := p.policy(ctx, t)
	if err != nil {
		return nil, err
	}
	observer := controller.Observer{
		Instances: p.cloud, Mode: p.options.Mode, Recheck: p.options.Recheck, Now: p.options.Now,
		Claims: p.claims,
	}
	c, err := observer.Observe(ctx, t, rap, p.options.Now())
	if err != nil {
		return nil, err
	}
	if c.Claim.By == "" || p.hasNoID { // the plan supposes an alarm, so it supposes the rule as well
		c.Claim = v1alpha1.Claim{Holds: true}
	}
	explicit := t.Explicit(v1alpha1.Switch{}, rap.Status.Switch)
	c.Off = autopilot.OffFor(t, rap, explicit, p.options.Mode, p.options.Allowed)
	read := p.facts(t).Read
	evidence := map[v1alpha1.Metric]autopilot.Evidence{}
	if c.Instance != nil {
		c.Status = record.FollowUp(c).Status
		for _, m := range autopilot.Metrics() { // the plan supposes that they are in force
			c.Alarms = append(c.Alarms, autopilot.Alarm{Metric: m, State: v1alpha1.StateAlarm, StateTime: c.Now})
		}
		for _, f := range []autopilot.Fact{
			autopilot.FactUsedSpace, autopilot.FactUsage, autopilot.FactCatalogue, autopilot.FactResizeList,
		} {
			if err := c.ReadFact(ctx, read, f); err != nil {
				return nil, err
			}
		}
		record.SetSizes(&c, c.Instance.WithSizes(c.Catalogue))
		for _, a := range c.Alarms {
			evidence[a.Metric] = a.Evidence
		}
	}
	return &decide.Plan{
		Case: c, Namespace: t.Namespace, Name: t.Name, Evidence: evidence, Read: read, Notes: p.notes,
	}, nil
}

// facts returns the reader of the facts. The state of the alarms is supposed, and so is a place for another flavor.
func (p *planner) facts(t *autopilot.Target) controller.FactReader {
	return controller.FactReader{
		Instances: p.cloud, Evidence: p.cloud,
		Writer: func(ctx context.Context, kind v1alpha1.ChangeKind) (string, error) {
			return p.kube.Writer(ctx, t, kind)
		},
		Reserve: func() bool { return true },
	}
}

func (p *planner) policy(ctx context.Context, t *autopilot.Target) (*v1alpha1.RdsAutopilot, error) {
	rap, err := p.kube.LiveAutopilot(ctx, t.Namespace, t.Name)
	if errors.Is(err, autopilot.ErrGone) {
		p.note("There is no RdsAutopilot yet, so no alarm can come. This plan uses the default policy. Set spec.autopilot: true in the Rds to create one")
		return &v1alpha1.RdsAutopilot{Spec: autopilot.DefaultSpec()}, nil
	}
	if err != nil {
		return nil, err
	}
	armed := meta.FindStatusCondition(rap.Status.Conditions, v1alpha1.ConditionArmed)
	switch {
	case armed == nil:
		p.note("Not armed yet: no alarm would reach the autopilot")
	case armed.Status != metav1.ConditionTrue:
		p.note("Not armed (%s): no alarm would reach the autopilot. %s", armed.Reason, armed.Message)
	}
	return rap, nil
}
