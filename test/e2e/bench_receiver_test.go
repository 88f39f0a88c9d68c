// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	benchPairs       = 5 // of runs against the floor; the median counts
	benchMessages    = 4000
	benchStored      = 480
	benchConnections = 16
)

// floorVariable makes this test binary the floor of BenchmarkMessages in place of running tests.
const floorVariable = "RDS_AUTOPILOT_FLOOR"

// serveFloor is the least that a receiver must do: read the message, and verify one signature of RSA-2048.
func serveFloor() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte("any"))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		sha256.Sum256(body)
		if err == nil {
			err = rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], signature)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}))
}

// BenchmarkMessages compares what a message costs the real binary, over connections that are kept, with the floor. Both are
// processes of their own, so that the sender's work does not count. ns/op says nothing here.
func BenchmarkMessages(b *testing.B) {
	w := shared.Start(b, world.Options{Cloud: simcloud.Options{Speed: 1}})
	p := w.MustServe(b)
	p.MustLead(b)
	db := w.MustAdd(b, world.Database{Name: "db", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	a, err := db.WaitAutopilot(world.Within(b), "it is armed", world.Armed)
	if err != nil {
		b.Fatal(err)
	}
	rule, ok := db.Rule(v1alpha1.MetricStorage)
	if !ok {
		b.Fatal("no rule")
	}
	known, err := w.Cloud.SignedAlarm(fmt.Sprintf("%032x", 1), a.Status.Alarms.TopicURN, rule.ID, 85)
	if err != nil {
		b.Fatal(err)
	}
	if status, _, err := w.Post(b.Context(), known); status != http.StatusOK {
		b.Fatal(status, err)
	}
	floorURL, floorPID := startFloor(b)
	b.Run("stored", func(b *testing.B) { benchStoring(b, w, floorURL, floorPID) })
	for _, c := range []struct {
		name   string
		body   []byte
		status int
	}{
		{"duplicate", known, http.StatusOK},
		{"forged", bytes.Replace(known, []byte(`\"alarm_status\":\"alarm\"`), []byte(`\"alarm_status\":\"ok\"`), 1), http.StatusForbidden},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ratios, cost, floor, p99 []float64
			for b.Loop() {
				for range benchPairs {
					bare, _ := send(b, floorURL, floorPID, c.body, http.StatusOK)
					ours, slowest := send(b, p.WebhookURL+"/smn", p.PID, c.body, c.status)
					ratios, cost, floor, p99 = append(ratios, ours/bare), append(cost, ours), append(floor, bare), append(p99, slowest)
				}
			}
			b.ReportMetric(median(ratios), "×floor")
			b.ReportMetric(median(cost)*1e6, "cpu-µs/message")
			b.ReportMetric(median(floor)*1e6, "floor-µs/message")
			b.ReportMetric(median(p99)*1e3, "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// benchStoring is what a message costs that is stored. A process receives them that does not lead, so that what is then decided does
// not count. Each connection has a database of its own: no message meets a conflict.
func benchStoring(b *testing.B, w *world.World, floorURL string, floorPID int) {
	standby := w.MustServe(b)
	var topics, rules []string
	for i := range benchConnections {
		db := w.MustAdd(b, world.Database{Name: fmt.Sprintf("stored-%02d", i), Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
		a, err := db.WaitAutopilot(world.Within(b), "it is armed", world.Armed)
		if err != nil {
			b.Fatal(err)
		}
		rule, _ := db.Rule(v1alpha1.MetricStorage)
		topics, rules = append(topics, a.Status.Alarms.TopicURN), append(rules, rule.ID)
	}
	var ratios, cost, floor []float64
	for b.Loop() {
		for range benchPairs {
			var bodies [benchConnections][][]byte
			for i := range benchStored {
				at := i % benchConnections
				body, err := w.Cloud.SignedAlarm(fmt.Sprintf("%032x", time.Now().UnixNano()), topics[at], rules[at], 85)
				if err != nil {
					b.Fatal(err)
				}
				bodies[at] = append(bodies[at], body)
			}
			bare, _ := send(b, floorURL, floorPID, bodies[0][0], http.StatusOK)
			before := cpuSeconds(b, standby.PID)
			var senders sync.WaitGroup
			for _, own := range bodies {
				senders.Go(func() {
					client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
					defer client.CloseIdleConnections()
					for _, body := range own {
						status, err := postOne(client, standby.WebhookURL+"/smn", body)
						if err != nil {
							b.Error(err)
							return
						}
						if status != http.StatusOK {
							b.Errorf("status %d, want 200", status)
						}
					}
				})
			}
			senders.Wait()
			ours := (cpuSeconds(b, standby.PID) - before) / benchStored
			ratios, cost, floor = append(ratios, ours/bare), append(cost, ours), append(floor, bare)
		}
	}
	b.ReportMetric(median(ratios), "×floor")
	b.ReportMetric(median(cost)*1e6, "cpu-µs/message")
	b.ReportMetric(median(floor)*1e6, "floor-µs/message")
	b.ReportMetric(0, "ns/op")
}

func startFloor(b *testing.B) (url string, pid int) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), floorVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		b.Fatal(err)
	}
	return "http://" + strings.TrimSpace(string(line[:n])), cmd.Process.Pid
}

// send posts the message again and again, and returns the seconds of CPU for each that the process needed, and the 99th percentile of the
// seconds until the answer.
func send(b *testing.B, url string, pid int, body []byte, status int) (cpu, p99 float64) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchConnections}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	took := make([]float64, benchMessages)
	var next atomic.Int64
	before := cpuSeconds(b, pid)
	var senders sync.WaitGroup
	for range benchConnections {
		senders.Go(func() {
			for i := next.Add(1) - 1; i < benchMessages; i = next.Add(1) - 1 {
				start := time.Now()
				got, err := postOne(client, url, body)
				if err != nil {
					b.Error(err)
					return
				}
				if took[i] = time.Since(start).Seconds(); got != status {
					b.Errorf("status %d, want %d", got, status)
					return
				}
			}
		})
	}
	senders.Wait()
	cpu = (cpuSeconds(b, pid) - before) / benchMessages
	slices.Sort(took)
	return cpu, took[len(took)*99/100]
}

// postOne sends a message, and reads the answer to its end: the connection is kept.
func postOne(client *http.Client, url string, body []byte) (status int, err error) {
	answer, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, nil
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}
