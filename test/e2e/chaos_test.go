// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	chaosLasts    = time.Minute
	chaosVolumeGB = 200  // the alarm of this and of every larger volume is at 90 %
	chaosMaxGB    = 2000 // of a volume that is filled; steps double
	chaosUsed     = 0.91 // of the volume: one step ends the alarm
	chaosPause    = 12 * time.Second
)

// chaos is two replicas of the real binary, and databases that fill up while the replicas are killed and the API server is
// frozen.
type chaos struct {
	*world.World
	t         *testing.T
	replicas  [2]*world.Process
	databases [8]*filling
}

// filling is a database whose volume the test fills again and again.
type filling struct {
	*world.DB
	filled int // how often

	mu    sync.Mutex
	sizes []int32 // of spec.volumesize, without repetitions
}

func (f *filling) saw(r *otcv1.Rds) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.sizes); n == 0 || f.sizes[n-1] != r.Spec.VolumeSize {
		f.sizes = append(f.sizes, r.Spec.VolumeSize)
	}
}

// TestKilledReplicasLoseNoAlarmAndRepeatNoChange kills the replicas, and freezes the API server after every third kill. SMN
// sends every third message twice. Each filled volume must grow exactly once, and the status must have every signal that was
// answered with 200. The swarm has the other faults.
func TestKilledReplicasLoseNoAlarmAndRepeatNoChange(t *testing.T) {
	level.Long(t)
	t.Parallel()
	var sent atomic.Int64
	c := &chaos{t: t}
	c.World = shared.StartAlone(t, world.Options{Race: true, OnLine: c.read, Cloud: simcloud.Options{
		Settings: simcloud.Settings{RetryInterval: 5 * time.Minute},
		DeliveryFault: func(simcloud.Delivery) simcloud.DeliveryFault {
			return simcloud.DeliveryFault{Duplicate: sent.Add(1)%3 == 0}
		},
	}})
	for i := range c.replicas {
		c.replicas[i] = c.start()
	}
	for i := range c.databases {
		c.databases[i] = c.add(fmt.Sprint("db-", i))
	}
	began := time.Now()
	for i := 0; time.Since(began) < chaosLasts; i++ {
		for _, f := range c.databases {
			c.fill(f)
		}
		time.Sleep(rand.N(2 * time.Second)) // the replica is somewhere in its work
		killed := &c.replicas[i%2]
		if err := (*killed).Kill(); err != nil {
			t.Error(err)
		}
		if *killed = c.start(); i%3 == 2 {
			c.freezeAPIServer()
		}
	}
	growths := 0
	for _, f := range c.databases {
		c.judge(f)
		growths += f.filled
	}
	t.Logf("%d growths", growths)
	if growths < len(c.databases) {
		t.Error("too few growths: the test shows nothing")
	}
	for _, p := range c.replicas {
		if err := p.Stop(world.Within(t)); err != nil { // also after a race
			t.Error(err)
		}
	}
}

// read fails the test if a process races or panics.
func (c *chaos) read(p *world.Process, l world.Line) {
	if strings.Contains(l.Raw, "DATA RACE") || strings.Contains(l.Raw, "panic") || strings.Contains(l.Raw, "fatal error") {
		c.t.Errorf("process %d wrote: %s", p.PID, l.Raw)
	}
}

// start starts a replica, which may end as it likes.
func (c *chaos) start() *world.Process {
	c.t.Helper()
	p, err := c.Serve(world.Within(c.t))
	must(c.t, err)
	return p
}

func (c *chaos) add(name string) *filling {
	c.t.Helper()
	f := &filling{DB: c.MustAdd(c.t, world.Database{
		Name: name, Flavor: "rds.mysql.n1.large.4", VolumeGB: chaosVolumeGB, Workload: simcloud.Workload{UsedGB: 10},
	})}
	must(c.t, f.CreateAutopilot(world.Within(c.t), `{"storage":{"maxGB":4000}}`))
	go f.WatchRds(c.t.Context(), f.saw)
	waitArmed(c.t, f.DB)
	return f
}

