// SPDX-License-Identifier: Apache-2.0

package k8s

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
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

// leases is a Kubernetes in memory, and what others do to its lease.
type leases struct {
	*simkube.Server
	coordinationv1client.LeaseInterface
}

func newLeases(t *testing.T) leases {
	t.Helper()
	server, err := simkube.New(simkube.Options{CRDs: []string{"../deploy/crds/rds.yaml", "../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := coordinationv1client.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return leases{server, client.Leases(metav1.NamespaceDefault)}
}

// wire is a connection that may be cut: then nothing is answered.
type wire struct {
	next http.RoundTripper
	off  *atomic.Bool
}

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.off.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return w.next.RoundTrip(r)
}

// client is a replica's connection, until that is cut.
func (s leases) client(t *testing.T) (c *Cluster, cut func()) {
	t.Helper()
	var off atomic.Bool
	config := s.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return wire{next, &off} })
	c, err := Connect(t.Context(), config, Options{Version: "test", Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() { off.Store(true) }
}

func (s leases) lease(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	lease, err := s.Get(t.Context(), self, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// steal gives the lease to somebody else for an hour.
func (s leases) steal(t *testing.T) {
	t.Helper()
	lease, now := s.lease(t), metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = new("someone-else"), new(int32(3600)), &now
	if _, err := s.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// term is one replica's time as the leader.
type term struct {
	begun, ended chan time.Time
	outcome      chan error // what Lead returned
	leading      atomic.Bool
}

func lead(ctx context.Context, c *Cluster) *term {
	l := &term{begun: make(chan time.Time, 1), ended: make(chan time.Time, 1), outcome: make(chan error, 1)}
	go func() {
		l.outcome <- c.Lead(ctx, Lease{Namespace: metav1.NamespaceDefault, Name: self, OnChange: l.leading.Store}, func(ctx context.Context) {
			l.begun <- time.Now()
			<-ctx.Done()
			l.ended <- time.Now()
		})
	}()
	return l
}

func TestALeaderThatIsCutOffStopsBeforeItsLeaseRunsOut(t *testing.T) {
	for range 20 { // at another moment between two renewals each time
		synctest.Test(t, func(t *testing.T) {
			server := newLeases(t)
			c, cut := server.client(t)
			defer c.Close()
			other, _ := server.client(t)
			defer other.Close()
			l := lead(t.Context(), c)
			<-l.begun
			ctx, cancel := context.WithCancel(t.Context())
			next := lead(ctx, other)
			time.Sleep(time.Minute)
			cut()
			at := time.Now()
			if held := (<-l.ended).Sub(server.lease(t).Spec.RenewTime.Time); held >= (Lease{}).withDefaults().Duration {
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

func TestALeaderThatLosesItsLeaseStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newLeases(t)
		c, _ := server.client(t)
		defer c.Close()
		l := lead(t.Context(), c)
		<-l.begun
		if !l.leading.Load() {
			t.Error("the gauge does not say that it leads")
		}
		server.steal(t)
		if err := <-l.outcome; !errors.Is(err, ErrLeaseLost) || l.leading.Load() {
			t.Errorf("Lead returns %v, and it leads: %t", err, l.leading.Load())
		}

		ctx, cancel := context.WithCancel(t.Context())
		waiting := lead(ctx, c)
		time.Sleep(time.Minute)
		cancel()
		if err := <-waiting.outcome; err != nil || len(waiting.begun) > 0 {
			t.Errorf("one that ends before it leads: %v, led %d times", err, len(waiting.begun))
		}
	})
}

func TestALeaseNamesItsPod(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	c, _ := newLeases(t).client(t)
	defer c.Close()
	for pod, want := range map[string]string{"rds-autopilot-7d9f5-x2k4q": "rds-autopilot-7d9f5-x2k4q", "": host} {
		lock, err := c.lock(Lease{Namespace: metav1.NamespaceDefault, Name: self, Pod: pod}.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(lock.Identity(), identitySeparator); got != want {
			t.Errorf("the pod %q holds it as %q", pod, got)
		}
	}
}
