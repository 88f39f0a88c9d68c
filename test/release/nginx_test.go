// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// nginx forwards messages to the service with the configuration that ingress-nginx writes. It reuses upstream connections, never
// repeats a POST that it has sent to a replica, and tries the next replica if one cannot be reached.
type nginx struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	client *http.Client
}

const nginxConf = `daemon off;
worker_processes 2;
pid nginx.pid;
error_log stderr warn;
events { multi_accept on; worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  client_body_buffer_size 8k;
  client_header_timeout 60s;
  client_body_timeout 60s;
  keepalive_timeout 75s;
  keepalive_requests 1000;
  proxy_next_upstream error timeout;
  proxy_next_upstream_timeout 0;
  proxy_next_upstream_tries 3;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  upstream upstream_balancer {
%s    keepalive 320;
    keepalive_time 1h;
    keepalive_timeout 60s;
    keepalive_requests 10000;
  }
  server {
    listen unix:%s;
    location = /smn {
      client_max_body_size 1m;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Real-IP $remote_addr;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto https;
      proxy_connect_timeout 5s;
      proxy_send_timeout 60s;
      proxy_read_timeout 60s;
      proxy_buffering off;
      proxy_request_buffering on;
      proxy_redirect off;
      proxy_pass http://upstream_balancer;
    }
  }
}
`

func startNginx(t *testing.T, backends ...*world.Process) *nginx {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Fatal("nginx is not installed (Debian: nginx-light)")
	}
	dir, err := os.MkdirTemp("", "nginx-") // short: the path of a socket has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the workers run as another user
		t.Fatal(err)
	}
	n := &nginx{t: t, dir: dir}
	n.configure(backends...)
	n.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), program, "-p", dir, "-c", "nginx.conf", "-e", "stderr")
	var output bytes.Buffer
	n.cmd.Stdout, n.cmd.Stderr = &output, &output
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = n.cmd.Process.Signal(syscall.SIGQUIT) // fails only if it has ended
		_ = n.cmd.Wait()
	})
	// One connection for each message, because SMN does not promise to keep one.
	n.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", n.socket())
		},
	}}
	err = world.Eventually(world.Within(t), "nginx listens", func(ctx context.Context) (bool, error) {
		status, err := n.post(ctx, []byte("alarm!"))
		return status == http.StatusBadRequest, err
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, output.String())
	}
	return n
}

func (n *nginx) socket() string { return filepath.Join(n.dir, "nginx.sock") }

func (n *nginx) configure(backends ...*world.Process) {
	n.t.Helper()
	var servers strings.Builder
	for _, p := range backends {
		fmt.Fprintf(&servers, "    server %s max_fails=0;\n", strings.TrimPrefix(p.WebhookURL, "http://"))
	}
	text := fmt.Sprintf(nginxConf, servers.String(), n.socket())
	if err := os.WriteFile(filepath.Join(n.dir, "nginx.conf"), []byte(text), 0o644); err != nil { //nolint:gosec // no secret
		n.t.Fatal(err)
	}
	if n.cmd != nil {
		if err := n.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *nginx) post(ctx context.Context, body []byte) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://autopilot.example.com/smn", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "text/plain; charset=UTF-8")
	res, err := n.client.Do(req)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Body.Close()
}

const (
	messages      = 3_000
	freshEvery    = 5 // the other messages are ten minutes old
	rolls         = 4
	senders       = 16
	pause         = 100 * time.Millisecond // of each sender, so that an API server on two cores can also start replicas
	databaseCount = 40
	rulesOfEach   = 3
)

// target is what a message is about: a topic and a rule of one database.
type target struct{ topic, rule string }

// armedTargets adds databases and returns their rules once they are armed. One after the other belongs to another database.
func armedTargets(ctx context.Context, t *testing.T, w *world.World) (targets []target) {
	t.Helper()
	var all []*world.DB
	for i := range databaseCount {
		all = append(all, database(t, w, "shop", fmt.Sprintf("db-%d", i), true))
	}
	for i := range rulesOfEach * len(all) {
		a, err := all[i%len(all)].WaitAutopilot(ctx, "it is armed", world.Armed)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, target{w.TopicURN(), a.Status.Alarms.Rules[i/len(all)].AlarmID})
	}
	return targets
}

