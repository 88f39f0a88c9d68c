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
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	benchPairs       = 5 // of runs, one with the floor. The median counts
	benchConnections = 16
)

// floorVariable makes this test binary the floor of BenchmarkMessages in place of running tests.
const floorVariable = "RDS_AUTOPILOT_FLOOR"

// serveFloor serves the least that a receiver must do: it reads the message, and verifies one signature of RSA-2048.
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
// processes of their own, so that the sender's work does not count. ns/op has no meaning here.
func BenchmarkMessages(b *testing.B) {
	w := shared.Start(b, world.Options{Cloud: simcloud.Options{Speed: 1}})
	leader := w.MustServe(b)
	leader.MustLead(b)
	standby := w.MustServe(b)
	var databases [benchConnections]*world.DB // one for each connection, so that no stored message meets a conflict
	for i := range databases {
		databases[i] = w.MustAdd(b, world.Database{Name: fmt.Sprintf("db-%02d", i), Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	}
	var rules [benchConnections]string
	for i, db := range databases {
		waitArmed(b, db)
		rule, _ := db.Rule(v1alpha1.MetricStorage)
		rules[i] = rule.ID
	}
	alarm := func(i int) []byte {
		body, err := w.Cloud.SignedAlarm(fmt.Sprintf("%032x", time.Now().UnixNano()), w.TopicURN(), rules[i], 85)
		must(b, err)
		return body
	}
	known := alarm(0)
	if status, _, err := w.Post(b.Context(), known); status != http.StatusOK {
		b.Fatal(status, err)
	}
	forged := bytes.Replace(known, []byte(`\"alarm_status\":\"alarm\"`), []byte(`\"alarm_status\":\"ok\"`), 1)
	bodies := func(each int, body func(connection int) []byte) (all [benchConnections][][]byte) {
		for i := range all {
			for range each {
				all[i] = append(all[i], body(i))
			}
		}
		return all
	}
	same := func(body []byte) func(int) []byte { return func(int) []byte { return body } }
	floorURL, floorPID := startFloor(b)
	for _, c := range []struct {
		name     string
		receiver *world.Process // of stored messages, the standby: so the decisions that follow do not count
		messages int            // over each connection
		body     func(connection int) []byte
		status   int
	}{
		{"stored", standby, 30, alarm, http.StatusOK},
		{"duplicate", leader, 250, same(known), http.StatusOK},
		{"forged", leader, 250, same(forged), http.StatusForbidden},
	} {
		b.Run(c.name, func(b *testing.B) {
			found := figures{}
			for b.Loop() {
				for range benchPairs {
					floor, _ := send(b, floorURL, floorPID, bodies(250, same(known)), http.StatusOK)
					cost, p99 := send(b, c.receiver.WebhookURL+"/smn", c.receiver.PID, bodies(c.messages, c.body), c.status)
					found.add("×floor", cost/floor)
					found.add("cpu-µs/message", cost*1e6)
					found.add("floor-µs/message", floor*1e6)
					found.add("p99-ms", p99*1e3)
				}
			}
			found.report(b)
		})
	}
}

func startFloor(b *testing.B) (url string, pid int) {
	b.Helper()
	self, err := os.Executable()
	must(b, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), floorVariable+"=1")
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make([]byte, 64)
	n, err := out.Read(line)
	must(b, err)
	return "http://" + strings.TrimSpace(string(line[:n])), cmd.Process.Pid
}

// send posts the messages of each connection. It returns the seconds of CPU that the process needed for
// each message, and the 99th percentile of the seconds until the answer.
func send(b *testing.B, url string, pid int, bodies [benchConnections][][]byte, status int) (cpu, p99 float64) {
	b.Helper()
	var mu sync.Mutex
	var took []float64
	before := cpuSeconds(b, pid)
	var senders sync.WaitGroup
	for _, messages := range bodies {
		senders.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			defer client.CloseIdleConnections()
			for _, body := range messages {
				start := time.Now()
				if got, err := postOne(client, url, body); err != nil || got != status {
					b.Errorf("status %d, want %d: %v", got, status, err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(start).Seconds())
				mu.Unlock()
			}
		})
	}
	senders.Wait()
	if b.Failed() {
		b.FailNow()
	}
	slices.Sort(took)
	return (cpuSeconds(b, pid) - before) / float64(len(took)), took[len(took)*99/100]
}

// postOne sends a message, and reads the answer to its end, so that the connection is kept.
func postOne(client *http.Client, url string, body []byte) (status int, err error) {
	answer, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, nil
}

// figures are measured values by their unit.
type figures map[string][]float64

func (f figures) add(unit string, value float64) { f[unit] = append(f[unit], value) }

// report reports the median of each unit, and leaves ns/op out.
func (f figures) report(b *testing.B) {
	b.Helper()
	for unit, values := range f {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], unit)
	}
	b.ReportMetric(0, "ns/op")
}
