package k8s_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/mcsps/rds-autopilot/k8s"
)

// replica is one process that wants to lead.
type replica struct {
	started chan struct{} // closed when it leads
	ended   chan error    // what Lead returned
	leading atomic.Bool   // the gauge
	stop    context.CancelFunc
}

const leaseSeconds = 6

func replicaOf(t *testing.T, c *k8s.Cluster, namespace string, work func(context.Context)) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{started: make(chan struct{}), ended: make(chan error, 1), stop: cancel}
	lease := k8s.Lease{
		Namespace: namespace, Duration: leaseSeconds * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: 200 * time.Millisecond,
		OnChange: func(leading bool) { r.leading.Store(leading) },
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

func untilDone(ctx context.Context) { <-ctx.Done() }

func within(t *testing.T, what string, d time.Duration, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(d):
		t.Fatalf("waited %v in vain until %s", d, what)
	}
}

func outcome(t *testing.T, r *replica) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(20 * time.Second):
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
	return client.CoordinationV1().Leases(ownNamespace)
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
	first := replicaOf(t, c, ownNamespace, func(ctx context.Context) {
		working.Add(1)
		<-ctx.Done()
		<-finish
		working.Add(-1)
	})
	within(t, "the first leads", 20*time.Second, first.started)
	if !first.leading.Load() {
		t.Error("the gauge does not say so")
	}
	overlap := make(chan int32, 1)
	second := replicaOf(t, c, ownNamespace, func(ctx context.Context) {
		overlap <- working.Load()
		<-ctx.Done()
	})
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
	// Without a release it would take what is left of the lease.
	within(t, "the second leads", leaseSeconds*time.Second/2, second.started)
	if n := <-overlap; n != 0 {
		t.Error("two at work")
	}
	if err := outcome(t, first); err != nil || first.leading.Load() {
		t.Errorf("the first: %v, gauge %v", err, first.leading.Load())
	}
	second.stop()
	if err := outcome(t, second); err != nil {
		t.Errorf("the second: %v", err)
	}
}

func TestLeaderThatLosesItsLeaseStops(t *testing.T) {
	c := connect(t)
	r := replicaOf(t, c, ownNamespace, untilDone)
	within(t, "it leads", 20*time.Second, r.started)
	stolen := fmt.Sprintf(`{"spec":{"holderIdentity":"someone-else","leaseDurationSeconds":60,"renewTime":%q}}`,
		time.Now().UTC().Format(metav1.RFC3339Micro))
	if _, err := leases(t).Patch(t.Context(), "rds-autopilot", types.MergePatchType, []byte(stolen), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := outcome(t, r); !errors.Is(err, k8s.ErrLeaseLost) {
		t.Errorf("error is %v", err)
	}
	if r.leading.Load() {
		t.Error("the gauge says that it leads")
	}

	waiting := replicaOf(t, c, ownNamespace, untilDone)
	waiting.stop()
	if err := outcome(t, waiting); err != nil {
		t.Errorf("one that ends before it leads: %v", err)
	}
	select {
	case <-waiting.started:
		t.Error("it led")
	default:
	}
	if err := leases(t).Delete(t.Context(), "rds-autopilot", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestLeaderWhoseWorkIsThroughGivesTheLeaseUp(t *testing.T) {
	c := connect(t)
	if err := outcome(t, replicaOf(t, c, ownNamespace, func(context.Context) {})); err != nil {
		t.Fatal(err)
	}
	next := replicaOf(t, c, ownNamespace, untilDone)
	within(t, "the next leads", leaseSeconds*time.Second/2, next.started)
}
