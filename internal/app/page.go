// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
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
	p := pastReader{kube: kube, cloud: cloud.New(api, o.Now), now: o.Now}
	return status.New(status.Options{
		Cache: kube, Metrics: reg, Leader: leader, Mode: o.Mode, Sweep: o.Sweep, Recheck: o.Recheck,
		Version:   o.Version,
		Documents: documentsURL(o.Version),
		Scope: func() status.Scope {
			return status.Scope{Cluster: clusterID, Region: api.Region(), Project: api.Project()}
		},
		Log: o.Log.Named("status"), Now: o.Now,
		Past: p.past,
		CloudErrors: func() (all []status.CloudError) {
			for _, f := range api.Failures() {
				all = append(all, status.CloudError{Service: f.Service, Text: f.Text, Time: f.Time})
			}
			return all
		},
	})
}

// pastReader reads measurements for the plots. It finds the databases in the informers' caches.
type pastReader struct {
	kube  *k8s.Cluster
	cloud *cloud.Cloud
	now   func() time.Time
}

// past reads the measurements of a database since a time, on the dimensions of its rules.
func (p pastReader) past(
	ctx context.Context, namespace, name string, period time.Duration, since time.Time,
) (none autopilot.Past, err error) {
	a, ok := p.kube.Autopilot(namespace, name)
	if !ok || a.Status.Instance == nil {
		return none, errors.New("the instance is not known yet")
	}
	inst := &autopilot.Instance{ID: a.Status.Instance.ID}
	wanted := wantedEvidence(a.Spec, a.Status.Alarms.Rules)
	if slices.ContainsFunc(wanted, func(w controller.EvidenceRequest) bool { return w.Dimension == "" }) {
		// A metric without a rule has the dimension of the instance's engine, which only the cloud knows.
		if inst, err = p.cloud.Instance(ctx, inst.ID, p.now().Add(-time.Hour)); err != nil {
			return none, err
		}
		if inst == nil {
			return none, errors.New("the cloud has no such instance")
		}
	}
	return p.cloud.Past(ctx, *inst, wanted, period, since)
}

// wantedEvidence returns the measurements to read of all metrics, on the dimensions of the rules.
func wantedEvidence(spec v1alpha1.Spec, rules []v1alpha1.Rule) (wanted []controller.EvidenceRequest) {
	for _, m := range autopilot.MetricTable() {
		w := controller.EvidenceRequest{Metric: m.Metric, PeriodSeconds: m.PeriodSeconds(spec)}
		for _, r := range rules {
			if r.Metric == m.Metric {
				w.Dimension = r.Dimension
			}
		}
		wanted = append(wanted, w)
	}
	return wanted
}
