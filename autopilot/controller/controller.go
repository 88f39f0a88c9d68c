// SPDX-License-Identifier: Apache-2.0

// Package controller is the leader's loop. A round handles one database: it observes the cloud, lets the domain
// decide, stores the intent, patches the Rds and stores the outcome. A second queue creates and removes the alarm
// rules. A sweep checks every database at an interval, so that an alarm is acted on even if its message is lost.
//
// The package must not import HTTP, Kubernetes clients or the cloud's SDK. ports.go declares what it needs from them.
package controller

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// workers is the number of parallel rounds of each queue. It is high because a round mostly waits for the cloud.
	workers = 64
	// roundLimit is 30 minutes because a list takes minutes at a low --cloud-rate. Each single call has its own
	// timeout.
	roundLimit = 30 * time.Minute
	// minRetry is how long the first retry of a failed round waits. The cache shows the conflicting write by then.
	minRetry = 500 * time.Millisecond
	// maxRetry is two minutes so that a database is checked soon after the cloud answers again.
	maxRetry = 2 * time.Minute
	// sweepJitter is a share of the interval. Clusters that share the cloud's limits must not sweep at the same time.
	sweepJitter = 0.1
	// minSweep keeps a very short --sweep-interval from becoming a busy loop.
	minSweep = 200 * time.Millisecond
)

// Options configure a Controller.
type Options struct {
	Kube  Kubernetes
	Cloud Cloud

	Mode    v1alpha1.Mode // upper bound for every database
	Allowed autopilot.Allowed
	Sweep   time.Duration // between two sweeps
	Recheck time.Duration // until the next check while an instance is busy or a change is pending
	// MaxFlavorChanges is how many flavor changes may be in progress in the cluster at the same time.
	MaxFlavorChanges int
	Log              *zap.Logger
	Reg              prometheus.Registerer
	Now              func() time.Time
	// Chance returns a number from 0 to 1 for the jitter of the sweep. If it is nil, rand.Float64 is used.
	Chance func() float64
}

// Key names a database: the namespace and name that an Rds and its autopilot share.
type Key struct{ Namespace, Name string }

// Controller is the leader's loop. It starts rounds only while Run runs.
type Controller struct {
	options  Options
	meters   *meters
	switches switchTracker
	limiter  *flavorLimiter

	decideMarks, armMarks *marks

	keeper topicKeeper

	mu       sync.Mutex
	queues   *queues         // nil if this replica does not lead
	memories map[Key]*memory // of the databases that have an RdsAutopilot

	deciding, arming progress
}

// progress shows whether the rounds of a queue go on.
type progress struct {
	running atomic.Int64 // rounds
	moved   atomic.Int64 // when a round last began or ended, in Unix nanoseconds
}

// New returns a Controller.
func New(o Options) *Controller {
	if o.Chance == nil {
		o.Chance = rand.Float64
	}
	c := &Controller{
		options: o, limiter: newFlavorLimiter(o.Kube), decideMarks: newMarks(), armMarks: newMarks(),
		keeper: topicKeeper{news: make(chan struct{}, 1)}, memories: make(map[Key]*memory),
		switches: switchTracker{last: make(map[Key]v1alpha1.Switch)},
	}
	c.meters = newMeters(c)
	return c
}

// TargetChanged handles a watch event of an Rds. old is nil if it was added, now is nil if it was deleted. It runs on
// every replica.
func (c *Controller) TargetChanged(old, now *autopilot.Target) {
	target := cmp.Or(now, old)
	key := Key{target.Namespace, target.Name}
	c.switches.observe(key, now)
	if c.isOwnPatch(key, old, now) {
		return
	}
	c.enqueue(key)
}

// isOwnPatch reports whether the Rds has only changed to what our last patch requests. The round that has patched it
// checks it again after Options.Recheck, so no other round is needed.
func (c *Controller) isOwnPatch(key Key, old, now *autopilot.Target) bool {
	if old == nil || now == nil {
		return false
	}
	before := *old
	before.ResourceVersion, before.Wanted = now.ResourceVersion, now.Wanted
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memories[key]
	if m == nil || m.patched == nil || before != *now {
		return false
	}
	kind, to := m.patched.Kind, m.patched.To
	return now.Wanted.Of(kind) == to && old.Wanted.Of(kind) != to
}

// AutopilotChanged handles a watch event of an RdsAutopilot, as TargetChanged does. It starts no round if only the
// leader's own part of the status has changed.
func (c *Controller) AutopilotChanged(old, now *v1alpha1.RdsAutopilot) {
	subject := cmp.Or(now, old)
	key := Key{subject.Namespace, subject.Name}
	if now == nil {
		c.drop(key)
		c.switches.deleted(key, old, c.options.Kube.Target(key.Namespace, key.Name))
		c.enqueue(key)
		c.enqueueArming(key)
		return
	}
	// An event may be older than the last switch. The leader itself knows what it has stored.
	if c.leading() == nil && (old == nil || old.Status.Switch != now.Status.Switch) {
		c.switches.stored(key, now.Status.Switch)
	}
	if ownWriteOnly(old, now) {
		return
	}
	c.enqueue(key)
}

