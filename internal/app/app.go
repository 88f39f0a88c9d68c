// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
	_ "time/tzdata" // windows name zones, and a container need not have them

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
)

const drainLimit = 5 * time.Second // for requests in flight when stopping

// App is the service: it receives, decides and patches while Run runs.
type App struct {
	Parts
	options Options
	log     *zap.Logger
	reg     *prometheus.Registry
	kube    *k8s.Cluster
	cloud   *otc.Cloud
	leader  prometheus.Gauge
	page    http.Handler // nil where it is switched off
	leading atomic.Value // string: the pod that leads, as last seen
}

// New connects to Kubernetes and to the cloud, and puts the parts together. Whatever keeps it from starting is one error.
func New(ctx context.Context, config *rest.Config, o Options) (*App, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if CrossesNetworkUnencrypted(o.PublicURL) {
		o.Log.Warn("--public-url is http: alarms cross the network unencrypted")
	}
	if o.Allowed.IsUnbounded() {
		o.Log.Warn("--allowed-instances is empty: whoever may write an RdsAutopilot in a watched namespace can have any instance of the project changed")
	}
	reg := registry(o.Version)
	kube, err := ConnectKube(ctx, config, o)
	if err != nil {
		return nil, err
	}
	clusterID, err := kube.ClusterID(ctx)
	if err != nil {
		return nil, err
	}
	api, err := ConnectCloud(ctx, o, reg, true)
	if err != nil {
		return nil, err
	}
	a := &App{options: o, log: o.Log, reg: reg, kube: kube, cloud: api, leader: leaderGauge(reg)}
	reachableGauge(reg, kube.Reachable)
	if a.Parts, err = Wire(o, kube, clusterID, api, reg); err != nil {
		return nil, err
	}
	if a.page, err = StatusPage(o, kube, api, reg, a.Receiver, a.leadingPod); err != nil {
		return nil, err
	}
	return a, a.Watch(kube)
}

// Run starts everything and stops it in order. Readiness and the leader's work end at once: the sooner the lease is free,
// the sooner another replica decides. The receiver goes on for the drain delay, because senders learn only by and by
// that they should not use it, and then ends what is in flight. The watches come last, for the others need them.
func (a *App) Run(ctx context.Context, public, private net.Listener) error {
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	var listening, stopping atomic.Bool
	adminServer := admin(a.reg, func() bool {
		return listening.Load() && !stopping.Load() && a.kube.HasSynced() && a.kube.Reachable()
	}, a.page)

	var last errgroup.Group // ends after everything else
	last.Go(func() error { return a.kube.Run(watching) })
	last.Go(func() error { return served(adminServer.Serve(private)) })

	work, working := errgroup.WithContext(ctx)
	work.Go(func() error { return a.lead(working) })
	work.Go(func() error { a.cloud.Reach(working, reachAgain); return nil })
	work.Go(func() error { returnMemory(working); return nil })
	webhookServer := a.Receiver.Server()
	webhookServer.Handler = closeConnections(&stopping, webhookServer.Handler)
	work.Go(func() error {
		// Without its caches a replica would ask the API server for every topic.
		if a.kube.WaitForSync(working) != nil {
			return nil //nolint:nilerr // stopped before that
		}
		listening.Store(true)
		a.log.Info("listening", zap.String("webhook", public.Addr().String()), zap.String("admin", private.Addr().String()),
			zap.String("publicURL", a.options.PublicURL.Redacted()), zap.String("version", a.options.Version))
		return served(webhookServer.Serve(public))
	})
	work.Go(func() error {
		<-working.Done()
		stopping.Store(true)
		a.log.Info("stopping", zap.Duration("drainDelay", a.options.DrainDelay))
		if ctx.Err() != nil && listening.Load() { // else nothing is to be saved
			<-time.After(a.options.DrainDelay)
		}
		return shutDown(webhookServer)
	})
	err := work.Wait()
	stopWatching()
	return errors.Join(err, shutDown(adminServer), last.Wait())
}

// leadingPod is the pod that leads, as last seen; empty where none was seen, or nobody is elected.
func (a *App) leadingPod() string {
	pod, _ := a.leading.Load().(string)
	return pod
}

// lead works as long as this replica leads, and seeks the lease again when it was lost.
func (a *App) lead(ctx context.Context) error {
	if a.kube.WaitForSync(ctx) != nil {
		return nil //nolint:nilerr // stopped before that
	}
	if !a.options.LeaderElect {
		a.leader.Set(1)
		a.Controller.Run(ctx)
		return nil
	}
	for ctx.Err() == nil {
		err := a.kube.Lead(ctx, k8s.Lease{Namespace: a.options.LeaseNamespace, Pod: a.options.Env("POD_NAME"), OnLeader: func(pod string) { a.leading.Store(pod) }, OnChange: func(leading bool) {
			a.log.Info("leadership", zap.Bool("leading", leading))
			a.leader.Set(0)
			if leading {
				a.leader.Set(1)
			}
		}}, a.Controller.Run)
		if err != nil && !errors.Is(err, k8s.ErrLeaseLost) {
			return fmt.Errorf("elect a leader: %w", err)
		}
	}
	return nil
}

// closeConnections asks those that send while we stop to come on another connection, which will be another replica's: a kept one
// could be closed just when it is used again, and SMN would have to send once more.
func closeConnections(stopping *atomic.Bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

func served(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// shutDown lets requests in flight end, but not for ever.
func shutDown(s *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop a listener: %w", err), s.Close())
	}
	return nil
}
