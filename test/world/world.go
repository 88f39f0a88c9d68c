// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simoperator "github.com/mcsps/rds-autopilot/test/sim/operator"
)

// serviceName is the service's ServiceAccount and lease, and its namespace where the API server is the world's own.
const serviceName = "rds-autopilot"

// closeLimit bounds the graceful end of the processes when the world ends.
const closeLimit = 2 * time.Minute

// Options of a world. The zero value is one where a minute of the cloud takes a second.
type Options struct {
	// Cloud is the simulated cloud's. Speed is 60 if zero; Now stays nil, for processes have only the wall clock.
	Cloud simcloud.Options
	// Cluster has our custom resources and may be used by others too: the world keeps to a namespace of its own in it, with
	// lease, rights and databases. Nil starts one for this world alone, where the service sees all namespaces.
	Cluster *apiserver.Cluster
	// InMemory replaces the real API server by simkube, which knows no rights and needs no compilation. Cluster is nil then.
	InMemory bool
	// Resync is the interval in which the operator checks every Rds, on the wall clock: 10 s of the cloud if zero, and at least 1 s.
	Resync time.Duration
	// OnLine is called with each line that a process writes, in its order. It must not block.
	OnLine func(*Process, Line)
	// Binary is the service; empty means that Build, or the first Serve, compiles it.
	Binary string
	// Race compiles it with the race detector: a race ends the process with exit code 66 when it stops.
	Race bool
}

// World is a running world. Its methods may be called from several goroutines.
type World struct {
	Kube      apiserver.Kubernetes
	Cloud     *simcloud.Cloud
	Operator  *simoperator.Operator
	Ingress   *Ingress
	Namespace string // of a database that names none

	options Options
	root    string               // of the checkout
	own     apiserver.Kubernetes // nil with Options.Cluster
	home    string               // namespace of the service and its lease
	dir     string               // temporary
	client  dynamic.Interface
	service *rest.Config // of the service's own rights
	stop    context.CancelFunc
	running sync.WaitGroup
	reaper  *apiserver.Reaper

	building sync.Mutex
	mu       sync.Mutex // guards what follows
	closed   bool
	process  []*Process
}

// Start starts a world without the service. ctx bounds the start only; Close ends the world. The first start compiles the
// Kubernetes servers, which takes minutes.
func Start(ctx context.Context, o Options) (*World, error) {
	if o.Cloud.Speed == 0 {
		o.Cloud.Speed = 60
	}
	w := &World{options: o, stop: func() {}}
	if err := w.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a world: %w", err), w.Close())
	}
	return w, nil
}

func (w *World) start(ctx context.Context) error {
	var err error
	if w.root, err = apiserver.Checkout(); err != nil {
		return err
	}
	if w.dir, err = os.MkdirTemp("", "rds-autopilot-world-"); err != nil {
		return fmt.Errorf("temporary folder: %w", err)
	}
	if w.reaper, err = apiserver.StartReaper(w.dir); err != nil {
		return err
	}
	if err := w.startKube(ctx); err != nil {
		return err
	}
	if w.Cloud, err = simcloud.Start(w.options.Cloud); err != nil {
		return fmt.Errorf("cloud: %w", err)
	}
	if err := os.WriteFile(w.caFile(), w.Cloud.CAPEM(), 0o600); err != nil {
		return fmt.Errorf("cloud: %w", err)
	}
	if w.Ingress, err = startIngress(ctx); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop = stop
	w.running.Go(func() { w.Cloud.Run(running) })
	return w.startOperator(running)
}

func (w *World) startOperator(ctx context.Context) error {
	cloud, err := simoperator.Connect(w.Cloud.Env(), nil)
	if err != nil {
		return err
	}
	w.Operator, err = simoperator.New(simoperator.Options{
		Config: w.Kube.Config(), Namespace: w.watched(), Cloud: cloud,
		Resync: max(cmp.Or(w.options.Resync, w.Span(10*time.Second)), time.Second), Retry: w.Span(30 * time.Second),
	})
	if err != nil {
		return err
	}
	w.running.Go(func() { _ = w.Operator.Run(ctx) }) // fails only before it begins, and New would have returned that error
	return nil
}

// Close ends all processes and everything else, and removes every file. It may be called twice.
func (w *World) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	processes := slices.Clone(w.process)
	w.mu.Unlock()

	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	for _, p := range processes {
		if !p.ended() {
			errs = append(errs, p.Stop(ctx))
		}
	}
	w.stop()
	if w.Operator != nil {
		w.Operator.Resume()
	}
	if w.Ingress != nil {
		errs = append(errs, w.Ingress.close())
	}
	if w.Cloud != nil {
		errs = append(errs, w.Cloud.Close())
	}
	w.running.Wait()
	if w.own != nil {
		errs = append(errs, w.own.Stop())
	}
	if w.dir != "" {
		errs = append(errs, os.RemoveAll(w.dir))
	}
	if w.reaper != nil {
		errs = append(errs, w.reaper.Stop())
	}
	return errors.Join(errs...)
}

// Span returns how long a duration of the cloud takes on the wall clock.
func (w *World) Span(d time.Duration) time.Duration {
	return time.Duration(float64(d) / w.options.Cloud.Speed)
}

// watched returns the namespace that service and operator watch. Empty means all.
func (w *World) watched() string {
	if w.own != nil {
		return metav1.NamespaceAll
	}
	return w.Namespace
}

// PublicURL returns the URL to which the cloud posts its messages: the ingress, and the path of the webhook.
func (w *World) PublicURL() string { return w.Ingress.URL + "/smn" }

// TopicURN returns the URN of the topic of the installation; empty if there is none.
func (w *World) TopicURN() string {
	for _, t := range w.Cloud.Topics() {
		if strings.HasPrefix(t.Name, "rds-autopilot_") {
			return t.URN
		}
	}
	return ""
}

// Kubeconfig returns a file with the service's own access, which has only the rights of deploy/rbac.yaml.
func (w *World) Kubeconfig() string { return filepath.Join(w.dir, "kubeconfig") }

// AdminKubeconfig returns a file with access that may do everything, for people.
func (w *World) AdminKubeconfig() string { return filepath.Join(w.dir, "admin.kubeconfig") }

func (w *World) caFile() string { return filepath.Join(w.dir, "cloud-ca.pem") }
