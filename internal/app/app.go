// SPDX-License-Identifier: Apache-2.0

// Package app is the service as one value: New wires its parts, Run works until its context ends. The binary, the tests
// and the sandbox all use it, so that the wiring exists once. The package reads no flags and knows no exit codes, but
// its errors name the flag to set.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
	_ "time/tzdata" // windows name time zones, and a container image may lack the zone files

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
)

// drainLimit is how long a stopping server waits for requests in flight before it closes their connections.
const drainLimit = 5 * time.Second

// App is the service: it receives, decides and patches while Run runs.
type App struct {
	Parts
	options Options
	log     *zap.Logger
	reg     *prometheus.Registry
	kube    *k8s.Cluster
	cloud   *otc.Cloud
	leader  prometheus.Gauge
	page    http.Handler // nil if the page is switched off
}

// New connects to Kubernetes and to the cloud and wires the parts. It returns the first error that prevents the start.
func New(ctx context.Context, config *rest.Config, o Options) (*App, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if otc.CrossesNetworkUnencrypted(o.PublicURL) {
		o.Log.Warn("--public-url is http: alarms cross the network unencrypted")
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
	a := &App{options: o, log: o.Log, reg: reg, kube: kube, cloud: api}
	a.leader = replicaGauges(reg, kube.RefusedNamespaces, kube.UnreadableRds)
	if a.Parts, err = Wire(o, kube, clusterID, api, reg); err != nil {
		return nil, err
	}
	if o.StatusPage {
		a.page = newPage(o, kube, api)
	}
	return a, a.Watch(kube)
}

// Run starts all parts, waits until ctx ends or one part fails, and then stops the parts in this order:
//
//  1. Readiness and the leader's loop end at once, so that the lease is free for another replica.
//  2. The receiver accepts messages for the drain delay, because senders learn of the stop with a delay. Then it
//     finishes the requests in flight.
//  3. The watches and the admin server stop last, because the others need them.
func (a *App) Run(ctx context.Context, public, private net.Listener) error {
	parts, working := errgroup.WithContext(ctx)
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	parts.Go(func() error { return a.kube.Run(watching) })

	var listening, stopping atomic.Bool
	adminServer := admin(a.reg, func() bool {
		return listening.Load() && !stopping.Load() && a.kube.HasSynced() && a.kube.Reachable()
	}, a.page)
	// A page that waits for the cloud must not outlast the process: Shutdown would wait for it, and fail.
	adminServer.BaseContext = func(net.Listener) context.Context { return watching }
	parts.Go(func() error { return serve(adminServer, private) })

	leaderStopped := make(chan struct{})
	parts.Go(func() error {
		defer close(leaderStopped)
		return a.lead(working)
	})
	parts.Go(func() error {
		a.cloud.Reach(working, reachAgain)
		return nil
	})

	webhookServer := a.Receiver.Server()
	parts.Go(func() error {
		// With empty caches, the receiver would ask the API server for the topic of every message.
		if a.kube.WaitForSync(working) != nil {
			return nil //nolint:nilerr // Run stopped first
		}
		listening.Store(true)
		a.log.Info("listening", zap.String("webhook", public.Addr().String()), zap.String("admin", private.Addr().String()),
			zap.String("publicURL", a.options.PublicURL.Redacted()), zap.String("version", a.options.Version))
		return serve(webhookServer, netutil.LimitListener(public, webhook.Connections))
	})

	<-working.Done()
	stopping.Store(true)
	a.log.Info("stopping", zap.Duration("drainDelay", a.options.DrainDelay))
	if ctx.Err() != nil && listening.Load() { // after a failure, or before the first message, there is nothing to drain
		time.Sleep(a.options.DrainDelay)
	}
	drained := shutDown(webhookServer)
	<-leaderStopped
	stopWatching()
	stopped := shutDown(adminServer)
	return errors.Join(parts.Wait(), drained, stopped)
}

// lead runs the controller while this replica leads. After a lost lease it competes for the lease again.
func (a *App) lead(ctx context.Context) error {
	if a.kube.WaitForSync(ctx) != nil {
		return nil //nolint:nilerr // Run stopped first
	}
	if !a.options.LeaderElect {
		a.leader.Set(1)
		a.Controller.Run(ctx)
		return nil
	}
	lease := k8s.DefaultLease()
	lease.Namespace, lease.Pod = a.options.LeaseNamespace, a.options.Env("POD_NAME")
	lease.OnChange = func(leading bool) {
		a.log.Info("leadership", zap.Bool("leading", leading))
		a.leader.Set(0)
		if leading {
			a.leader.Set(1)
		}
	}
	for ctx.Err() == nil {
		err := a.kube.Lead(ctx, lease, a.Controller.Run)
		if err != nil && !errors.Is(err, k8s.ErrLeaseLost) {
			return fmt.Errorf("elect a leader: %w", err)
		}
	}
	return nil
}

func serve(s *http.Server, l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func shutDown(s *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("stop a listener: %w", err), s.Close())
	}
	return nil
}
