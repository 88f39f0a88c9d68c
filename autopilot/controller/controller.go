package controller

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

const (
	workers      = 64              // databases at a time; each mostly waits for the cloud
	roundLimit   = 2 * time.Minute // for one database, arming included
	retryAtFirst = 500 * time.Millisecond
	retryAtMost  = 2 * time.Minute
	sweepJitter  = 0.1 // of the interval: replicas of other clusters share the cloud's limits
	sweepAtLeast = 200 * time.Millisecond
	listedFor    = time.Second // a listing serves all who ask within it
)

// Options are what a Controller needs.
type Options struct {
	Cluster Cluster
	Cloud   Cloud
	Arming  Arming
	Mode    v1alpha1.Mode // the upper bound for every database
	Sweep   time.Duration // between two sweeps
	Recheck time.Duration // the next look while an instance is busy or a change is pending
	// MaxFlavorChanges is how many flavors may be changing at a time in the cluster.
	MaxFlavorChanges int
	Log              *zap.Logger
	Reg              prometheus.Registerer
	Now              func() time.Time
	// Chance is a number from 0 to 1 at each call, for the sweep's jitter; nil is any.
	Chance func() float64
}

// Key names a database: the namespace and name that an Rds and its autopilot share.
type Key struct{ Namespace, Name string }

// Controller is the loop. It works while Run runs, on the leader.
type Controller struct {
	Options
	meters *meters
	words  words
	brake  brake

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[Key] // nil while not leading
	armed map[Key]order                             // when arming was last found in order
	swept map[Key]time.Time                         // begin of the sweep that a waiting round is for
	told  map[types.UID]bool                        // who was told of the operator's own autopilot

	rounds atomic.Int64 // under way
}

// New returns a Controller.
func New(o Options) *Controller {
	if o.Chance == nil {
		o.Chance = rand.Float64
	}
	c := &Controller{Options: o, armed: make(map[Key]order), swept: make(map[Key]time.Time), told: make(map[types.UID]bool), words: words{last: make(map[Key]v1alpha1.Switch)}, brake: brake{held: make(map[Key]time.Time)}}
	c.meters = newMeters(o.Reg, o.Cluster, c.waiting, o.Now)
	return c
}

// RdsChanged tells of a change of an Rds; old or now is nil where it was added or deleted. It is told to every replica.
func (c *Controller) RdsChanged(old, now *otcv1.Rds) {
	of := now
	if of == nil {
		of = old
	}
	key := Key{of.Namespace, of.Name}
	if a, known := c.Cluster.Autopilot(key.Namespace, key.Name); now == nil || !known || a.Status.Switch != spoken(now) {
		c.words.hear(key, now) // else it is in the status already
	}
	c.look(key)
	if now == nil || now.Status.ID == "" || old != nil && old.Status.ID == now.Status.ID {
		return
	}
	for _, other := range c.Cluster.RdsByInstance(now.Status.ID) { // who has this id too is no longer sure of it
		c.look(Key{other.Namespace, other.Name})
	}
}

// AutopilotChanged tells of a change of an RdsAutopilot. It is told to every replica. A change that is nothing but our
// own write to the status starts no new round.
func (c *Controller) AutopilotChanged(old, now *v1alpha1.RdsAutopilot, own bool) {
	of := now
	if of == nil {
		of = old
	}
	key := Key{of.Namespace, of.Name}
	if now != nil {
		c.words.kept(key, now.Status.Switch)
	}
	if !own {
		c.look(key)
	}
}

func (c *Controller) look(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil {
		delete(c.swept, k) // something happened: listings of before do not do
		c.queue.Add(k)
	}
}

// lookFor has a database looked at for a sweep, for which the sweep's own listings are new enough.
func (c *Controller) lookFor(k Key, sweep time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil {
		c.swept[k] = sweep
		c.queue.Add(k)
	}
}

// taken says how new a listing must be for the round that begins now, and whether it is for a sweep.
func (c *Controller) taken(k Key) (notBefore time.Time, sweep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	begin, sweep := c.swept[k]
	delete(c.swept, k)
	if sweep {
		return begin, true
	}
	return c.Now().Add(-listedFor), false
}

// waiting is how many databases wait to be looked at, or are being looked at.
func (c *Controller) waiting() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.rounds.Load()
	if c.queue != nil {
		n += int64(c.queue.Len())
	}
	return float64(n)
}

// Run works until the context ends. It begins with a sweep: what happened while nobody led is seen then.
func (c *Controller) Run(ctx context.Context) {
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[Key](retryAtFirst, retryAtMost))
	c.mu.Lock()
	c.queue = queue
	clear(c.armed) // others may have led meanwhile
	clear(c.swept)
	c.mu.Unlock()

	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			for c.next(ctx, queue) {
			}
		})
	}
	c.sweeps(ctx)
	c.mu.Lock()
	c.queue = nil
	c.mu.Unlock()
	queue.ShutDown()
	done.Wait()
}

func (c *Controller) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Key]) bool {
	key, stop := queue.Get()
	if stop {
		return false
	}
	c.rounds.Add(1)
	defer c.rounds.Add(-1) // after Done, which may put the key back into the queue: it waits all the while
	defer queue.Done(key)
	if ctx.Err() != nil {
		return true // drain
	}
	round, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	again, err := c.reconcile(round, key)
	switch {
	case errors.Is(err, autopilot.ErrConflict), errors.Is(err, autopilot.ErrGone):
		queue.AddRateLimited(key) // somebody else wrote: decide anew on what they wrote
	case err != nil && ctx.Err() == nil:
		c.Log.Warn("round failed", zap.String("namespace", key.Namespace), zap.String("name", key.Name), zap.Error(err))
		queue.AddRateLimited(key)
	default:
		queue.Forget(key)
		if again > 0 {
			queue.AddAfter(key, again)
		}
	}
	return true
}
