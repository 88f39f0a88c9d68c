// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	floodConnections = 1500       // more than the receiver keeps: alarms wait until it closes slow ones
	floodGoroutines  = 1024 + 300 // one for each connection that the receiver keeps
	floodAlarms      = 5
)

// TestAlarmsAreStoredWhileTheReceiverIsFlooded keeps many connections open that send nothing, or their headers or body letter by
// letter. Each closed connection is opened again. The receiver must keep no more of them than its limit, close slow ones, and
// store alarms meanwhile.
func TestAlarmsAreStoredWhileTheReceiverIsFlooded(t *testing.T) {
	level.Long(t)
	t.Parallel()
	w := shared.Start(t, world.Options{})
	p := w.MustServe(t)
	ctx := world.Within(t)
	db := w.MustAdd(t, world.Database{Name: "flooded", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Autopilot: true})
	if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	rule, _ := db.Rule(v1alpha1.MetricStorage)
	attack, stop := context.WithCancel(ctx)
	var attackers sync.WaitGroup
	t.Cleanup(func() { stop(); attackers.Wait() })
	for i := range floodConnections {
		attackers.Go(func() { connectSlowly(attack, strings.TrimPrefix(p.WebhookURL, "http://"), i) })
	}
	for i := range floodAlarms {
		time.Sleep(time.Second) // the flood goes on
		body, err := w.Cloud.SignedAlarm(fmt.Sprintf("%032x", i+1), w.TopicURN(), rule.ID, 85)
		if err != nil {
			t.Fatal(err)
		}
		for status := 0; status != http.StatusOK; { // SMN repeats a message after 503
			if status, _, err = w.Post(ctx, body); err != nil || status != http.StatusOK && status != http.StatusServiceUnavailable {
				t.Fatalf("alarm %d: status %d, %v", i, status, err)
			}
		}
		if m, err := p.Metrics(ctx); err != nil || m.Sum("go_goroutines") > floodGoroutines || m.Sum("go_goroutines") < floodConnections/4 {
			t.Errorf("%g goroutines, %v", m.Sum("go_goroutines"), err)
		}
	}
	last, err := db.Autopilot(ctx)
	if err != nil || len(last.Status.Intake.Signals) == 0 || last.Status.Intake.Signals[0].MessageID != fmt.Sprintf("%032x", floodAlarms) {
		t.Errorf("intake %+v, %v, want the last alarm", last.Status.Intake, err)
	}
}

// connectSlowly opens one connection after the other, and sends a letter a second until the receiver closes it.
func connectSlowly(ctx context.Context, address string, i int) {
	first := []string{"", "POST /smn HTTP/1.1\r\nX-Slow: ", "POST /smn HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"}[i%3]
	letter := "x"[:min(i%3, 1)]
	for ctx.Err() == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			continue
		}
		_, err = io.WriteString(conn, first)
		for err == nil && ctx.Err() == nil {
			time.Sleep(time.Second)
			if _, err = io.WriteString(conn, letter); err == nil {
				err = closedError(conn)
			}
		}
		_ = conn.Close()
	}
}

// closedError returns an error if the other side has closed or answered a connection.
func closedError(conn net.Conn) error {
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := conn.Read(make([]byte, 512))
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() { //nolint:errorlint // not wrapped
		return nil
	}
	return io.EOF
}
