// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// newArmedFleet returns a fleet with a running service and one armed database, default/db.
func newArmedFleet(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, simcloud.Settings{})
	f.start(flags{sweep: 2 * time.Minute})
	f.database("default", "db", instance(twoVCPUs, 100, 40))
	time.Sleep(20 * time.Minute)
	return f
}

// runDoctor runs doctor in the cluster of the fleet, as a person would, and returns the result of each check. If a
// check reports several results, a failed one counts.
func (f *fleet) runDoctor(ctx context.Context, name string, change func(*doctor.Options)) map[string]doctor.Result {
	f.t.Helper()
	public, err := url.Parse(f.public + "/smn")
	f.must(err)
	with := app.Defaults()
	with.PublicURL, with.Env, with.Transport, with.CloudRate = public, f.env(), f.sim, 1000
	with.Version, with.Log = "test", zap.NewNop()
	with.SMNClient, with.LeaseNamespace, with.CertHosts = smnClient(f.sim), "default", []string{f.sim.CertHost()}
	results := map[string]doctor.Result{}
	o := doctor.Options{
		Options: with, Kube: f.kube.Config(), Namespace: "default", Name: name, Wait: 20 * time.Minute,
		Report: func(r doctor.Result) {
			if last, twice := results[r.Check]; !twice || last.State != doctor.Failed {
				results[r.Check] = r
			}
		},
		LookUp: resolvesTo("80.158.1.1"),
		Web:    &http.Client{Transport: f.routes},
	}
	if change != nil {
		change(&o)
	}
	doctor.Run(ctx, o)
	return results
}

// resolvesTo returns a resolver that knows this address for every name.
func resolvesTo(address string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(address)}, nil
	}
}

// withApplyCloud sets --allow-apply=Cloud.
func withApplyCloud(o *doctor.Options) {
	o.Allowed.Apply, o.Allowed.Instances = v1alpha1.ApplyCloud, []string{"*/*"}
}

// checksIn returns the checks that ended in one of these states, ordered by name.
func checksIn(results map[string]doctor.Result, states ...doctor.State) (checks []string) {
	for id, r := range results {
		if slices.Contains(states, r.State) {
			checks = append(checks, id)
		}
	}
	slices.Sort(checks)
	return checks
}

// checkDoctorLeftNothing fails if an object of doctor is left in the cloud or in the cluster.
func (f *fleet) checkDoctorLeftNothing() {
	f.t.Helper()
	var names []string
	for _, x := range f.sim.Topics() {
		names = append(names, x.Name)
	}
	for _, x := range f.sim.Rules() {
		names = append(names, x.Name)
	}
	for _, a := range f.autopilots() {
		names = append(names, a.Name)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "autopilot-doctor") {
			f.t.Errorf("%s is left", name)
		}
	}
}

// doctorHost is the host of the public URL that leads to doctor --listen.
const doctorHost = "doctor.example.com"

// withListen sets --listen, so that doctor receives the messages itself.
func (f *fleet) withListen(o *doctor.Options) {
	l := &pipeListener{accept: make(chan net.Conn), closed: make(chan struct{})}
	transport := &http.Transport{DialContext: l.dial, DisableKeepAlives: true}
	f.routes.mu.Lock()
	defer f.routes.mu.Unlock()
	o.Listen, f.routes.doctor = l, transport
	o.PublicURL = &url.URL{Scheme: "http", Host: doctorHost, Path: "/smn"}
}

// pipeListener is a listener without a network.
type pipeListener struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipeListener) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accept <- theirs:
		return ours, nil
	case <-p.closed:
	case <-ctx.Done():
	}
	return nil, net.ErrClosed
}
