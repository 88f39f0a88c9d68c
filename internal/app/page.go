// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/internal/status"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// StatusPage is what people look at; nil where it is switched off. leader says which pod leads.
func StatusPage(o Options, kube *k8s.Cluster, api *otc.Cloud, reg prometheus.Gatherer, receiver *webhook.Receiver, leader func() string) (http.Handler, error) {
	if !o.StatusPage {
		return nil, nil
	}
	api = api.Sparing()
	p := planner{kube: cached{kube}, api: api, cloud: cloud.New(api, o.Now), options: o}
	return status.New(status.Options{
		Cache: kube, Metrics: reg, Leader: leader, Mode: o.Mode, Sweep: o.Sweep, Recheck: o.Recheck, Version: o.Version,
		Log: o.Log.Named("status"), Now: o.Now,
		Plan: func(ctx context.Context, namespace, name string) (*autopilot.Plan, error) {
			target := kube.Target(namespace, name)
			if target == nil {
				return nil, fmt.Errorf("there is no Rds %s/%s", namespace, name)
			}
			s, err := p.observe(ctx, target)
			if err != nil {
				return nil, err
			}
			return s.Plan(), nil
		},
		Past: p.past, LastHour: receiver.AnsweredLastHour,
		Replicas: func(ctx context.Context) (all []status.Replica, err error) {
			pods, err := kube.Replicas(ctx, o.LeaseNamespace)
			for _, pod := range pods {
				all = append(all, status.Replica(pod))
			}
			return all, err
		},
		CloudErrors: func() (all []status.CloudError) {
			for _, f := range api.Failures() {
				all = append(all, status.CloudError{Service: f.Service, Text: f.Text, Time: f.Time})
			}
			return all
		},
	})
}

// past is what was measured of a database, on the dimensions that its rules have.
func (p planner) past(ctx context.Context, namespace, name string, period time.Duration, since time.Time) (none autopilot.Past, err error) {
	a, err := p.kube.LiveAutopilot(ctx, namespace, name)
	if err != nil {
		return none, err
	}
	if a.Status.Instance == nil {
		return none, errors.New("the instance is not known yet")
	}
	inst := autopilot.Instance{ID: a.Status.Instance.ID}
	var wanted []controller.EvidenceOf
	for _, m := range autopilot.MetricTable() {
		w := controller.EvidenceOf{Metric: m.Metric}
		for _, r := range a.Status.Alarms.Rules {
			if r.Metric == m.Metric {
				w.Dimension = r.Dimension
			}
		}
		if w.Dimension == "" && inst.Engine == "" { // it follows from the engine, which only the cloud knows
			found, err := p.cloud.Instance(ctx, inst.ID, p.options.Now().Add(-time.Hour))
			if err != nil {
				return none, err
			}
			if found == nil {
				return none, errors.New("the cloud has no such instance")
			}
			inst = *found
		}
		wanted = append(wanted, w)
	}
	return p.cloud.Past(ctx, inst, wanted, period, since)
}

// cached answers from the caches where a plan of the command line asks the API server.
type cached struct{ *k8s.Cluster }

// LiveAutopilot is the RdsAutopilot as last seen.
func (c cached) LiveAutopilot(_ context.Context, namespace, name string) (*v1alpha1.RdsAutopilot, error) {
	a, ok := c.Autopilot(namespace, name)
	if !ok {
		return nil, autopilot.ErrGone
	}
	return a, nil
}

// LiveTargetsByInstance are those that are watched and name the instance.
func (c cached) LiveTargetsByInstance(_ context.Context, id, _ string) ([]*autopilot.Target, error) {
	return c.TargetsByInstance(id), nil
}
