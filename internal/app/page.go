// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/internal/page"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// newPage returns the handler of the page. All its reads of the cloud together use a tenth of the rate.
func newPage(o Options, kube *k8s.Cluster, api *otc.Cloud) http.Handler {
	reader := api.Sparing()
	return page.New(page.Options{
		Cache: kube, Sweep: o.Sweep, Recheck: o.Recheck, Version: o.Version, Now: o.Now,
		Past: func(ctx context.Context, a *v1alpha1.RdsAutopilot, period time.Duration,
			since time.Time) (autopilot.Past, error) {
			return past(ctx, reader, a, period, since)
		},
	})
}

func past(ctx context.Context, reader *otc.Cloud, a *v1alpha1.RdsAutopilot, period time.Duration,
	since time.Time) (none autopilot.Past, err error) {
	if a.Status.Instance == nil {
		return none, errors.New("the instance is not known yet")
	}
	inst := &autopilot.Instance{ID: a.Status.Instance.ID}
	if rules := a.Status.Alarms.Rules; len(rules) > 0 {
		return reader.Past(ctx, *inst, rules[0].Dimension, period, since)
	}
	// Without a rule, it is the dimension of the instance's engine, which only the cloud knows.
	if inst, err = reader.Instance(ctx, inst.ID, since); err != nil {
		return none, err
	}
	if inst == nil {
		return none, errors.New("the cloud has no such instance")
	}
	return reader.Past(ctx, *inst, "", period, since)
}
