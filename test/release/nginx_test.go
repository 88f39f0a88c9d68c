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
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// nginx stands in front of the service with the configuration that ingress-nginx writes: upstream connections are kept and
// used again, a POST is never repeated once it was sent to a replica, a replica that cannot be reached is passed over.
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
		t.Skip("nginx is not installed (Debian: nginx-light)")
	}
	dir, err := os.MkdirTemp("", "nginx-") // short: the path of a socket has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // its workers are somebody else
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
		t.Logf("nginx said:\n%s", output.String())
	})
	// A connection for each message: nobody promises that SMN keeps one.
	n.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", n.socket())
		},
	}}
	err = world.Eventually(within(t), "nginx listens", func(ctx context.Context) (bool, error) {
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
	messages   = 10_000 // each another one
	freshEvery = 5      // the others come late, as they may: a newer alarm of the rule is stored mostly
	rolls      = 4
	senders    = 32
	databases  = 40
	rules      = 3 // of each
)

// TestNoMessageIsLostWhileReplicasRoll replaces replicas as a Deployment does, under load: a new one gets ready, an old one
// gets SIGTERM, and nginx hears of it when it is not ready any more.
func TestNoMessageIsLostWhileReplicasRoll(t *testing.T) {
	w := startWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var everybody []*world.Process
	begin := func() *world.Process {
		p, err := w.Serve(ctx, "--drain-delay", "5s", "--mode", "Recommend", "--sweep-interval", "1m", "--recheck-interval", "1m")
		if err != nil {
			t.Fatal(err)
		}
		err = world.Eventually(ctx, "it is ready", func(ctx context.Context) (bool, error) {
			status, _, err := p.Get(ctx, "/readyz")
			return status == http.StatusOK, err
		})
		if err != nil {
			t.Fatal(err)
		}
		everybody = append(everybody, p)
		return p
	}
	replicas := []*world.Process{begin(), begin()}

	type rule struct{ topic, id string }
	var targets []rule
	var all []*world.DB
	for i := range databases {
		all = append(all, database(t, w, "shop", fmt.Sprintf("db-%d", i), true))
	}
	for i := range rules * len(all) { // one after the other is about another database
		a, err := all[i%len(all)].WaitAutopilot(ctx, "it is armed", world.Armed)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, rule{a.Status.Alarms.TopicURN, a.Status.Alarms.Rules[i/len(all)].AlarmID})
	}
	n := startNginx(t, replicas...)

	var sent, again, done atomic.Int64
	var sending sync.WaitGroup
	var answered sync.Map // by number
	late := time.Now().Add(-10 * time.Minute)
	for range senders {
		sending.Go(func() {
			for ctx.Err() == nil {
				i := sent.Add(1)
				if i > messages && done.Load() >= rolls {
					return
				}
				to := targets[(i/freshEvery+17*(i%freshEvery))%int64(len(targets))] // each gets both kinds
				at := time.Now()
				if i%freshEvery != 0 {
					at = late
				}
				_, text, err := w.Cloud.AlarmMessage(to.id, simcloud.StateAlarm, 95, at.Add(-time.Second), at)
				if err != nil {
					t.Error(err)
					return
				}
				body := w.Cloud.Sign(simcloud.Envelope{MessageID: messageID(i), TopicURN: to.topic, Message: text}).JSON()
				status, err := n.post(ctx, body)
				for try := 0; err == nil && status == http.StatusServiceUnavailable && try < 6; try++ { // as SMN does
					again.Add(1)
					status, err = n.post(ctx, body)
				}
				if err != nil || status != http.StatusOK {
					t.Errorf("message %d: %d, %v", i, status, err)
				}
				answered.Store(i, true)
			}
		})
	}
	for done.Load() < rolls || sent.Load() < messages && ctx.Err() == nil {
		old, next := replicas[0], begin()
		replicas = append(replicas, next)
		n.configure(replicas...)
		replicas = replicas[1:]
		if err := old.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		// The way from the API server to nginx is longer than that to the pod: it hears of the end when that has begun.
		err := world.Eventually(ctx, "the old replica is not ready any more", func(ctx context.Context) (bool, error) {
			status, _, err := old.Get(ctx, "/readyz")
			return status == http.StatusServiceUnavailable, err
		})
		if err != nil {
			t.Fatal(err)
		}
		n.configure(replicas...)
		if code, err := old.Wait(ctx); err != nil || code != 0 {
			t.Errorf("the old replica ends with %d, %v", code, err)
		}
		done.Add(1)
		t.Logf("%d messages after %d rolls", sent.Load(), done.Load())
	}
	sending.Wait()

	result, refusals := map[string]string{}, map[string]int{}
	for _, p := range everybody {
		for _, l := range p.Lines() {
			if l.Msg != "notification" {
				continue
			}
			if text := l.Field("error"); text != "" {
				refusals[text[:min(len(text), 60)]]++
			}
			if l.Fields["status"] == float64(http.StatusOK) {
				if id := l.Field("messageID"); result[id] == "" {
					result[id] = l.Field("result")
				}
			}
		}
	}
	counts := map[string]int{}
	number := 0
	answered.Range(func(i, _ any) bool {
		number++
		counts[result[messageID(i.(int64))]]++
		return true
	})
	t.Logf("%d messages, %d rolls, %d answers 503 that were sent again; results: %v; errors: %v", number, done.Load(), again.Load(), counts, refusals)
	if number < messages {
		t.Errorf("%d of %d messages are answered", number, messages)
	}
	for kind, count := range counts {
		switch kind {
		case "stored", "stale", "duplicate": // stale: a newer one is stored; duplicate: it was sent again
		default:
			t.Errorf("%d messages have result %q", count, kind)
		}
	}
	for _, p := range replicas {
		stop(t, p)
	}
}

func messageID(i int64) string { return fmt.Sprintf("%032x", i) }
