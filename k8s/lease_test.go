// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// leases is a Kubernetes in memory with a client for the lease of the leader.
type leases struct {
	*simkube.Server
	coordinationv1client.LeaseInterface
}

func newLeases(t *testing.T) leases {
	t.Helper()
	server, err := simkube.New(simkube.Options{CRDs: []string{"../deploy/crds/rds.yaml", "../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}})
	must(t, err)
	client, err := coordinationv1client.NewForConfig(server.Config())
	must(t, err)
	return leases{server, client.Leases(metav1.NamespaceDefault)}
}

// cuttable is a connection that gets no answers while isCut is set.
type cuttable struct {
	next  http.RoundTripper
	isCut *atomic.Bool
}

func (w cuttable) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.isCut.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return w.next.RoundTrip(r)
}

// connect returns the connection of a replica, and a function that cuts it.
func (s leases) connect(t *testing.T) (c *Cluster, cut func()) {
	t.Helper()
	var isCut atomic.Bool
	config := s.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return cuttable{next, &isCut} })
	c, err := Connect(t.Context(), config, Options{Version: "test", Labels: map[string]string{"team": "db"}, Log: zap.NewNop()})
	must(t, err)
	return c, func() { isCut.Store(true) }
}

// spec returns the lease as stored.
func (s leases) spec(t *testing.T) coordinationv1.LeaseSpec {
	t.Helper()
	lease, err := s.Get(t.Context(), self, metav1.GetOptions{})
	if err != nil || lease.Labels["team"] != "db" {
		t.Fatal(err, lease.Labels)
	}
	return lease.Spec
}

// term is the time of one replica as the leader.
type term struct {
	begun, ended chan time.Time
	outcome      chan error // the result of Lead
	leading      atomic.Bool
}

// lead starts a replica. Its work ends with ctx and, if finish is not nil, not before finish is closed.
func lead(ctx context.Context, c *Cluster, lease Lease, finish <-chan struct{}) *term {
	l := &term{begun: make(chan time.Time, 1), ended: make(chan time.Time, 1), outcome: make(chan error, 1)}
	lease.Namespace = metav1.NamespaceDefault
	lease.OnChange = l.leading.Store
	go func() {
		l.outcome <- c.Lead(ctx, lease, func(ctx context.Context) {
			l.begun <- time.Now()
			<-ctx.Done()
			if finish != nil {
				<-finish
			}
			l.ended <- time.Now()
		})
	}()
	return l
}

func TestLeaderStopsBeforeItsLeaseExpiresWhenItIsCutOff(t *testing.T) {
	for range 20 { // at another moment between two renewals each time
		synctest.Test(t, func(t *testing.T) {
			server := newLeases(t)
			c, cut := server.connect(t)
			defer c.Close()
			other, _ := server.connect(t)
			defer other.Close()
			l := lead(t.Context(), c, DefaultLease(), nil)
			<-l.begun
			ctx, cancel := context.WithCancel(t.Context())
			next := lead(ctx, other, DefaultLease(), nil)
			time.Sleep(time.Minute)
			cut()
			at, renewed := time.Now(), server.spec(t).RenewTime.Time // soon the next one renews the lease
			if held := (<-l.ended).Sub(renewed); held >= DefaultLease().Duration {
				t.Errorf("it led for %s without renewing its lease", held)
			}
			if err := <-l.outcome; !errors.Is(err, ErrLeaseLost) || l.leading.Load() {
				t.Errorf("Lead returns %v, and it leads: %t", err, l.leading.Load())
			}
			if took := (<-next.begun).Sub(at); took > 20*time.Second {
				t.Errorf("the next one leads after %s", took)
			}
			cancel()
			if err := <-next.outcome; err != nil {
				t.Errorf("the next one ends with %v", err)
			}
		})
	}
}

// Lead waits for its work in a way that stops the clock of a bubble, so this test is in real time.
func TestLeaderKeepsItsLeaseUntilItsWorkIsDone(t *testing.T) {
	t.Parallel()
	server := newLeases(t)
	c, _ := server.connect(t)
	defer c.Close()
	firstCtx, stopFirst := context.WithCancel(t.Context())
	secondCtx, stopSecond := context.WithCancel(t.Context())
	defer stopSecond()
	finish := make(chan struct{})
	lease := DefaultLease()
	lease.Pod, lease.RetryPeriod = "pod", 10*time.Millisecond
	first := lead(firstCtx, c, lease, finish)
	<-first.begun
	second := lead(secondCtx, c, lease, nil)
	stopFirst()
	for range 3 {
		for last := server.spec(t).RenewTime.Time; !server.spec(t).RenewTime.After(last); {
			time.Sleep(time.Millisecond)
		}
	}
	if !first.leading.Load() || second.leading.Load() {
		t.Errorf("the first leads: %t, the second: %t", first.leading.Load(), second.leading.Load())
	}
	close(finish)
	if err := <-first.outcome; err != nil || first.leading.Load() {
		t.Errorf("the first ends with %v, and it leads: %t", err, first.leading.Load())
	}
	if ended, begun := <-first.ended, <-second.begun; begun.Before(ended) {
		t.Errorf("the first ends at %s, and the second leads from %s", ended, begun)
	}
	stopSecond()
	if err := <-second.outcome; err != nil || *server.spec(t).HolderIdentity != "" {
		t.Errorf("the second ends with %v, and the lease has %+v", err, server.spec(t))
	}
}
