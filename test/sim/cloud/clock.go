// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"context"
	"sync"
	"time"
)

// keepSamples is the number of raw datapoints that an instance keeps, which is a little over a day.
const keepSamples = 1500

// span converts a duration of the cloud to the clock of Now.
func (c *Cloud) span(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.opts.Speed)
}

// tickAt returns the number of the raw interval since the epoch. A period of n minutes has n ticks, and is aligned.
func (c *Cloud) tickAt(t time.Time) int64 { return t.UnixNano() / int64(c.raw) }

func (c *Cloud) tickTime(k int64) time.Time { return time.Unix(0, k*int64(c.raw)) }

// lock locks the cloud and advances it to now. Every access calls it, so that no result depends on when the cloud was
// accessed before. The caller unlocks.
func (c *Cloud) lock() (now time.Time) {
	c.mu.Lock()
	now = c.opts.Now()
	c.advance(now)
	return now
}

// advance updates jobs, raw data and rules up to now. It only queues notifications.
func (c *Cloud) advance(now time.Time) {
	last := c.tickAt(now)
	if last-c.sampled > keepSamples {
		c.sampled = last - keepSamples
		for _, in := range c.instances {
			in.samples = nil
		}
	}
	for k := c.sampled + 1; k <= last; k++ {
		t := c.tickTime(k)
		c.finishJobs(t)
		for _, in := range c.instances {
			c.updateFull(in)
			in.sample(k)
		}
		c.sampled = k
		for _, r := range c.rules {
			c.evaluate(r, k)
		}
	}
	c.finishJobs(now)
	for _, in := range c.instances {
		c.updateFull(in)
	}
}

// Step updates raw data, jobs and rules, and sends the messages that are due. It returns when the attempts to deliver
// have ended.
func (c *Cloud) Step(ctx context.Context) {
	for due := c.takeDue(); len(due) > 0; due = c.takeDue() {
		var wg sync.WaitGroup
		for _, d := range due {
			wg.Go(func() { c.attempt(ctx, d) })
		}
		wg.Wait()
		if ctx.Err() != nil {
			return
		}
	}
}

// Run does the same as time passes, until the context or the cloud ends. It returns when the attempts to deliver have
// ended. Now must run at the speed of the timers.
func (c *Cloud) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		for _, d := range c.takeDue() {
			wg.Go(func() { c.attempt(ctx, d) })
		}
		select {
		case <-ctx.Done():
			return
		case <-c.closed:
			cancel()
			return
		case <-c.wake:
		case <-time.After(c.untilDue()):
		}
	}
}

// takeDue advances the cloud to now and returns the messages that are due.
func (c *Cloud) takeDue() []*message {
	now := c.lock()
	defer c.mu.Unlock()
	var due []*message
	for _, m := range c.queue {
		if !m.inFlight && !m.due.After(now) {
			m.inFlight = true
			due = append(due, m)
		}
	}
	return due
}

// untilDue returns the time until the next raw interval or message.
func (c *Cloud) untilDue() time.Duration {
	now := c.lock()
	defer c.mu.Unlock()
	next := c.tickTime(c.sampled + 1)
	for _, m := range c.queue {
		if !m.inFlight && m.due.Before(next) {
			next = m.due
		}
	}
	return max(next.Sub(now), 0)
}

// wakeUp makes Run check at once for messages that are due. It never blocks.
func (c *Cloud) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
