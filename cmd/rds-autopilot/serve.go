package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"
	_ "time/tzdata" // windows name zones, and a container need not have them

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	startLimit = 13 * time.Second // for the API server and the cloud to answer at start
	cloudLimit = 5 * time.Second  // of that, for the cloud: it is not waited for
	reachAgain = 20 * time.Second // between tries to reach it where it was away
	drainLimit = 5 * time.Second  // for requests in flight when stopping
	topicName  = "autopilot_"     // how the names of our topics begin
)

// serve runs until the context ends. Whatever keeps it from starting is one error; a signal meanwhile is none.
func serve(ctx context.Context, o options, env func(string) string, stderr io.Writer) error {
	log := o.logger(stderr)
	defer func() { _ = log.Sync() }() // stderr may be a pipe that cannot
	k8s.RedirectLog(log)
	p, err := prepare(ctx, o, env, log)
	if ctx.Err() != nil {
		log.Info("stopped before it began")
		return nil
	}
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	public, err := listen.Listen(ctx, "tcp", o.WebhookAddr)
	if err != nil {
		return fmt.Errorf("--webhook-addr: %w", err)
	}
	defer public.Close()
	private, err := listen.Listen(ctx, "tcp", o.AdminAddr)
	if err != nil {
		return fmt.Errorf("--admin-addr: %w", err)
	}
	defer private.Close()
	return p.run(ctx, public, private)
}

// prepare puts the parts together.
func prepare(ctx context.Context, o options, env func(string) string, log *zap.Logger) (*process, error) {
	starting, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	reg := registry()
	kube, err := connectKube(starting, o, log)
	if err != nil {
		return nil, err
	}
	clusterID, err := kube.ClusterID(starting)
	if err != nil {
		return nil, err
	}
	otcCloud, err := connectCloud(starting, o, env, log, reg)
	if err != nil {
		return nil, err
	}
	p := &process{options: o, log: log, reg: reg, kube: kube, cloud: otcCloud, leader: leaderGauge(reg)}
	reachableGauge(reg, kube.Reachable)
	shop := newCloud(otcCloud, time.Now)
	p.control = controller.New(controller.Options{
		Cluster: cluster{kube}, Cloud: shop, Mode: o.Mode, Sweep: o.Sweep, Recheck: o.Recheck, MaxFlavorChanges: o.MaxFlavors,
		Arming: arming{alarms.New(shop, metrics(), time.Now), shop, clusterID, o.PublicURL.String(), len(o.Namespaces) == 0},
		Log:    log, Reg: reg, Now: time.Now,
	})
	if p.receive, err = receiver(o, kube, otcCloud, log, reg); err != nil {
		return nil, err
	}
	if o.plain() {
		log.Warn("--public-url is http: alarms cross the network unencrypted")
	}
	return p, p.watch()
}

// connectCloud logs in. A cloud that is away is no reason not to receive alarms; one that refuses us is.
func connectCloud(ctx context.Context, o options, env func(string) string, log *zap.Logger, reg prometheus.Registerer) (*otc.Cloud, error) {
	ctx, cancel := context.WithTimeout(ctx, cloudLimit)
	defer cancel()
	c, err := otc.Connect(ctx, otc.Options{
		Env: env, Endpoints: o.Endpoints, Rate: o.CloudRate, Registerer: reg, Log: log.Named("cloud"), Patient: true,
	})
	if errors.Is(err, otc.ErrCredentials) {
		return nil, fmt.Errorf("connect to the cloud: it refused the credentials in OS_* or clouds.yaml: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the cloud: %w", err)
	}
	return c, nil
}

