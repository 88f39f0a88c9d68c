// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
)

const (
	// startLimit is how long the API server and the cloud together may take to answer at start.
	startLimit = 13 * time.Second
	// cloudLimit is the cloud's share of startLimit. The service starts without the cloud and retries later.
	cloudLimit = 5 * time.Second
	// reachAgain is the time between two attempts to reach a cloud that did not answer at start.
	reachAgain = 20 * time.Second
)

// ConnectCloud logs in to the cloud. If patient is true, neither an unreachable cloud nor refused credentials are an
// error, and the caller retries with Reach. If they ended the process, its restarts would lock the account.
func ConnectCloud(ctx context.Context, o Options, reg prometheus.Registerer, patient bool) (*otc.Cloud, error) {
	if patient {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cloudLimit)
		defer cancel()
	}
	c, err := otc.Connect(ctx, otc.Options{
		Env: o.Env, Endpoints: o.Endpoints, Rate: o.CloudRate, Registerer: reg, Log: o.Log.Named("cloud"), Patient: patient,
		Transport: o.Transport, Now: o.Now,
	})
	if errors.Is(err, otc.ErrCredentials) {
		return nil, fmt.Errorf("connect to the cloud: the cloud refused the credentials in OS_* or clouds.yaml: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the cloud: %w", err)
	}
	return c, nil
}

// ConnectKube connects to the API server, and checks the rights to read the watched kinds.
func ConnectKube(ctx context.Context, config *rest.Config, o Options) (*k8s.Cluster, error) {
	own, err := o.ownNamespace()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	proxy := config.Proxy // of the kubeconfig
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return otc.Proxied{RoundTripper: next, Proxy: proxy} })
	kube, err := k8s.Connect(ctx, config, k8s.Options{
		Version: o.Version, Own: own, Namespaces: o.Namespaces, SystemNamespace: o.System, Labels: o.Labels, Log: o.Log.Named("kubernetes"),
	})
	if err != nil {
		return nil, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	return kube, nil
}
