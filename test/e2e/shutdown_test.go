// SPDX-License-Identifier: Apache-2.0

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

	"github.com/mcsps/rds-autopilot/test/world"
)

func stopping(l world.Line) bool { return l.Msg == "stopping" }

func TestDrainingReplicaAnswersAndReleasesTheLease(t *testing.T) {
	w := start(t, world.Options{})
	first, err := w.Serve(world.Within(t), "--drain-delay", "1m")
	if err != nil {
		t.Fatal(err)
	}
	first.MustLead(t)
	second := w.MustServe(t)
	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := first.WaitLine(world.Within(t), "it stops", stopping); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200, "/metrics": 200} {
		if status, _, err := first.Get(world.Within(t), path); err != nil || status != want {
			t.Errorf("draining: %s: %d, %v, want %d", path, status, err, want)
		}
	}
	second.MustLead(t)
	res, err := http.Post(first.WebhookURL+"/smn", "text/plain", strings.NewReader("alarm!"))
	if err != nil {
		t.Fatalf("draining it does not answer any more: %v", err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusBadRequest || !res.Close {
		t.Errorf("draining: status %d, connection closed: %t", res.StatusCode, res.Close)
	}
	if m, err := first.Metrics(world.Within(t)); err != nil || m.Sum("rds_autopilot_leader") != 0 {
		t.Errorf("draining it says that it leads, %v", err)
	}

	// Nobody wants to wait any longer.
	if err := first.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, err := first.Wait(world.Within(t)); err != nil || code == 0 {
		t.Errorf("exit code %d, %v, want the end that a second signal makes", code, err)
	}
}

func TestInFlightMessagesAreAnsweredBeforeExit(t *testing.T) {
	w := start(t, world.Options{})
	p := w.MustServe(t, "--drain-delay", "0s")
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/nothing": 404} {
		if status, _, err := p.Get(world.Within(t), path); err != nil || status != want {
			t.Errorf("%s: %d, %v, want %d", path, status, err, want)
		}
	}
	conn, err := new(net.Dialer).DialContext(world.Within(t), "tcp", strings.TrimPrefix(p.WebhookURL, "http://"))
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
	if _, err := p.WaitLine(world.Within(t), "it stops", stopping); err != nil {
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
	if code, err := p.Wait(world.Within(t)); err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
}
