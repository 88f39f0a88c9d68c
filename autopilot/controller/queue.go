// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queues are the two queues of the leader. Decisions have their own, so that they never wait for arming, which makes
// more calls to the cloud and can hang in more places.
type queues struct {
	decide workqueue.TypedRateLimitingInterface[Key]
	arm    workqueue.TypedRateLimitingInterface[Key]
}

func newQueues(sweeps *sweepMarks) *queues {
	limiter := func() workqueue.TypedRateLimiter[Key] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[Key](minRetry, maxRetry)
	}
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[Key]{
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[Key]{Queue: &newsFirst{swept: sweeps.has}}),
	})
	return &queues{
		decide: workqueue.NewTypedRateLimitingQueueWithConfig(limiter(), workqueue.TypedRateLimitingQueueConfig[Key]{DelayingQueue: delaying}),
		arm:    workqueue.NewTypedRateLimitingQueue(limiter()),
	}
}

func (q *queues) decideQueue() workqueue.TypedRateLimitingInterface[Key] { return q.decide }

func (q *queues) armQueue() workqueue.TypedRateLimitingInterface[Key] { return q.arm }

func (q *queues) shutDown() {
	q.decide.ShutDown()
	q.arm.ShutDown()
}

// newsFirst returns the databases with news before those that only the sweep has enqueued.
type newsFirst struct {
	swept      func(Key) bool
	news, rest []Key
}

// Touch moves a waiting database to the front part if something has happened to it. The queue calls it for repeated
// adds.
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

// sweepMarks holds the databases that only the sweep has enqueued, with the time at which that sweep began.
type sweepMarks struct {
	mu    sync.Mutex
	begun map[Key]time.Time
	news  map[Key]bool // enqueued because something happened; a sweep must not mark them
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

// setNews records that something happened to a database, so that the lists of an earlier sweep are too old for it.
func (m *sweepMarks) setNews(k Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.news[k] = true
	delete(m.begun, k)
}

// take returns and removes the mark.
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

// enqueue requests a round because something happened to the database.
func (c *Controller) enqueue(k Key) {
	if q := c.leading(); q != nil {
		c.decideMarks.setNews(k)
		q.decide.Add(k)
	}
}

// enqueueForSweep requests a round and a check of the alarm rules. Both may use the lists that were read since the
// sweep began.
func (c *Controller) enqueueForSweep(k Key, begin time.Time) {
	if q := c.leading(); q != nil {
		c.decideMarks.set(k, begin)
		q.decide.Add(k)
		c.armMarks.set(k, begin)
		q.arm.Add(k)
	}
}

// enqueueArming requests a check of the alarm rules.
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
