// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// connLimiter bounds the open connections of a server. Above the bound it closes the connection that has waited longest
// for a complete request, or the newest one if all others are being answered. An honest sender has sent its request
// after milliseconds, so it is the last to be closed, however many connections are silent or send one byte at a time.
type connLimiter struct {
	limit int

	mu      sync.Mutex
	open    map[net.Conn]*conn
	waiting *list.List // of *conn, the longest wait first
}

// conn is an open connection; the limiter's mutex guards it.
type conn struct {
	limiter *connLimiter
	net     net.Conn
	place   *list.Element // in limiter.waiting; nil while its request is being answered
	large   bool          // it is sending a large body
}

type connKey struct{}

func newConnLimiter(limit int) *connLimiter {
	return &connLimiter{limit: limit, open: map[net.Conn]*conn{}, waiting: list.New()}
}

// attach makes the limiter bound the connections of a server that has not been started yet.
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

// add registers a new connection, which waits for its first request, and closes another one if there are too many.
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

// markIdle lets a connection wait again after its request was answered.
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

// forget drops a connection from the limiter; l.mu is held.
func (l *connLimiter) forget(c *conn) {
	c.stopWaiting()
	delete(l.open, c.net)
}

// stopWaiting takes the connection out of the waiting ones; the limiter's mutex is held.
func (c *conn) stopWaiting() {
	if c.place != nil {
		c.limiter.waiting.Remove(c.place)
		c.place = nil
	}
}

// markLarge notes that the request's body is a large one. If more than limit of those are being sent, it closes the one
// that has waited longest.
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
		_ = longest.net.Close() // its handler's read fails and frees its place
	}
}

// markComplete notes that the whole request has arrived. It does nothing without a limiter, as in tests with a recorder.
func markComplete(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.limiter.mu.Lock()
		defer c.limiter.mu.Unlock()
		c.stopWaiting()
	}
}
