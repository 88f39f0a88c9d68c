// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/mcsps/rds-autopilot/k8s"
)

// replica is one process that wants to lead.
type replica struct {
	started chan struct{} // closed when it leads
	ended   chan error    // what Lead returned
	leading atomic.Bool   // the gauge
	leader  atomic.Value  // string: the pod that leads, as it sees it
	stop    context.CancelFunc
}

func replicaOf(t *testing.T, c *k8s.Cluster, namespace string, work func(context.Context)) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{started: make(chan struct{}), ended: make(chan error, 1), stop: cancel}
	lease := k8s.Lease{
		Namespace: namespace, Name: "rds-autopilot", Duration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 200 * time.Millisecond,
		OnChange: func(leading bool) { r.leading.Store(leading) },
		OnLeader: func(pod string) { r.leader.Store(pod) },
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		r.ended <- c.Lead(ctx, lease, func(ctx context.Context) {
			close(r.started)
			work(ctx)
		})
	}()
	t.Cleanup(func() { cancel(); <-exited })
	return r
}

func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited in vain until %s", what)
	}
}

func outcome(t *testing.T, r *replica) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(patience):
		t.Fatal("Lead does not return")
		return nil
	}
}

func leases(t *testing.T) coordinationv1client.LeaseInterface {
	t.Helper()
	client, err := kubernetes.NewForConfig(shared.Cluster(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	return client.CoordinationV1().Leases(ownNamespace(t))
}

func leaseOf(t *testing.T) (holder string, renewed time.Time) {
	t.Helper()
	lease, err := leases(t).Get(t.Context(), "rds-autopilot", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	return holder, lease.Spec.RenewTime.Time
}

func TestLeaderHandsOverOnceItsWorkIsDone(t *testing.T) {
	c := connect(t)
	var working atomic.Int32
	finish := make(chan struct{})
	finished := sync.OnceFunc(func() { close(finish) })
	defer finished()
	first := replicaOf(t, c, ownNamespace(t), func(ctx context.Context) {
		working.Add(1)
		<-ctx.Done()
		<-finish
		working.Add(-1)
	})
	within(t, "the first leads", first.started)
	if !first.leading.Load() {
		t.Error("the gauge does not say so")
	}
	overlap := make(chan int32, 1)
	second := replicaOf(t, c, ownNamespace(t), func(ctx context.Context) {
		overlap <- working.Load()
		<-ctx.Done()
	})
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "both know who leads", func() bool { return first.leader.Load() == host && second.leader.Load() == host })
	holder, renewed := leaseOf(t)
	first.stop()
	for range 3 { // it keeps the lease for as long as it is at work
		last := renewed
		eventually(t, "the lease is renewed", func() bool {
			var now string
			if now, renewed = leaseOf(t); now != holder {
				t.Fatalf("the lease went from %q to %q while the first is at work", holder, now)
			}
			return renewed.After(last)
		})
	}
	finished()
	if err := outcome(t, first); err != nil || first.leading.Load() {
		t.Errorf("the first: %v, gauge %v", err, first.leading.Load())
	}
	if now, _ := leaseOf(t); now == holder { // the second would wait until the lease runs out
		t.Error("the first has ended and holds the lease")
	}
	within(t, "the second leads", second.started)
	if n := <-overlap; n != 0 {
		t.Error("two at work")
	}
	second.stop()
	if err := outcome(t, second); err != nil {
		t.Errorf("the second: %v", err)
	}
}

func TestLeaderWhoseWorkIsThroughGivesTheLeaseUp(t *testing.T) {
	c := connect(t)
	if err := outcome(t, replicaOf(t, c, ownNamespace(t), func(context.Context) {})); err != nil {
		t.Fatal(err)
	}
	if holder, _ := leaseOf(t); holder != "" {
		t.Errorf("%s has ended and holds the lease", holder)
	}
}
