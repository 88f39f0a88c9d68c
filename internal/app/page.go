// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/plan"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/internal/status"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// StatusPage returns the handler of the status page, or nil if it is switched off. clusterID is the uid of the
// namespace kube-system. leader returns the pod that leads.
func StatusPage(
	o Options, kube *k8s.Cluster, clusterID string, api *otc.Cloud, reg prometheus.Gatherer, leader func() string,
) (http.Handler, error) {
	if !o.StatusPage {
		return nil, nil
	}
	api = api.Sparing()
	p := planner{kube: cached{kube}, api: api, cloud: cloud.New(api, o.Now), options: o}
	return status.New(status.Options{
		Cache: kube, Metrics: reg, Leader: leader, Mode: o.Mode, Sweep: o.Sweep, Recheck: o.Recheck,
		Version:   o.Version,
		Documents: documentsURL(o.Version),
		Scope: func() status.Scope {
			return status.Scope{Cluster: clusterID, Region: api.Region(), Project: api.Project()}
		},
		Log: o.Log.Named("status"), Now: o.Now,
		Plan: func(ctx context.Context, namespace, name string) (*plan.Plan, error) {
			target := kube.Target(namespace, name)
			if target == nil {
				return nil, fmt.Errorf("there is no Rds %s/%s", namespace, name)
			}
			return p.plan(ctx, target)
		},
		Past: p.past,
		CloudErrors: func() (all []status.CloudError) {
			for _, f := range api.Failures() {
				all = append(all, status.CloudError{Service: f.Service, Text: f.Text, Time: f.Time})
			}
			return all
		},
	})
}

// past reads the measurements of a database since a time, on the dimensions of its rules.
func (p planner) past(
	ctx context.Context, namespace, name string, period time.Duration, since time.Time,
) (none autopilot.Past, err error) {
	a, err := p.kube.LiveAutopilot(ctx, namespace, name)
	if err != nil {
		return none, err
	}
	if a.Status.Instance == nil {
		return none, errors.New("the instance is not known yet")
	}
	inst := &autopilot.Instance{ID: a.Status.Instance.ID}
	wanted := wantedEvidence(a.Spec, a.Status.Alarms.Rules)
	if slices.ContainsFunc(wanted, func(w controller.EvidenceRequest) bool { return w.Dimension == "" }) {
		// A metric without a rule has the dimension of the instance's engine, which only the cloud knows.
		if inst, err = p.cloud.Instance(ctx, inst.ID, p.options.Now().Add(-time.Hour)); err != nil {
			return none, err
		}
		if inst == nil {
			return none, errors.New("the cloud has no such instance")
		}
	}
	return p.cloud.Past(ctx, *inst, wanted, period, since)
}

// cached reads from the informers' caches, so that a plan on the status page costs no call to the API server.
type cached struct{ *k8s.Cluster }

// LiveAutopilot returns the cached RdsAutopilot, or autopilot.ErrGone.
func (c cached) LiveAutopilot(_ context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error) {
	a, ok := c.Autopilot(namespace, name)
	if !ok {
		return nil, autopilot.ErrGone
	}
	return a, nil
}

// LiveTargetsByInstance returns the watched databases that name the instance.
func (c cached) LiveTargetsByInstance(_ context.Context, id, _ string) ([]*autopilot.Target, error) {
	return c.TargetsByInstance(id), nil
}
