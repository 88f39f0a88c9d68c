// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	floodConnections = 10_000
	floodAlarms      = 15
	floodPace        = 1000 // new connections a second, and a tenth of it forged messages: two cores have to do both sides
	floodMemory      = 128 << 20
	floodGoroutines  = 2 * 1024 // two for each connection that the receiver keeps
)

// TestAlarmsAreStoredWhileTheReceiverIsFlooded: a third of the connections say nothing, a third send their headers letter
// by letter, a third their body, and who is cut comes back; besides, forged messages come, a hundred a second. All of it
// goes to the real binary over TCP, without an ingress in front.
//
// Asserted are the status contract (nothing but 200 and 503, and everything stored in the end), that the admin address
// answers throughout, and that heap, stacks and goroutines stay bounded. How many tries that took, and how long, is logged.
func TestAlarmsAreStoredWhileTheReceiverIsFlooded(t *testing.T) {
	if !level.IsSoak(t) {
		t.Skip("LEVEL=soak runs it")
	}
	w := shared.Start(t, world.Options{Race: true})
	p := w.MustServe(t)
	ctx := world.Within(t)
	db := w.MustAdd(t, world.Database{Name: "flooded", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	a, err := db.WaitAutopilot(ctx, "it is armed", world.Armed)
	if err != nil {
		t.Fatal(err)
	}
	rule, ok := db.Rule(v1alpha1.MetricStorage)
	if !ok {
		t.Fatal("no rule")
	}
	alarm := func(i int) []byte {
		body, err := w.Cloud.SignedAlarm(fmt.Sprintf("%032x", i+1), a.Status.Alarms.TopicURN, rule.ID, 95)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	before, err := p.Metrics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	attack, stop := context.WithCancel(ctx)
	defer stop()
	f := &flood{address: strings.TrimPrefix(p.WebhookURL, "http://"), url: p.WebhookURL + "/smn"}
	connections := floodConnections
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < floodConnections+1000 {
		connections = int(limit.Cur) / 2
		t.Logf("scaled down to %d connections: the limit is %d open files", connections, limit.Cur)
	}
	const hands = 8 // the race detector allows 8,128 goroutines
	for range hands {
		f.running.Go(func() { f.slowClients(attack, connections/hands, time.Second*hands/floodPace) })
	}
	forged := bytes.Replace(alarm(1<<20), []byte(`\"alarm_status\":\"alarm\"`), []byte(`\"alarm_status\":\"ok\"`), 1)
	for range hands {
		f.running.Go(func() { f.forge(attack, forged, time.Second*hands/floodPace*10) })
	}
	if err := world.Eventually(ctx, "the flood is there", func(context.Context) (bool, error) {
		return f.opened.Load() >= int64(connections) && f.forged.Load() > 100, nil
	}); err != nil {
		t.Fatal(err)
	}

	var peak memory
	var longest time.Duration
	tries := 0
	for i := range floodAlarms {
		stored := false
		body := alarm(i)
		for !stored && ctx.Err() == nil {
			start := time.Now()
			status, err := f.post(ctx, body)
			took := time.Since(start)
			longest = max(longest, took)
			tries++
			switch {
			case err != nil: // is tried again like a 503
				t.Logf("alarm %d: %v", i, err)
			case status == http.StatusOK:
				stored = true
			case status != http.StatusServiceUnavailable:
				t.Fatalf("alarm %d: status %d", i, status)
			}
			if !stored {
				time.Sleep(time.Second) // SMN's own pause is longer
			}
		}
		if !stored {
			t.Fatalf("alarm %d is not stored", i)
		}
		start := time.Now()
		if status, _, err := p.Get(ctx, "/readyz"); err != nil || status != http.StatusOK {
			t.Errorf("/readyz: %d, %v", status, err)
		}
		samples, err := p.Metrics(ctx)
		if err != nil {
			t.Errorf("/metrics: %v", err)
		}
		peak.see(samples, time.Since(start))
	}
	sent, opened := f.forged.Load(), f.opened.Load()
	stop()
	f.running.Wait()

	last, err := db.Autopilot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%032x", floodAlarms)
	if signals := last.Status.Intake.Signals; len(signals) == 0 || signals[0].MessageID != want {
		t.Errorf("the last alarm is not in the intake: %+v", signals)
	}
	samples, err := p.Metrics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	answers := samples.Sum("rds_autopilot_notification_duration_seconds_count")
	over := answers - samples.Sum("rds_autopilot_notification_duration_seconds_bucket", "le=4")
	t.Logf("%d connections opened, %d forged messages answered, %d alarms in %d tries, the longest %v; %v answers, %v of them after 4 s",
		opened, sent, floodAlarms, tries, longest, answers, over)
	t.Logf("before: %v; at most: %v", memory{}.with(before), peak)
	if grown := peak.inUse - (memory{}).with(before).inUse; grown > floodMemory {
		t.Errorf("heap and stacks grew by %.0f MiB", grown/(1<<20))
	}
	if peak.goroutines > floodGoroutines+200 {
		t.Errorf("%v goroutines", peak.goroutines)
	}
	if changed := last.Status.Pending; changed != nil {
		t.Errorf("pending %+v", changed)
	}
}

// flood is what an attacker does.
type flood struct {
	address, url string

	running        sync.WaitGroup
	opened, forged atomic.Int64
}

// slowClients keeps that many connections open, and opens one anew that was cut. One in three says nothing, the others a
// letter at a time.
func (f *flood) slowClients(ctx context.Context, n int, pace time.Duration) {
	const header = "POST /smn HTTP/1.1\r\nHost: x\r\nX-Slow: "
	const body = "POST /smn HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
	said := []string{"", header, body}
	conns := make([]net.Conn, n)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	dialer := net.Dialer{Timeout: 2 * time.Second}
	next := time.NewTicker(pace)
	defer next.Stop()
	for ctx.Err() == nil {
		<-next.C
		for i, c := range conns {
			if c != nil {
				text := "x"
				if i%3 == 0 {
					text = ""
				}
				if _, err := io.WriteString(c, text); err == nil && !cut(c) {
					continue
				}
				_ = c.Close()
				conns[i] = nil
			}
			select {
			case <-next.C:
			case <-ctx.Done():
				return
			}
			c, err := dialer.DialContext(ctx, "tcp", f.address)
			if err != nil {
				continue
			}
			f.opened.Add(1)
			conns[i] = c
			_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
			_, _ = io.WriteString(c, said[i%3])
		}
	}
}

// cut reports whether the other side has closed the connection.
func cut(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Microsecond))
	var b [512]byte
	_, err := c.Read(b[:])
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// forge posts a forged message again and again.
func (f *flood) forge(ctx context.Context, body []byte, pace time.Duration) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	next := time.NewTicker(pace)
	defer next.Stop()
	for ctx.Err() == nil {
		<-next.C
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(body))
		if err != nil {
			return
		}
		res, err := client.Do(req)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusServiceUnavailable {
			f.forged.Add(1)
		}
	}
}

// post is one try of SMN: a connection of its own, and 5 s of patience.
func (f *flood) post(ctx context.Context, body []byte) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// memory is what the process says of itself.
type memory struct {
	inUse, resident, goroutines float64 // bytes of heap and stacks; bytes
	answer                      time.Duration
}

func (m memory) with(s world.Samples) memory {
	m.inUse = max(m.inUse, s.Sum("go_memstats_heap_inuse_bytes")+s.Sum("go_memstats_stack_inuse_bytes"))
	m.resident = max(m.resident, s.Sum("process_resident_memory_bytes"))
	m.goroutines = max(m.goroutines, s.Sum("go_goroutines"))
	return m
}

func (m *memory) see(s world.Samples, answer time.Duration) {
	*m = m.with(s)
	m.answer = max(m.answer, answer)
}

func (m memory) String() string {
	return fmt.Sprintf("heap and stacks %.0f MiB, resident %.0f MiB, %v goroutines, admin answered in %v",
		m.inUse/(1<<20), m.resident/(1<<20), m.goroutines, m.answer)
}
