// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// connLimiter limits the open connections of a server. Above the limit it closes the connection that has waited longest
// for a complete request, or the newest one if all others are being answered. An honest sender completes its request
// within milliseconds, so it is closed last, even if many connections are silent or send one byte at a time.
type connLimiter struct {
	limit int

	mu      sync.Mutex
	open    map[net.Conn]*conn
	waiting *list.List // of *conn, the longest wait first
}

// conn is an open connection. The limiter's mutex guards it.
type conn struct {
	limiter *connLimiter
	net     net.Conn
	place   *list.Element // in limiter.waiting; nil while its request is being answered
	large   bool          // its request has a large body
}

type connKey struct{}

func newConnLimiter(limit int) *connLimiter {
	return &connLimiter{limit: limit, open: map[net.Conn]*conn{}, waiting: list.New()}
}

// attach makes the limiter limit the connections of a server. The caller starts the server afterwards.
func (l *connLimiter) attach(s *http.Server) {
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, l.add(nc))
	}
	s.ConnState = func(nc net.Conn, state http.ConnState) {
		switch state {
		case http.StateIdle:
			l.markIdle(nc)
		case http.StateClosed, http.StateHijacked:
			l.remove(nc)
		}
	}
}

// add registers a new connection, which waits for its first request. It closes the longest waiting one if there are too
// many.
func (l *connLimiter) add(nc net.Conn) *conn {
	c := &conn{limiter: l, net: nc}
	l.mu.Lock()
	c.place = l.waiting.PushBack(c)
	l.open[nc] = c
	var longest *conn
	if len(l.open) > l.limit {
		longest, _ = l.waiting.Front().Value.(*conn) // c itself waits, so the list is not empty
		l.forget(longest)
	}
	l.mu.Unlock()
	if longest != nil {
		_ = longest.net.Close() // its handler's read fails
	}
	return c
}

// markIdle makes a connection wait again after its request was answered.
func (l *connLimiter) markIdle(nc net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[nc]; c != nil && c.place == nil {
		c.large = false
		c.place = l.waiting.PushBack(c)
	}
}

func (l *connLimiter) remove(nc net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.open[nc]; c != nil {
		l.forget(c)
	}
}

// forget removes a connection from the limiter. The caller holds l.mu.
func (l *connLimiter) forget(c *conn) {
	c.stopWaiting()
	delete(l.open, c.net)
}

// stopWaiting removes the connection from the waiting ones. The caller holds the limiter's mutex.
func (c *conn) stopWaiting() {
	if c.place != nil {
		c.limiter.waiting.Remove(c.place)
		c.place = nil
	}
}

// markLarge marks the request's body as large. If more than limit large bodies are arriving, it closes the connection
// that has waited longest. Without this, a few strangers that stall would hold all large slots.
func markLarge(ctx context.Context, limit int) {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return
	}
	var longest *conn
	c.limiter.mu.Lock()
	c.large = true
	n := 0
	for e := c.limiter.waiting.Back(); e != nil; e = e.Prev() {
		if other, ok := e.Value.(*conn); ok && other.large {
			longest = other
			n++
		}
	}
	if n > limit {
		c.limiter.forget(longest)
	}
	c.limiter.mu.Unlock()
	if n > limit {
		_ = longest.net.Close() // its handler's read fails and frees its slot
	}
}

// markComplete marks the request as complete. It does nothing without a limiter, as in tests with a recorder.
func markComplete(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.limiter.mu.Lock()
		defer c.limiter.mu.Unlock()
		c.stopWaiting()
	}
}
