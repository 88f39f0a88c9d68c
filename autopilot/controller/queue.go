// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queues are the two kinds of work that wait for the leader. Decisions never wait for arming, which asks more of the cloud
// and has more that can hang.
type queues struct {
	decide workqueue.TypedRateLimitingInterface[Key]
	arm    workqueue.TypedRateLimitingInterface[Key]
}

func newQueues(sweeps *sweepMarks) *queues {
	limiter := func() workqueue.TypedRateLimiter[Key] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[Key](retryAtFirst, retryAtMost)
	}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Queue: &newsFirst{swept: sweeps.has}}),
	})
	return &queues{
		decide: workqueue.NewTypedRateLimitingQueueWithConfig(limiter(), workqueue.TypedRateLimitingQueueConfig[Key]{DelayingQueue: delaying}),
		arm:    workqueue.NewTypedRateLimitingQueue(limiter()),
	}
}

func (q *queues) shutDown() {
	q.decide.ShutDown()
	q.arm.ShutDown()
}

// newsFirst hands out the databases with news before those that only a sweep asks for.
type newsFirst struct {
	swept      func(Key) bool
	news, rest []Key
}

// Touch is called for a database that is added again while it waits.
func (q *newsFirst) Touch(k Key) {
	if i := slices.Index(q.rest, k); i >= 0 && !q.swept(k) {
		q.rest = slices.Delete(q.rest, i, i+1)
		q.news = append(q.news, k)
	}
}

// Push adds a database.
func (q *newsFirst) Push(k Key) {
	if q.swept(k) {
		q.rest = append(q.rest, k)
	} else {
		q.news = append(q.news, k)
	}
}

// Len is how many wait.
func (q *newsFirst) Len() int { return len(q.news) + len(q.rest) }

// Pop takes the next one out.
func (q *newsFirst) Pop() (k Key) {
	from := &q.news
	if len(q.news) == 0 {
		from = &q.rest
	}
	k, *from = (*from)[0], (*from)[1:]
	return k
}

// sweepMarks are the databases that only a sweep asks for, with the begin of that sweep.
type sweepMarks struct {
	mu    sync.Mutex
	begun map[Key]time.Time
	news  map[Key]bool // asked for because something happened: a sweep does not put them back
}

func newSweepMarks() *sweepMarks {
	return &sweepMarks{begun: make(map[Key]time.Time), news: make(map[Key]bool)}
}

func (m *sweepMarks) has(k Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, marked := m.begun[k]
	return marked
}

func (m *sweepMarks) set(k Key, begin time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.news[k] {
		m.begun[k] = begin
	}
}

// setNews says that something happened: what a sweep has listed before does not do.
func (m *sweepMarks) setNews(k Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.news[k] = true
	delete(m.begun, k)
}

// take returns the mark and removes it.
func (m *sweepMarks) take(k Key) (begin time.Time, marked bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	begin, marked = m.begun[k]
	delete(m.begun, k)
	delete(m.news, k)
	return begin, marked
}

func (m *sweepMarks) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.begun)
	clear(m.news)
}

// enqueue has a database looked at because something happened: listings of before do not do.
func (c *Controller) enqueue(k Key) {
	if q := c.leading(); q != nil {
		c.decideMarks.setNews(k)
		q.decide.Add(k)
	}
}

// enqueueForSweep has a database looked at and its arming checked; the sweep's own listings are new enough for both.
func (c *Controller) enqueueForSweep(k Key, begin time.Time) {
	if q := c.leading(); q != nil {
		c.decideMarks.set(k, begin)
		q.decide.Add(k)
		c.armMarks.set(k, begin)
		q.arm.Add(k)
	}
}

// enqueueArming has the arming of a database brought up to date.
func (c *Controller) enqueueArming(k Key) {
	if q := c.leading(); q != nil {
		q.arm.Add(k)
	}
}

// leading returns the queues, or nil on a replica that does not lead.
func (c *Controller) leading() *queues {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queues
}
