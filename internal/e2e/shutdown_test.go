package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/mcsps/rds-autopilot/internal/world"
)

// leads waits until a process leads.
func leads(t *testing.T, p *world.Process) world.Line {
	t.Helper()
	line, err := p.WaitLine(within(t), "it leads", leading)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func leading(l world.Line) bool { return l.Msg == "leadership" && l.Fields["leading"] == true }

func stopping(l world.Line) bool { return l.Msg == "stopping" }

func TestDrainingItAnswersAndAnotherLeadsAtOnce(t *testing.T) {
	w := theWorld(t)
	first, err := w.Serve(within(t), "--drain-delay", "1m")
	if err != nil {
		t.Fatal(err)
	}
	leads(t, first)
	second := serve(t, w)
	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := first.WaitLine(within(t), "it stops", stopping); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200, "/metrics": 200} {
		if status, _, err := first.Get(within(t), path); err != nil || status != want {
			t.Errorf("draining: %s: %d, %v, want %d", path, status, err, want)
		}
	}
	leads(t, second) // in seconds: with the lease held to its end, the drain would be over first
	res, err := http.Post(first.WebhookURL+"/smn", "text/plain", strings.NewReader("alarm!"))
	if err != nil {
		t.Fatalf("draining it does not answer any more: %v", err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusBadRequest || !res.Close {
		t.Errorf("draining: status %d, connection closed: %t", res.StatusCode, res.Close)
	}
	if m, err := first.Metrics(within(t)); err != nil || m.Sum("rds_autopilot_leader") != 0 {
		t.Errorf("draining it says that it leads, %v", err)
	}

	// Nobody wants to wait any longer.
	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, err := first.Wait(within(t)); err != nil || code == 0 {
		t.Errorf("exit code %d, %v, want the end that a second signal makes", code, err)
	}
}

func TestWhatIsInFlightIsAnsweredBeforeTheEnd(t *testing.T) {
	w := theWorld(t)
	p, err := w.Serve(within(t), "--drain-delay", "0s")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := new(net.Dialer).DialContext(within(t), "tcp", strings.TrimPrefix(p.WebhookURL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	body := "alarm!"
	fmt.Fprintf(conn, "POST /smn HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100") { // the receiver reads the body
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := p.WaitLine(within(t), "it stops", stopping); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, body)
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusBadRequest && res.StatusCode != http.StatusServiceUnavailable { // 503 on a slow machine
		t.Errorf("status %d", res.StatusCode)
	}
	if code, err := p.Wait(within(t)); err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
}
