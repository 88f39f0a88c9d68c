// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

// testTimeout only ends a hanging test.
const testTimeout = time.Minute

// limitedServer is a server with a limit of connections. Its handler answers once the test has released it.
type limitedServer struct {
	t       *testing.T
	limiter *connLimiter
	address string
	arrived chan struct{} // has one value for each complete request
	release chan struct{} // takes one value for each request that may be answered
}

func newLimitedServer(t *testing.T, most int) *limitedServer {
	t.Helper()
	r := &limitedServer{t: t, limiter: newConnLimiter(most), arrived: make(chan struct{}, 99), release: make(chan struct{}, 99)}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, err := io.ReadAll(req.Body); err != nil {
			return
		}
		markComplete(req.Context())
		r.arrived <- struct{}{}
		<-r.release
	})}
	r.limiter.attach(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return r
}

// client is a connection to the server.
type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (r *limitedServer) dial() *client {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return &client{r.t, conn, bufio.NewReader(conn)}
}

// connect opens a connection, sends a text, and waits until the limiter has the connection.
func (r *limitedServer) connect(text string) *client {
	r.t.Helper()
	g := r.dial()
	g.send(text)
	r.waitUntil(func() bool {
		for c := range r.limiter.open {
			if c.RemoteAddr().String() == g.LocalAddr().String() {
				return true
			}
		}
		return false
	})
	return g
}

// waitUntil waits until a condition of the limiter is true.
func (r *limitedServer) waitUntil(isTrue func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(testTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		r.limiter.mu.Lock()
		done := isTrue()
		r.limiter.mu.Unlock()
		if done {
			return
		}
	}
	r.t.Fatal("the condition did not become true")
}

func (g *client) send(text string) {
	g.t.Helper()
	if _, err := io.WriteString(g, text); err != nil {
		g.t.Fatal(err)
	}
}

// mustBeClosed waits for the end of the connection.
func (g *client) mustBeClosed() {
	g.t.Helper()
	_ = g.SetReadDeadline(time.Now().Add(testTimeout))
	if _, err := g.in.ReadByte(); err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		g.t.Fatalf("it was not closed: %v", err)
	}
}

// mustBeAnswered reads one answer.
func (g *client) mustBeAnswered() {
	g.t.Helper()
	_ = g.SetReadDeadline(time.Now().Add(testTimeout))
	resp, err := http.ReadResponse(g.in, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		g.t.Errorf("status %d", resp.StatusCode)
	}
}

// request returns a request with a body, of which it contains only the part that is sent.
func request(body, sent string) string {
	return fmt.Sprintf("POST /smn HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), sent)
}

func TestLongestWaitingConnectionIsClosedFirst(t *testing.T) {
	r := newLimitedServer(t, 3)
	honest := r.connect(request("hello", "hello"))
	<-r.arrived
	silent := r.connect("")
	slowHeader := r.connect("POST /smn HT")
	slowBody := r.connect(request("hello", "h"))
	silent.mustBeClosed()
	another := r.connect("")
	slowHeader.mustBeClosed()
	r.connect("")
	slowBody.mustBeClosed()
	r.connect("")
	another.mustBeClosed()
	r.release <- struct{}{}
	honest.mustBeAnswered()
}

func TestConnectionWaitsAgainAfterItsAnswer(t *testing.T) {
	r := newLimitedServer(t, 3)
	first := r.connect(request("a", "a"))
	<-r.arrived
	second := r.connect("")
	third := r.connect("")
	r.release <- struct{}{}
	first.mustBeAnswered()
	r.waitUntil(func() bool { return r.limiter.waiting.Len() == 3 })
	r.connect("")
	second.mustBeClosed()
	first.send(request("b", "b"))
	<-r.arrived
	r.release <- struct{}{}
	first.mustBeAnswered()
	r.connect("")
	third.mustBeClosed()
}

func TestNewestConnectionIsClosedWhenAllOthersAreBeingAnswered(t *testing.T) {
	r := newLimitedServer(t, 2)
	answered := []*client{r.connect(request("a", "a")), r.connect(request("b", "b"))}
	<-r.arrived
	<-r.arrived
	r.dial().mustBeClosed()
	r.release <- struct{}{}
	r.release <- struct{}{}
	for _, g := range answered {
		g.mustBeAnswered()
	}
}
