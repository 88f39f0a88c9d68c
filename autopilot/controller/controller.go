// SPDX-License-Identifier: Apache-2.0

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/ownwrites"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	workers      = 64               // databases at a time, for decisions and for arming; each mostly waits for the cloud
	roundLimit   = 30 * time.Minute // for one database: at a low --cloud-rate a listing takes minutes; each call has its own limit
	retryAtFirst = 500 * time.Millisecond
	retryAtMost  = 2 * time.Minute
	sweepJitter  = 0.1 // of the interval: replicas of other clusters share the cloud's limits
	sweepAtLeast = 200 * time.Millisecond
)

// Options are what a Controller needs.
type Options struct {
	Cache    Cache
	Store    Store
	Applier  Applier
	Changer  Changer
	Writers  Writers
	Recorder Recorder
	Cloud    Cloud
	Arming   Arming
	Mode     v1alpha1.Mode // the upper bound for every database
	Allowed  autopilot.Allowed
	Sweep    time.Duration // between two sweeps
	Recheck  time.Duration // the next look while an instance is busy or a change is pending
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
	meters   *meters
	switches switchTracker
	limiter  *flavorChangeLimiter

	// The cache may be behind what was just written.
	applied ownwrites.Map[Key, *autopilot.Target]
	patches patchesUnderWay
	intakes ownwrites.Map[Key, *metav1.ObjectMeta] // uid and version alone, of the receiver in this process

	decideMarks, armMarks *sweepMarks

	mu      sync.Mutex
	queues  *queues              // nil while not leading
	ensured map[Key]ensureRecord // when arming was last found in order
	unheard map[Key]time.Time    // since when a storage rule should have raised its alarm; see autopilot.Alarm
	percent map[string]Key       // by engine: whose percentage of storage is read, too; none if one has shown that it is percent
	warned  map[types.UID]bool   // Rds about whose own autopilot, the operator's, people were warned

	rounds, armings atomic.Int64 // under way
}

// New returns a Controller.
func New(o Options) *Controller {
	if o.Chance == nil {
		o.Chance = rand.Float64
	}
	c := &Controller{
		Options: o, limiter: newFlavorChangeLimiter(), decideMarks: newSweepMarks(), armMarks: newSweepMarks(),
		ensured: make(map[Key]ensureRecord), unheard: make(map[Key]time.Time), percent: make(map[string]Key), warned: make(map[types.UID]bool), switches: switchTracker{last: make(map[Key]v1alpha1.Switch)},
	}
	c.meters = newMeters(o.Reg, o.Cache, c.waiting, o.Now)
	return c
}

// TargetChanged takes in a change of an Rds; old or now is nil where it was added or deleted. It is called on every replica.
func (c *Controller) TargetChanged(old, now *autopilot.Target) {
	of := cmp.Or(now, old)
	key := Key{of.Namespace, of.Name}
	c.switches.observe(key, now)
	c.patches.takeIn(key, func() { c.targetChanged(key, old, now) })
}

func (c *Controller) targetChanged(key Key, old, now *autopilot.Target) {
	if now == nil {
		c.applied.Forget(key)
	} else if c.applied.Arrived(key, now) && old != nil && onlyWants(*old, *now) {
		return
	}
	c.enqueue(key)
	if now != nil && (old == nil || old.InstanceID != now.InstanceID) {
		c.enqueueOthers(now.InstanceID)
	}
}

// onlyWants reports whether two versions of an Rds differ in nothing but what the operator is asked for.
func onlyWants(old, now autopilot.Target) bool {
	old.ResourceVersion, old.Wanted = now.ResourceVersion, now.Wanted
	return old == now
}

// IntakeStored takes in what this process itself has stored of a message, and the cache has, before the watch tells of it: under load
// that is seconds later.
func (c *Controller) IntakeStored(stored *v1alpha1.RdsAutopilot) {
	key := Key{stored.Namespace, stored.Name}
	c.intakes.Keep(key, &metav1.ObjectMeta{UID: stored.UID, ResourceVersion: stored.ResourceVersion}) // nothing that holds the rest
	c.enqueue(key)
}

