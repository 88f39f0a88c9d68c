// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

func stopping(l world.Line) bool { return l.Msg == "stopping" }

func TestDrainingReplicaAnswersAndReleasesTheLease(t *testing.T) {
	w := start(t, world.Options{})
	first, err := w.Serve(world.Within(t), "--drain-delay", "1m")
	must(t, err)
	first.MustLead(t)
	second := w.MustServe(t)
	must(t, first.Signal(syscall.SIGTERM))
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
	must(t, first.Signal(syscall.SIGTERM))
	if code, err := first.Wait(world.Within(t)); err != nil || code == 0 {
		t.Errorf("exit code %d, %v, want the end that a second signal makes", code, err)
	}
}

// A person looks at a database while the cloud hangs. That must not make the end of the process a failure.
func TestPageThatWaitsForTheCloudDoesNotFailTheExit(t *testing.T) {
	asked := make(chan struct{}, 1)
	o := world.Options{}
	o.Cloud.Fault = func(r *http.Request) *simcloud.Fault {
		body, _ := io.ReadAll(r.Body) // an error means that the client has gone
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(`"period":"300"`)) { // the averages of the plots
			return nil
		}
		asked <- struct{}{}
		return &simcloud.Fault{Hang: true}
	}
	w := start(t, o)
	p := w.MustServe(t, "--drain-delay", "0s")
	db := w.MustAdd(t, world.Database{Name: "seen", Flavor: "rds.mysql.n1.large.4", VolumeGB: 40, Autopilot: true})
	if _, err := db.WaitAutopilot(world.Within(t), "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	status := make(chan int, 1)
	go func() {
		code, _, _ := p.Get(world.Within(t), "/api/databases/"+db.Namespace+"/"+db.Name+"/series") // 0 after an error
		status <- code
	}()
	<-asked
	must(t, p.Signal(syscall.SIGTERM))
	if code, err := p.Wait(world.Within(t)); err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
	if got := <-status; got != http.StatusServiceUnavailable {
		t.Errorf("the page got %d", got)
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
	must(t, err)
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
	must(t, p.Signal(syscall.SIGTERM))
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
