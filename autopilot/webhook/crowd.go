package webhook

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// crowd bounds the open connections. When there are too many, the one that has waited longest for a whole request is
// closed, the newest itself where all others are being answered: an honest sender has sent its request after
// milliseconds, and so is the last to go, however many do nothing or say one letter at a time.
type crowd struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]*visitor
	waiting *list.List // of *visitor, the longest wait first
}

type visitor struct {
	crowd *crowd
	conn  net.Conn
	place *list.Element // nil while its request is being answered
	large bool          // it is sending a large body
}

type visitorKey struct{}

func newCrowd(most int) *crowd {
	return &crowd{most: most, open: map[net.Conn]*visitor{}, waiting: list.New()}
}

// of makes the crowd that of a server.
func (c *crowd) of(s *http.Server) {
	s.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, visitorKey{}, c.enter(conn))
	}
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateIdle:
			c.idle(conn)
		case http.StateClosed, http.StateHijacked:
			c.leave(conn)
		}
	}
}

func (c *crowd) enter(conn net.Conn) *visitor {
	v := &visitor{crowd: c, conn: conn}
	c.mu.Lock()
	v.place = c.waiting.PushBack(v)
	c.open[conn] = v
	var first *visitor
	if len(c.open) > c.most {
		first, _ = c.waiting.Front().Value.(*visitor) // v waits, so there is one
		c.forget(first)
	}
	c.mu.Unlock()
	if first != nil {
		_ = first.conn.Close() // what reads from it ends
	}
	return v
}

// idle is a connection that was answered and begins to wait again.
func (c *crowd) idle(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.open[conn]; v != nil && v.place == nil {
		v.large = false
		v.place = c.waiting.PushBack(v)
	}
}

func (c *crowd) leave(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.open[conn]; v != nil {
		c.forget(v)
	}
}

// forget takes a visitor off the books; the mutex is held.
func (c *crowd) forget(v *visitor) {
	v.settle()
	delete(c.open, v.conn)
}

// settle takes a visitor out of those who wait; the crowd's mutex is held.
func (v *visitor) settle() {
	if v.place != nil {
		v.crowd.waiting.Remove(v.place)
		v.place = nil
	}
}

// sendsLarge says that the body is a large one. No more than so many may be on their way: beyond it the connection that
// waits longest among them is closed.
func sendsLarge(ctx context.Context, most int) {
	v, ok := ctx.Value(visitorKey{}).(*visitor)
	if !ok {
		return
	}
	var first *visitor
	v.crowd.mu.Lock()
	v.large = true
	n := 0
	for e := v.crowd.waiting.Back(); e != nil; e = e.Prev() {
		if other, ok := e.Value.(*visitor); ok && other.large {
			first = other
			n++
		}
	}
	if n > most {
		v.crowd.forget(first)
	}
	v.crowd.mu.Unlock()
	if n > most {
		_ = first.conn.Close() // what reads from it ends, and gives its place back
	}
}

// complete says that the whole request is there. Without a crowd, as in a test with a recorder, nothing is to be said.
func complete(ctx context.Context) {
	if v, ok := ctx.Value(visitorKey{}).(*visitor); ok {
		v.crowd.mu.Lock()
		defer v.crowd.mu.Unlock()
		v.settle()
	}
}