func connectKube(ctx context.Context, o options, log *zap.Logger) (*k8s.Cluster, error) {
	cfg, err := k8s.NewConfig(o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	kube, err := k8s.Connect(ctx, cfg, k8s.Options{Version: version, Namespaces: o.Namespaces, Log: log.Named("kubernetes")})
	if err != nil {
		return nil, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	return kube, nil
}

func receiver(o options, kube *k8s.Cluster, c *otc.Cloud, log *zap.Logger, reg prometheus.Registerer) (*webhook.Receiver, error) {
	roots, err := trustRoots(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("--smn-ca-file: %w", err)
	}
	certHosts := certHosts(o, c)
	confirmHosts, err := confirmHosts(o, c.Region())
	if err != nil {
		return nil, err
	}
	return webhook.New(webhook.Options{
		Path: o.PublicURL.EscapedPath(), Book: cluster{kube},
		Verifier: smn.NewKeys(certHosts, smn.NewClient(certHosts, roots), time.Now),
		Confirm:  smn.NewClient(smn.Fixed(confirmHosts...), roots), ConfirmHosts: confirmHosts,
		OurTopics:     ourTopics(c),
		MaxMessageAge: o.MaxMessageAge, Warn: cluster{kube}.warn, Log: log, Reg: reg, Now: time.Now,
	}), nil
}

// place is where we are in the cloud.
type place interface {
	Region() string
	ProjectID() string // empty while it is not known
}

// ourTopics tells URNs that could be ours. Where the cloud was never reached our project is not known yet, and any could be.
func ourTopics(c place) func(urn string) bool {
	return func(urn string) bool {
		project := c.ProjectID()
		if parts := strings.Split(urn, ":"); project == "" && len(parts) == 5 {
			project = parts[3]
		}
		return webhook.TopicPrefix(c.Region(), project, topicName)(urn)
	}
}

// trustRoots are the system's and those of the file.
func trustRoots(file string) (*x509.CertPool, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if file == "" {
		return roots, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return roots, nil
}

// process is everything that runs until the context ends.
type process struct {
	options
	log     *zap.Logger
	reg     *prometheus.Registry
	kube    *k8s.Cluster
	cloud   *otc.Cloud
	control *controller.Controller
	receive *webhook.Receiver
	leader  prometheus.Gauge
}

func (p *process) watch() error {
	return errors.Join(
		p.kube.OnRds(p.control.RdsChanged),
		p.kube.OnAutopilot(func(old, now *v1alpha1.RdsAutopilot) {
			p.control.AutopilotChanged(old, now, old != nil && now != nil && k8s.LeaderStatusOnly(old, now))
		}),
	)
}

// run starts everything and stops it in order. Readiness and the leader's work end at once: the sooner the lease is free,
// the sooner another replica decides. The receiver goes on for the drain delay, because whoever sends to it learns only
// by and by that it should not, and then ends what is in flight. The watches come last, for the others need them.
func (p *process) run(ctx context.Context, public, private net.Listener) error {
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	var listening, stopping atomic.Bool
	adminServer := admin(p.reg, func() bool {
		return listening.Load() && !stopping.Load() && p.kube.HasSynced() && p.kube.Reachable()
	})

	var last errgroup.Group // ends after everything else
	last.Go(func() error { return p.kube.Run(watching) })
	last.Go(func() error { return served(adminServer.Serve(private)) })

	work, working := errgroup.WithContext(ctx)
	work.Go(func() error { return p.lead(working) })
	work.Go(func() error { p.cloud.Reach(working, reachAgain); return nil })
	webhookServer := p.receive.Server()
	webhookServer.Handler = lastOnes(&stopping, webhookServer.Handler)
	work.Go(func() error {
		// Without its caches a replica would ask the API server for every topic.
		if p.kube.WaitForSync(working) != nil {
			return nil //nolint:nilerr // stopped before that
		}
		listening.Store(true)
		p.log.Info("listening", zap.String("webhook", public.Addr().String()), zap.String("admin", private.Addr().String()),
			zap.String("publicURL", p.PublicURL.Redacted()), zap.String("version", version))
		return served(webhookServer.Serve(public))
	})
	work.Go(func() error {
		<-working.Done()
		stopping.Store(true)
		p.log.Info("stopping", zap.Duration("drainDelay", p.DrainDelay))
		if ctx.Err() != nil && listening.Load() { // else nothing is to be saved
			<-time.After(p.DrainDelay)
		}
		return shutDown(webhookServer)
	})
	err := work.Wait()
	stopWatching()
	return errors.Join(err, shutDown(adminServer), last.Wait())
}

// lead works as long as this replica leads, and seeks the lease again when it was lost.
func (p *process) lead(ctx context.Context) error {
	if p.kube.WaitForSync(ctx) != nil {
		return nil //nolint:nilerr // stopped before that
	}
	if !p.LeaderElect {
		p.leader.Set(1)
		p.control.Run(ctx)
		return nil
	}
	for ctx.Err() == nil {
		err := p.kube.Lead(ctx, k8s.Lease{Namespace: p.LeaseNS, OnChange: func(leading bool) {
			p.log.Info("leadership", zap.Bool("leading", leading))
			p.leader.Set(0)
			if leading {
				p.leader.Set(1)
			}
		}}, p.control.Run)
		if err != nil && !errors.Is(err, k8s.ErrLeaseLost) {
			return fmt.Errorf("elect a leader: %w", err)
		}
	}
	return nil
}

// lastOnes asks whoever sends while we stop to come on another connection, which will be another replica's: a kept one
// could be closed just when it is used again, and SMN would have to send once more.
func lastOnes(stopping *atomic.Bool, next http.Handler) http.Handler {
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