// AutopilotChanged takes in a change of an RdsAutopilot, as TargetChanged does. Neither object is altered, and both may lack changes,
// former volumes and decisions. A change that is
// nothing but our own write to the status starts no new round.
func (c *Controller) AutopilotChanged(old, now *v1alpha1.RdsAutopilot) {
	if now == nil {
		key := Key{old.Namespace, old.Name}
		c.limiter.forget(key)
		c.intakes.Forget(key)
		c.switches.observe(key, nil) // one that a person deletes is not made again by an earlier switch
		c.enqueue(key)
		return
	}
	key := Key{now.Namespace, now.Name}
	c.limiter.observe(now)
	c.switches.stored(key, now.Status.Switch)
	if ownWriteOnly(old, now) {
		return
	}
	if !c.intakes.Arrived(key, &now.ObjectMeta) { // else it was enqueued when it was stored
		c.enqueue(key)
	}
	if old != nil && old.Spec.InstanceID == now.Spec.InstanceID && old.Spec.Apply == now.Spec.Apply {
		return
	}
	c.enqueueOthers(now.Spec.InstanceID)
}

// enqueueOthers has everything looked at that has an instance: who else has it is no longer sure of it.
func (c *Controller) enqueueOthers(instanceID string) {
	if instanceID == "" {
		return
	}
	for _, other := range c.Cache.TargetsByInstance(instanceID) {
		c.enqueue(Key{other.Namespace, other.Name})
	}
}

// ownWriteOnly reports whether two versions of an object differ in nothing but what the leader itself writes to its status.
func ownWriteOnly(old, now *v1alpha1.RdsAutopilot) bool {
	if old == nil || old.UID != now.UID {
		return false
	}
	before, after := old.ObjectMeta, now.ObjectMeta
	before.ResourceVersion, after.ResourceVersion = "", ""
	return equality.Semantic.DeepEqual(before, after) && equality.Semantic.DeepEqual(old.Spec, now.Spec) &&
		equality.Semantic.DeepEqual(old.Status.Intake, now.Status.Intake)
}

// waiting is how many databases wait to be looked at, or are being looked at.
func (c *Controller) waiting() float64 {
	n := c.rounds.Load() + c.armings.Load()
	if q := c.leading(); q != nil {
		n += int64(q.decide.Len() + q.arm.Len())
	}
	return float64(n)
}

// Run works until the context ends. It begins with a sweep: what happened while nobody led is seen then.
func (c *Controller) Run(ctx context.Context) {
	q := newQueues(c.decideMarks)
	c.decideMarks.clear()
	c.armMarks.clear()
	c.mu.Lock()
	c.queues = q
	clear(c.ensured) // others may have led meanwhile
	c.mu.Unlock()

	var done sync.WaitGroup
	for range workers {
		done.Go(func() {
			for c.next(ctx, q.decide, &c.rounds, c.reconcile) {
			}
		})
	}
	for range workers {
		done.Go(func() {
			for c.next(ctx, q.arm, &c.armings, c.arm) {
			}
		})
	}
	c.sweeps(ctx)
	c.mu.Lock()
	c.queues = nil
	c.mu.Unlock()
	q.shutDown()
	done.Wait()
}

// next works on one database of a queue, and has it come again when its round says so. It is false at the end.
func (c *Controller) next(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Key], running *atomic.Int64, work func(context.Context, Key) (time.Duration, error)) bool {
	key, stop := queue.Get()
	if stop {
		return false
	}
	running.Add(1)
	defer running.Add(-1) // after Done, which may put the key back into the queue: it waits all the while
	defer queue.Done(key)
	if ctx.Err() != nil {
		return true // drain
	}
	round, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	requeueAfter, err := work(round, key)
	switch {
	case errors.Is(err, autopilot.ErrConflict), errors.Is(err, autopilot.ErrGone):
		queue.AddRateLimited(key) // somebody else wrote: decide anew on what they wrote
	case err != nil && ctx.Err() == nil:
		c.Log.Warn("round failed", zap.String("namespace", key.Namespace), zap.String("name", key.Name), zap.Error(err))
		queue.AddRateLimited(key)
	default:
		queue.Forget(key)
		if requeueAfter > 0 {
			queue.AddAfter(key, requeueAfter)
		}
	}
	return true
}
