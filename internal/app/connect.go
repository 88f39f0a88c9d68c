// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
)

const (
	startLimit = 13 * time.Second // for the API server and the cloud to answer at start
	cloudLimit = 5 * time.Second  // of that, for the cloud: it is not waited for
	reachAgain = 20 * time.Second // between tries to reach it where it was away
)

// ConnectCloud logs in. Where patient is true, a cloud that is away is no error: it is tried again later. One that refuses
// the credentials always is.
func ConnectCloud(ctx context.Context, o Options, reg prometheus.Registerer, patient bool) (*otc.Cloud, error) {
	if patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cloudLimit)
		defer cancel()
	}
	c, err := otc.Connect(ctx, otc.Options{
		Env: o.Env, Endpoints: o.Endpoints, Rate: o.CloudRate, Registerer: reg, Log: o.Log.Named("cloud"), Patient: patient,
		Transport: o.Transport, Now: o.Now, Observe: o.Observe,
	})
	if errors.Is(err, otc.ErrCredentials) {
		return nil, fmt.Errorf("connect to the cloud: it refused the credentials in OS_* or clouds.yaml: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the cloud: %w", err)
	}
	return c, nil
}

// ConnectKube connects to the API server, and checks that it may read what is watched.
func ConnectKube(ctx context.Context, config *rest.Config, o Options) (*k8s.Cluster, error) {
	kube, err := k8s.Connect(ctx, config, k8s.Options{Version: o.Version, Namespaces: o.Namespaces, Log: o.Log.Named("kubernetes")})
	if err != nil {
		return nil, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	return kube, nil
}