// fill fills a volume whose last alarm is over.
func (c *chaos) fill(f *filling) {
	c.t.Helper()
	rule, ok := f.Rule(v1alpha1.MetricStorage)
	in := f.Instance()
	used := chaosUsed * float64(in.VolumeGB)
	if !ok || rule.State != simcloud.StateOK || in.Workload.UsedGB >= used || in.VolumeGB > chaosMaxGB {
		return
	}
	if err := f.SetWorkload(simcloud.Workload{UsedGB: used}); err != nil {
		c.t.Error(err)
	}
	f.filled++
}

// freezeAPIServer keeps all connections open and answers nothing until the replicas are not ready any more. A message
// is answered with 503 meanwhile.
func (c *chaos) freezeAPIServer() {
	c.t.Helper()
	must(c.t, c.Kube.PauseAPIServer())
	time.Sleep(chaosPause)
	rule, _ := c.databases[0].Rule(v1alpha1.MetricStorage)
	body, err := c.Cloud.SignedAlarm(fmt.Sprintf("%032x", time.Now().UnixNano()), c.TopicURN(), rule.ID, 95)
	must(c.t, err)
	if status, text, err := c.Post(world.Within(c.t), body); err != nil || status != http.StatusServiceUnavailable {
		c.t.Errorf("a message was answered %d (%s), %v", status, text, err)
	}
	for _, p := range c.replicas {
		for path, want := range map[string]int{"/readyz": 503, "/healthz": 200} {
			what := fmt.Sprintf("%s is %d", path, want)
			must(c.t, world.Eventually(world.Within(c.t), what, func(ctx context.Context) (bool, error) {
				status, _, err := p.Get(ctx, path)
				return status == want, err
			}))
		}
	}
	must(c.t, c.Kube.ResumeAPIServer())
}

// judge waits until a database is settled, and compares its growths with what filled it.
func (c *chaos) judge(f *filling) {
	c.t.Helper()
	a, err := f.WaitAutopilot(world.Within(c.t), "its alarm is over", func(a *v1alpha1.RdsAutopilot) bool {
		in := f.Instance()
		return in.Workload.UsedGB < 0.9*float64(in.VolumeGB) && state(a, v1alpha1.MetricStorage) == v1alpha1.StateOK && world.Armed(a) &&
			a.Status.Instance != nil && int(a.Status.Instance.VolumeGB) == in.VolumeGB
	})
	if err != nil {
		c.t.Error(err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sizes) != f.filled+1 || !slices.IsSorted(f.sizes) {
		c.t.Errorf("%s was filled %d times, and spec.volumesize was %v, want a growth for each", f.Name, f.filled, f.sizes)
	}
	signals := map[v1alpha1.Metric]time.Time{}
	for _, s := range a.Status.Intake.Signals {
		if _, twice := signals[s.Metric]; twice {
			c.t.Errorf("%s has two signals for %s", f.Name, s.Metric)
		}
		signals[s.Metric] = s.AlarmTime.Time
	}
	rule, _ := f.Rule(v1alpha1.MetricStorage)
	for _, at := range c.acknowledged(rule.ID) {
		if signals[v1alpha1.MetricStorage].Before(at) {
			c.t.Errorf("%s: the alarm of %v was answered with 200, and its signal is not stored: %v", f.Name, at, signals)
		}
	}
}

// acknowledged returns the times of a rule's alarms that the service answered with 200.
func (c *chaos) acknowledged(rule string) (times []time.Time) {
	for _, d := range c.Cloud.Deliveries() {
		var envelope simcloud.Envelope
		var alarm struct {
			ID   string `json:"alarm_id"`
			Time int64  `json:"time"`
		}
		if d.State != simcloud.Delivered || d.Type != simcloud.TypeNotification {
			continue
		}
		if json.Unmarshal(d.Body, &envelope) != nil || json.Unmarshal([]byte(envelope.Message), &alarm) != nil {
			c.t.Errorf("a message that cannot be read was sent: %s", d.Body)
		}
		if alarm.ID == rule {
			times = append(times, time.UnixMilli(alarm.Time))
		}
	}
	return times
}

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
	waitArmed(t, db)
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
		must(t, err)
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
