package webhook

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// patience is for hung machines; nothing waits for it.
const patience = time.Minute

// room is a server whose handler answers when it is let.
type room struct {
	t       *testing.T
	crowd   *crowd
	address string
	inside  chan struct{} // one for each request that is complete
	let     chan struct{} // one for each that may be answered
}

func newRoom(t *testing.T, most int) *room {
	t.Helper()
	r := &room{t: t, crowd: newCrowd(most), inside: make(chan struct{}, 99), let: make(chan struct{}, 99)}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, err := io.ReadAll(req.Body); err != nil {
			return
		}
		complete(req.Context())
		r.inside <- struct{}{}
		<-r.let
	})}
	r.crowd.of(s)
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

// guest is a connection that has said something.
type guest struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

// enter opens a connection, says something, and waits until the server has it.
func (r *room) enter(text string) *guest {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	g := &guest{r.t, conn, bufio.NewReader(conn)}
	g.say(text)
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r.crowd.mu.Lock()
		known := false
		for c := range r.crowd.open {
			known = known || c.RemoteAddr().String() == conn.LocalAddr().String()
		}
		r.crowd.mu.Unlock()
		if known {
			return g
		}
		if time.Now().After(deadline) {
			r.t.Fatal("the server does not know the connection")
		}
	}
}

func (g *guest) say(text string) {
	g.t.Helper()
	if _, err := io.WriteString(g, text); err != nil {
		g.t.Fatal(err)
	}
}

// cut waits for the end of the connection.
func (g *guest) cut() {
	g.t.Helper()
	_ = g.SetReadDeadline(time.Now().Add(patience))
	if _, err := g.in.ReadByte(); err == nil || errors.Is(err, net.ErrClosed) || isTimeout(err) {
		g.t.Fatalf("it was not cut: %v", err)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// answered reads one answer.
func (g *guest) answered() {
	g.t.Helper()
	_ = g.SetReadDeadline(time.Now().Add(patience))
	resp, err := http.ReadResponse(g.in, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		g.t.Errorf("status %d", resp.StatusCode)
	}
}

func request(body, sent string) string {
	return fmt.Sprintf("POST /smn HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), sent)
}

func TestWhoWaitsLongestIsCutAndWhoIsAnsweredStays(t *testing.T) {
	r := newRoom(t, 3)
	honest := r.enter(request("hello", "hello"))
	<-r.inside
	silent := r.enter("")
	slowHeader := r.enter("POST /smn HT")
	slowBody := r.enter(request("hello", "h"))
	silent.cut()
	another := r.enter("")
	slowHeader.cut()
	r.enter("")
	slowBody.cut()
	r.enter("")
	another.cut()
	r.let <- struct{}{}
	honest.answered()
}

func TestWhoWasAnsweredWaitsAnew(t *testing.T) {
	r := newRoom(t, 3)
	first := r.enter(request("a", "a"))
	<-r.inside
	second := r.enter("")
	third := r.enter("")
	r.let <- struct{}{}
	first.answered()
	waitUntil(t, func() bool { return r.crowd.waiting.Len() == 3 }, r.crowd)
	r.enter("")
	second.cut()
	first.say(request("b", "b"))
	<-r.inside
	r.let <- struct{}{}
	first.answered()
	r.enter("")
	third.cut()
}

func TestTheNewestIsCutWhereAllOthersAreBeingAnswered(t *testing.T) {
	r := newRoom(t, 2)
	guests := []*guest{r.enter(request("a", "a")), r.enter(request("b", "b"))}
	<-r.inside
	<-r.inside
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	(&guest{t, conn, bufio.NewReader(conn)}).cut()
	r.let <- struct{}{}
	r.let <- struct{}{}
	for _, g := range guests {
		g.answered()
	}
}

func TestManyThatSayNothingKeepNobodyOut(t *testing.T) {
	r := newRoom(t, 10)
	for range 300 {
		r.enter("P")
	}
	honest := r.enter(request("hello", "hello"))
	<-r.inside
	r.let <- struct{}{}
	honest.answered()
	waitUntil(t, func() bool { return len(r.crowd.open) <= 10 && r.crowd.waiting.Len() <= 10 }, r.crowd)
}

func waitUntil(t *testing.T, ok func() bool, c *crowd) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		c.mu.Lock()
		done := ok()
		c.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}