// ownWriteOnly reports whether two versions of an object differ only in the leader's own part of the status.
func ownWriteOnly(old, now *v1alpha1.RdsAutopilot) bool {
	if old == nil || old.UID != now.UID {
		return false
	}
	before, after := old.ObjectMeta, now.ObjectMeta
	before.ResourceVersion, after.ResourceVersion = "", ""
	return equality.Semantic.DeepEqual(before, after) && equality.Semantic.DeepEqual(old.Spec, now.Spec) &&
		equality.Semantic.DeepEqual(old.Status.Intake, now.Status.Intake)
}

func (c *Controller) waiting() float64 {
	n := c.deciding.running.Load() + c.arming.running.Load()
	if q := c.leading(); q != nil {
		n += int64(q.decide.Len() + q.arm.Len())
	}
	return float64(n)
}

// idle returns for how many seconds no round of a queue has begun or ended although databases wait for one.
func (c *Controller) idle(p *progress, queue func(*queues) workqueue.TypedRateLimitingInterface[Key]) float64 {
	q := c.leading()
	if q == nil || queue(q).Len() == 0 && p.running.Load() == 0 {
		return 0
	}
	return max(0, c.options.Now().Sub(time.Unix(0, p.moved.Load())).Seconds())
}

// Run works until the context ends. It starts with a sweep, because alarms may have come while no replica led.
func (c *Controller) Run(ctx context.Context) {
	var done sync.WaitGroup
	q := newQueues(c.decideMarks)
	q.background = func(work func(context.Context)) { done.Go(func() { work(ctx) }) }
	c.decideMarks.clear()
	c.armMarks.clear()
	c.limiter.clear()
	c.mu.Lock()
	c.queues = q
	for _, m := range c.memories {
		m.ensured, m.cleared = nil, time.Time{} // another replica may have led meanwhile
	}
	c.mu.Unlock()

	start := func(n int, queue workqueue.TypedRateLimitingInterface[Key], p *progress,
		work func(context.Context, Key) (time.Duration, error)) {
		for range n {
			done.Go(func() {
				for c.next(ctx, queue, p, work) {
				}
			})
		}
	}
	start(workers, q.decide, &c.deciding, c.reconcile)
	start(workers, q.arm, &c.arming, c.arm)
	done.Go(func() { c.keepTopic(ctx) })
	c.sweeps(ctx)
	c.mu.Lock()
	c.queues = nil
	c.mu.Unlock()
	q.shutDown()
	done.Wait()
}

// next runs one round of a queue and enqueues the database again when the round requests it. It returns false after
// shutdown.
func (c *Controller) next(
	ctx context.Context, queue workqueue.TypedRateLimitingInterface[Key], p *progress,
	work func(context.Context, Key) (time.Duration, error),
) bool {
	key, stop := queue.Get()
	if stop {
		return false
	}
	p.running.Add(1)
	p.moved.Store(c.options.Now().UnixNano())
	defer func() { p.moved.Store(c.options.Now().UnixNano()) }()
	defer p.running.Add(-1) // after Done, which may put the key back into the queue, so that waiting never counts too few
	defer queue.Done(key)
	if ctx.Err() != nil {
		return true // empty the queue
	}
	round, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	requeueAfter, err := safely(round, key, work)
	if errors.Is(err, autopilot.ErrGone) { // a write has not found it, and this read removes it from the cache
		_, _ = c.options.Kube.LiveAutopilot(round, key.Namespace, key.Name)
	}
	if _, ok := c.options.Kube.Autopilot(key.Namespace, key.Name); !ok {
		c.drop(key) // it was deleted while the round ran
	}
	switch {
	case errors.Is(err, autopilot.ErrConflict), errors.Is(err, autopilot.ErrGone):
		queue.AddRateLimited(key) // another writer was faster, or the cache was old: decide again
	case err != nil && ctx.Err() == nil:
		c.reportFailure(key, err)
		queue.AddRateLimited(key)
		if requeueAfter > 0 {
			queue.AddAfter(key, requeueAfter) // the earlier of both counts
		}
	default:
		queue.Forget(key)
		if requeueAfter > 0 {
			queue.AddAfter(key, requeueAfter)
		}
	}
	return true
}

// memory is what this process remembers about one database. Without it there are extra calls, a repeated event, and the
// larger of two sizes counts for some minutes.
type memory struct {
	ensured *v1alpha1.DesiredAlarms // of the last Ensure of this leader; nil if it has failed, or there was none
	cleared time.Time               // when this process has removed the rules; zero after Ensure
	patched *v1alpha1.Change        // our last patch of the Rds that the API server may have accepted
	stale   bool                    // the last round ended in a conflict, so the cache may still be old
	warned  types.UID               // Rds with an event about the operator's own autopilot

	volumeGB         int       // at the last check
	seen, formerSeen time.Time // when a check last saw this size, and the one before
}

// remember calls change with the memory of a database, and creates the memory if there is none.
func (c *Controller) remember(key Key, change func(*memory)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memories[key]
	if m == nil {
		m = &memory{}
		c.memories[key] = m
	}
	change(m)
}

// recall returns a copy of a database's memory, or the zero value.
func (c *Controller) recall(key Key) memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.memories[key]; m != nil {
		return *m
	}
	return memory{}
}

func (c *Controller) drop(key Key) {
	c.limiter.drop(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.memories, key)
}
