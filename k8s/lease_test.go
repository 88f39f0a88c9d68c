package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leaseHolder is an API server that keeps one lease.
type leaseHolder struct {
	mu     sync.Mutex
	lease  *coordinationv1.Lease
	writes int
}

// client is a replica's connection to it, until that is cut.
func (s *leaseHolder) client(t *testing.T) (c *Cluster, cut func()) {
	t.Helper()
	var off atomic.Bool
	c, err := connect(t, func(r *http.Request) (int, string) {
		if off.Load() {
			return 0, ""
		}
		return s.answer(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, func() { off.Store(true) }
}

func (s *leaseHolder) answer(r *http.Request) (int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && r.URL.Path != "/apis/coordination.k8s.io/v1/namespaces/ns/leases/rds-autopilot":
		return empty(r)
	case r.Method == http.MethodGet && s.lease == nil:
		return 404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	case r.Method != http.MethodGet:
		wanted := &coordinationv1.Lease{}
		if err := json.NewDecoder(r.Body).Decode(wanted); err != nil {
			return 400, err.Error()
		}
		if s.lease != nil && wanted.ResourceVersion != s.lease.ResourceVersion {
			return 409, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`
		}
		s.write(wanted)
	}
	text, err := json.Marshal(s.lease)
	if err != nil {
		return 500, err.Error()
	}
	return 200, string(text)
}

func (s *leaseHolder) write(lease *coordinationv1.Lease) {
	s.writes++
	lease.ResourceVersion = strconv.Itoa(s.writes)
	s.lease = lease
}

// renewed is when the lease was renewed last.
func (s *leaseHolder) renewed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.Spec.RenewTime.Time
}

// steal gives the lease to somebody else for an hour.
func (s *leaseHolder) steal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	stolen := s.lease.DeepCopy()
	now := metav1.NowMicro()
	stolen.Spec.HolderIdentity, stolen.Spec.LeaseDurationSeconds, stolen.Spec.RenewTime = new("someone-else"), new(int32(3600)), &now
	s.write(stolen)
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
		l.outcome <- c.Lead(ctx, Lease{Namespace: "ns", OnChange: l.leading.Store}, func(ctx context.Context) {
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
			server := &leaseHolder{}
			c, cut := server.client(t)
			defer c.events.shutdown()
			other, _ := server.client(t)
			defer other.events.shutdown()
			l := lead(t.Context(), c)
			<-l.begun
			ctx, cancel := context.WithCancel(t.Context())
			next := lead(ctx, other)
			time.Sleep(time.Minute)
			cut()
			at := time.Now()
			if held := (<-l.ended).Sub(server.renewed()); held >= (Lease{}).withDefaults().Duration {
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
		server := &leaseHolder{}
		c, _ := server.client(t)
		defer c.events.shutdown()
		l := lead(t.Context(), c)
		<-l.begun
		if !l.leading.Load() {
			t.Error("the gauge does not say that it leads")
		}
		server.steal()
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
