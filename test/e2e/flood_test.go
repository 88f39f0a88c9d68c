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
	floodConnections = 800 // fewer than the receiver keeps: beyond that, alarms wait for a place
	floodAlarms      = 15
	floodPace        = 1000         // new connections a second, and ten times as many as forged messages
	floodMemory      = 128 << 20    // bytes of heap and stacks in addition
	floodGoroutines  = 2*1024 + 200 // two for each connection that the receiver keeps
	floodWorkers     = 8            // because the race detector allows 8,128 goroutines
)

// TestAlarmsAreStoredWhileTheReceiverIsFlooded attacks the real binary over TCP, without an ingress. A third of the connections
// send nothing, a third send their headers letter by letter, and a third their body. Each closed connection is opened again. A
// hundred forged messages a second come too. Every alarm must be stored after answers of 200 or 503 only, the admin address must
// answer, and heap, stacks and goroutines must stay bounded.
func TestAlarmsAreStoredWhileTheReceiverIsFlooded(t *testing.T) {
	if !level.IsSoak(t) {
		t.Skip("LEVEL=soak runs it")
	}
	w := shared.Start(t, world.Options{Race: true})
	p := w.MustServe(t)
	ctx := world.Within(t)
	db := w.MustAdd(t, world.Database{Name: "flooded", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	rule, ok := db.Rule(v1alpha1.MetricStorage)
	if !ok {
		t.Fatal("no rule")
	}
	alarm := func(i int) []byte {
		body, err := w.Cloud.SignedAlarm(fmt.Sprintf("%032x", i+1), w.TopicURN(), rule.ID, 95)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	// usage returns the bytes of heap and stacks, and the number of goroutines.
	usage := func() (memory, goroutines float64) {
		t.Helper()
		m, err := p.Metrics(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return m.Sum("go_memstats_heap_inuse_bytes") + m.Sum("go_memstats_stack_inuse_bytes"), m.Sum("go_goroutines")
	}
	before, _ := usage()
	attack, stop := context.WithCancel(ctx)
	defer stop()
	f := &flood{address: strings.TrimPrefix(p.WebhookURL, "http://"), url: p.WebhookURL + "/smn"}
	connections := floodConnections
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < floodConnections+1000 {
		connections = int(limit.Cur) / 2
		t.Logf("scaled down to %d connections: the limit is %d open files", connections, limit.Cur)
	}
	for range floodWorkers {
		f.running.Go(func() { f.slowClients(attack, connections/floodWorkers, time.Second*floodWorkers/floodPace) })
	}
	forged := bytes.Replace(alarm(1<<20), []byte(`\"alarm_status\":\"alarm\"`), []byte(`\"alarm_status\":\"ok\"`), 1)
	for range floodWorkers {
		f.running.Go(func() { f.forge(attack, forged, time.Second*floodWorkers/floodPace*10) })
	}
	if err := world.Eventually(ctx, "the flood has begun", func(context.Context) (bool, error) {
		return f.opened.Load() >= int64(connections) && f.forged.Load() > 100, nil
	}); err != nil {
		t.Fatal(err)
	}

	for i := range floodAlarms {
		body, isStored := alarm(i), false
		for !isStored && ctx.Err() == nil {
			status, err := f.post(ctx, body)
			switch {
			case err != nil: // SMN repeats it, like after a 503
				t.Logf("alarm %d: %v", i, err)
			case status == http.StatusOK:
				isStored = true
			case status != http.StatusServiceUnavailable:
				t.Fatalf("alarm %d: status %d", i, status)
			}
			if !isStored {
				time.Sleep(time.Second) // SMN waits longer
			}
		}
		if !isStored {
			t.Fatalf("alarm %d is not stored", i)
		}
		if status, _, err := p.Get(ctx, "/readyz"); err != nil || status != http.StatusOK {
			t.Errorf("/readyz: %d, %v", status, err)
		}
		if memory, goroutines := usage(); memory-before > floodMemory || goroutines > floodGoroutines {
			t.Errorf("heap and stacks have grown by %.0f MiB, and there are %.0f goroutines", (memory-before)/(1<<20), goroutines)
		}
	}
	t.Logf("%d connections opened, %d forged messages answered", f.opened.Load(), f.forged.Load())
	stop()
	f.running.Wait()
	last, err := db.Autopilot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%032x", floodAlarms)
	if signals := last.Status.Intake.Signals; len(signals) == 0 || signals[0].MessageID != want || last.Status.Pending != nil {
		t.Errorf("intake %+v, want the last alarm; pending %+v, want nothing", signals, last.Status.Pending)
	}
}

// flood is an attack, and its counts.
type flood struct {
	address, url string

	running        sync.WaitGroup
	opened, forged atomic.Int64
}

// slowClients keeps n connections open, and opens a closed one again. One in three sends nothing, the others send a letter at a
// time.
func (f *flood) slowClients(ctx context.Context, n int, pace time.Duration) {
	const header = "POST /smn HTTP/1.1\r\nHost: x\r\nX-Slow: "
	const body = "POST /smn HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
	first := []string{"", header, body}
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
				if _, err := io.WriteString(c, text); err == nil && !isClosed(c) {
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
			_, _ = io.WriteString(c, first[i%3])
		}
	}
}

// isClosed reports whether the other side has closed the connection.
func isClosed(c net.Conn) bool {
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

// post posts a message as SMN does: over a connection of its own, for at most 5 seconds.
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
