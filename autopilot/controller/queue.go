// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/util/workqueue"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// queues are the two queues of the leader. Decisions have their own, so that they never wait for arming, which makes
// more calls to the cloud and can hang in more places.
type queues struct {
	decide, arm workqueue.TypedRateLimitingInterface[Key]
	// background runs a function until this replica stops leading. No round waits for it.
	background func(func(context.Context))
}

func newQueues(decideMarks *marks) *queues {
	limiter := func() workqueue.TypedRateLimiter[Key] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[Key](minRetry, maxRetry)
	}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Queue: &newsFirst{isNews: decideMarks.isNews}}),
	})
	return &queues{
		decide: workqueue.NewTypedRateLimitingQueueWithConfig(limiter(),
			workqueue.TypedRateLimitingQueueConfig[Key]{DelayingQueue: delaying}),
		arm: workqueue.NewTypedRateLimitingQueue(limiter()),
	}
}

func (q *queues) decideQueue() workqueue.TypedRateLimitingInterface[Key] { return q.decide }

func (q *queues) armQueue() workqueue.TypedRateLimitingInterface[Key] { return q.arm }

func (q *queues) shutDown() {
	q.decide.ShutDown()
	q.arm.ShutDown()
}

// newsFirst returns the databases with news before all others: those of the sweep, rechecks and retries after an error.
// Anyone can cause many rechecks, for example with invented instance ids.
type newsFirst struct {
	isNews     func(Key) bool
	news, rest []Key
}

// Touch moves a waiting database to the front part if it has news. The queue calls it for repeated adds.
func (q *newsFirst) Touch(k Key) {
	if i := slices.Index(q.rest, k); i >= 0 && q.isNews(k) {
		q.rest = slices.Delete(q.rest, i, i+1)
		q.news = append(q.news, k)
	}
}

// Push adds a database.
func (q *newsFirst) Push(k Key) {
	if q.isNews(k) {
		q.news = append(q.news, k)
	} else {
		q.rest = append(q.rest, k)
	}
}

// Len returns how many databases wait.
func (q *newsFirst) Len() int { return len(q.news) + len(q.rest) }

// Pop removes and returns the next database.
func (q *newsFirst) Pop() (k Key) {
	from := &q.news
	if len(q.news) == 0 {
		from = &q.rest
	}
	k, *from = (*from)[0], (*from)[1:]
	return k
}

// mark says why a database is enqueued. A recheck has the zero value.
type mark struct {
	isSweep bool      // a sweep has requested the round
	begun   time.Time // when that sweep began
	isNews  bool      // something has happened, so the lists of an earlier sweep are too old
}

// marks holds the marks of the databases that wait.
type marks struct {
	mu  sync.Mutex
	all map[Key]mark
}

func newMarks() *marks { return &marks{all: make(map[Key]mark)} }

func (m *marks) isNews(k Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[k].isNews
}

func (m *marks) setSweep(k Key, begun time.Time) { m.add(k, mark{isSweep: true, begun: begun}) }

func (m *marks) setNews(k Key) { m.add(k, mark{isNews: true}) }

func (m *marks) add(k Key, next mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	has := m.all[k]
	if next.begun.Before(has.begun) {
		next.begun = has.begun
	}
	m.all[k] = mark{has.isSweep || next.isSweep, next.begun, has.isNews || next.isNews}
}

func (m *marks) take(k Key) mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.all[k]
	delete(m.all, k)
	return taken
}

// restore marks a database again after its round has failed, so that the retry knows that a sweep requested it. The
// retry is news only after a conflict, because another writer has changed the object. Every other retry waits behind
// the databases that have news. The retry uses no list from before notBefore, the limit of the failed round; zero means
// that the round had not set its limit yet.
func (m *marks) restore(k Key, taken mark, notBefore time.Time, err error) {
	taken.isNews = taken.isNews && errors.Is(err, autopilot.ErrConflict)
	if !notBefore.IsZero() {
		taken.begun = notBefore
	}
	if taken.isNews || taken.isSweep {
		m.add(k, taken)
	}
}

func (m *marks) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.all)
}

func (c *Controller) enqueue(k Key) {
	if q := c.leading(); q != nil {
		c.decideMarks.setNews(k)
		q.decide.Add(k)
	}
}

// enqueueForSweep requests a round and a check of the alarm rules. Both may use lists that are younger than the sweep.
func (c *Controller) enqueueForSweep(k Key, begin time.Time) {
	if q := c.leading(); q != nil {
		c.decideMarks.setSweep(k, begin)
		q.decide.Add(k)
		c.armMarks.setSweep(k, begin)
		q.arm.Add(k)
	}
}

func (c *Controller) enqueueArming(k Key) {
	if q := c.leading(); q != nil {
		q.arm.Add(k)
	}
}

// leading returns the queues, or nil if this replica does not lead.
func (c *Controller) leading() *queues {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queues
}

func (c *Controller) sweeps(ctx context.Context) {
	for {
		if err := c.sweep(ctx, c.options.Now()); err != nil && ctx.Err() == nil && !c.reportPanic("sweep failed", err) {
			c.options.Log.Warn("sweep failed", zap.Error(err))
		}
		jitter := 1 + sweepJitter*(2*c.options.Chance()-1)
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(minSweep, time.Duration(float64(c.options.Sweep)*jitter))):
		}
	}
}

// sweep lists the states of all alarm rules and enqueues every database, and every object that has a rule in the cloud.
// An alarm is therefore acted on even if its message is lost.
func (c *Controller) sweep(ctx context.Context, begin time.Time) (err error) {
	defer autopilot.CatchPanic(&err)
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	_, listErr := c.options.Cloud.AlarmStates(ctx, begin)
	// The databases are enqueued even if the cloud does not answer, because each of them has to report that.
	keys := make(map[Key]bool)
	c.options.Kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) { keys[Key{a.Namespace, a.Name}] = true })
	c.options.Kube.EachTarget(func(t *autopilot.Target) { keys[Key{t.Namespace, t.Name}] = true })
	for k := range keys {
		c.enqueueForSweep(k, begin)
	}
	if listErr != nil {
		return fmt.Errorf("list alarm rules: %w", listErr)
	}
	// What bears a mark of ours and has no object is left from a crash or an outage.
	err = c.options.Cloud.Marked(ctx, begin, func(namespace, name string) {
		if k := (Key{namespace, name}); !keys[k] && c.options.Kube.IsWatched(namespace) {
			c.enqueueForSweep(k, begin)
		}
	})
	if err != nil {
		return err
	}
	c.meters.sweepDuration.Observe(c.options.Now().Sub(begin).Seconds())
	c.meters.lastSweep.Set(float64(c.options.Now().Unix()))
	return nil
}