// TestNoMessageIsLostWhileReplicasRoll replaces replicas under load as a Deployment does: a new replica gets ready, an old one
// gets SIGTERM, and nginx stops using the old one only after it has become unready.
func TestNoMessageIsLostWhileReplicasRoll(t *testing.T) {
	w := startWorld(t)
	ctx := world.Within(t)
	waitReadyz := func(p *world.Process, want int) {
		t.Helper()
		err := world.Eventually(ctx, fmt.Sprintf("/readyz returns %d", want), func(ctx context.Context) (bool, error) {
			status, _, err := p.Get(ctx, "/readyz")
			return status == want, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var processes []*world.Process
	startReplica := func() *world.Process {
		t.Helper()
		p, err := w.Serve(ctx, "--drain-delay", "5s", "--mode", "Recommend", "--sweep-interval", "1m", "--recheck-interval", "1m")
		if err != nil {
			t.Fatal(err)
		}
		waitReadyz(p, http.StatusOK)
		processes = append(processes, p)
		return p
	}
	replicas := []*world.Process{startReplica(), startReplica()}
	targets := armedTargets(ctx, t, w)
	n := startNginx(t, replicas...)

	var sent, repeated, rolled atomic.Int64
	var sending sync.WaitGroup
	old := time.Now().Add(-10 * time.Minute)
	send := func(i int64) {
		to := targets[(i/freshEvery+17*(i%freshEvery))%int64(len(targets))] // each gets fresh and old messages
		at := time.Now()
		if i%freshEvery != 0 {
			at = old
		}
		_, text, err := w.Cloud.AlarmMessage(to.rule, simcloud.StateAlarm, 95, at.Add(-time.Second), at)
		if err != nil {
			t.Error(err)
			return
		}
		body := w.Cloud.Sign(simcloud.Envelope{MessageID: messageID(i), TopicURN: to.topic, Message: text}).JSON()
		status, err := n.post(ctx, body)
		for try := 0; err == nil && status == http.StatusServiceUnavailable && try < 6; try++ { // SMN repeats a message as often
			repeated.Add(1)
			time.Sleep(time.Second) // SMN waits too
			status, err = n.post(ctx, body)
		}
		if err != nil || status != http.StatusOK {
			t.Errorf("message %d: %d, %v", i, status, err)
		}
	}
	for range senders {
		sending.Go(func() {
			for ctx.Err() == nil && (sent.Load() < messages || rolled.Load() < rolls) {
				send(sent.Add(1))
				time.Sleep(pause)
			}
		})
	}
	for ctx.Err() == nil && (sent.Load() < messages || rolled.Load() < rolls) {
		oldest := replicas[0]
		replicas = append(replicas, startReplica())
		n.configure(replicas...)
		replicas = replicas[1:]
		if err := oldest.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		waitReadyz(oldest, http.StatusServiceUnavailable)
		n.configure(replicas...)
		if code, err := oldest.Wait(ctx); err != nil || code != 0 {
			t.Errorf("the old replica ends with %d, %v", code, err)
		}
		rolled.Add(1)
	}
	sending.Wait()

	lines := map[string]int{} // of messages with answer 200, by result. The log has the first five of each result and second
	for _, p := range processes {
		for _, l := range p.Lines() {
			if l.Field("type") == "Notification" && l.Fields["status"] == float64(http.StatusOK) { // not a confirmation
				lines[l.Field("result")]++
			}
		}
	}
	t.Logf("%d messages, %d rolls, %d repeated after an answer 503; log lines by result: %v", sent.Load(), rolled.Load(), repeated.Load(), lines)
	if lines["stored"] == 0 {
		t.Error("no message was stored")
	}
	for result, n := range lines {
		// A message is stale if a newer one of its rule is stored. It is a duplicate if it was repeated.
		if !slices.Contains([]string{"stored", "stale", "duplicate"}, result) {
			t.Errorf("%d messages were answered with 200, but their result is %s", n, result)
		}
	}
	for _, p := range replicas {
		stop(t, p)
	}
}

func messageID(i int64) string { return fmt.Sprintf("%032x", i) }
