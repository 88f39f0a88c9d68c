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

// leaseHolder is an API server that keeps one lease, until it is cut off.
type leaseHolder struct {
	mu     sync.Mutex
	lease  *coordinationv1.Lease
	writes int
	cutOff bool
}

func (s *leaseHolder) answer(r *http.Request) (int, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cutOff:
		return 0, ""
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

// cut lets nothing through any more, and returns when the lease was renewed last.
func (s *leaseHolder) cut() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutOff = true
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
			c, err := connect(t, server.answer)
			if err != nil {
				t.Fatal(err)
			}
			defer c.events.shutdown()
			l := lead(t.Context(), c)
			<-l.begun
			time.Sleep(time.Minute)
			renewed := server.cut()
			if held := (<-l.ended).Sub(renewed); held >= (Lease{}).withDefaults().Duration {
				t.Errorf("it led for %s without renewing its lease", held)
			}
			if err := <-l.outcome; !errors.Is(err, ErrLeaseLost) || l.leading.Load() {
				t.Errorf("Lead returns %v, and it leads: %t", err, l.leading.Load())
			}
		})
	}
}

func TestALeaderThatLosesItsLeaseStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &leaseHolder{}
		c, err := connect(t, server.answer)
		if err != nil {
			t.Fatal(err)
		}
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
