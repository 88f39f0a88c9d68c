// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/cloud"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/internal/status"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// statusPage is what people look at; nil where it is switched off. leader says which pod leads.
func statusPage(o Options, kube *k8s.Cluster, api *otc.Cloud, reg prometheus.Gatherer, leader func() string) (http.Handler, error) {
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
	})
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

// SharesInstance reports whether another Rds that is watched has the same instance.
func (c cached) SharesInstance(_ context.Context, t *autopilot.Target, _ string) (bool, error) {
	return len(c.TargetsByInstance(t.InstanceID)) > 1, nil
}
