// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// watched is a buffer that may be read while somebody writes to it.
type watchedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *watchedBuffer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *watchedBuffer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// front is a public URL that leads to an address as soon as that is written somewhere.
func front(t *testing.T) (public string, leadTo func(log *watchedBuffer, form string)) {
	var target atomic.Pointer[url.URL]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := target.Load(); to != nil {
			httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/smn", func(log *watchedBuffer, form string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if found := regexp.MustCompile(form).FindStringSubmatch(log.String()); found != nil {
				target.Store(&url.URL{Scheme: "http", Host: found[1]})
				return
			}
		}
		t.Errorf("no address in %s", log)
	}
}

// TestDoctorThroughTheRunningService runs the commands against a real API server and the simulated cloud over HTTP, where a
// minute takes a second.
func TestDoctorThroughTheRunningService(t *testing.T) {
	sim, err := simcloud.Start(simcloud.Options{Speed: 60})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { sim.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait(); _ = sim.Close() })
	kube := shared.Kubernetes(t)
	ns := kube.Namespace(t)
	admin, err := dynamic.NewForConfig(kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	f := &planWorld{t: t, kube: kube, admin: admin, sim: sim, here: ns, there: ns}
	f.database(ns, "db", simcloud.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 42}})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, sim.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := apiserver.WriteKubeconfig(kubeconfig, kube.Config()); err != nil {
		t.Fatal(err)
	}
	common := []string{
		"--kubeconfig", kubeconfig, "--smn-ca-file", ca, "--smn-cert-hosts", sim.CertHost(), "--smn-confirm-hosts", sim.ConfirmHost(),
		"--watch-namespaces", ns, "--lease-namespace", ns,
	}
	public, leadTo := front(t)
	log := &watchedBuffer{}
	running.Go(func() {
		args := append([]string{"serve", "--public-url", public, "--webhook-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--drain-delay", "0s"}, common...)
		if code := run(ctx, args, f.env(), nil, log, log); code != exitOK {
			t.Errorf("serve ended with %d: %s", code, log)
		}
	})
	leadTo(log, `"webhook":"([^"]+)"`)
	for end := time.Now().Add(10 * time.Minute); !strings.Contains(log.String(), `"leading":true`) && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
	}
	t.Parallel() // not before: serve sets client-go's logger, which other tests' clients read

	examine := func(want int, args ...string) (out, errs *watchedBuffer) {
		t.Helper()
		out, errs = &watchedBuffer{}, &watchedBuffer{}
		if code := run(t.Context(), slices.Concat([]string{"doctor", "-n", ns, "--wait", "5m"}, common, args), f.env(), nil, out, errs); code != want {
			t.Errorf("exit code %d, want %d\n%s\n%s", code, want, out, errs)
		}
		for _, topic := range sim.Topics() {
			if strings.HasPrefix(topic.Name, "autopilot-doctor") {
				t.Errorf("topic %s is left", topic.Name)
			}
		}
		return out, errs
	}

	out, _ := examine(exitOK, "--public-url", public, "db")
	well := "ok|warning"
	if !apiserver.Real() {
		well += "|unseen" // Kubernetes in memory has neither the schema nor rights
	}
	for _, check := range doctor.Checks() {
		if !regexp.MustCompile(`(?m)^(` + well + `) +` + check.ID + ` `).MatchString(out.String()) {
			t.Errorf("%s is not well:\n%s", check.ID, out)
		}
	}
	for _, a := range doctor.Assumptions() {
		if !regexp.MustCompile(`(?m)^(ok|unseen) +` + a.ID + ` `).MatchString(out.String()) {
			t.Errorf("%s is not well:\n%s", a.ID, out)
		}
	}

	// The same by itself, for programs, and the messages kept.
	alone, leadToDoctor := front(t)
	dir := filepath.Join(t.TempDir(), "captured")
	errs := &watchedBuffer{}
	running.Go(func() { leadToDoctor(errs, `listening at (\S+)`) })
	answer := &watchedBuffer{}
	if code := run(t.Context(), slices.Concat([]string{"doctor", "-n", ns, "--wait", "5m", "-o", "json", "--listen", "127.0.0.1:0", "--capture", dir, "--public-url", alone, "db"}, common), f.env(), nil, answer, errs); code != exitOK {
		t.Errorf("exit code %d\n%s\n%s", code, answer, errs)
	}
	var told struct {
		Checks []doctor.Result
		Failed int
	}
	if err := json.Unmarshal([]byte(answer.String()), &told); err != nil || told.Failed != 0 || len(told.Checks) < len(doctor.Checks())+len(doctor.Assumptions()) {
		t.Errorf("%v: %s", err, answer)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 3 {
		t.Fatalf("captured %v, %v", files, err)
	}
	for _, file := range files {
		body, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		e, err := smn.ParseEnvelope(body)
		if err != nil || e.Signature != "cut-out" || regexp.MustCompile(`token=[0-9a-f]{8}`).Match(body) {
			t.Errorf("%s: %v: %s", file.Name(), err, body)
		}
		if e.Type == smn.TypeNotification {
			if _, err := smn.ParseAlarm(e.Message); err != nil {
				t.Errorf("%s: %v", file.Name(), err)
			}
		}
	}

	if out, _ := examine(exitError, "--public-url", public, "nobody"); !strings.Contains(out.String(), "There is no Rds") {
		t.Errorf("%s", out)
	}
}

// A recording contains what the cloud answered, also if the cluster cannot be reached, and nothing that names the tenant.
func TestDoctorRecordsTheCloud(t *testing.T) {
	sim, err := simcloud.Start(simcloud.Options{Speed: 60})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	env := map[string]string{}
	for _, kv := range sim.Env() {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	file := filepath.Join(t.TempDir(), "eu-de.jsonl")
	args := []string{"doctor", "--public-url", "http://127.0.0.1:9/smn", "--wait", "1s", "--kubeconfig", filepath.Join(t.TempDir(), "none"), "--record", file}
	out, errs := &watchedBuffer{}, &watchedBuffer{}
	if code := run(t.Context(), args, func(key string) string { return env[key] }, nil, out, errs); code != exitError {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
	recorded, err := os.ReadFile(file)
	if err != nil || bytes.Count(recorded, []byte("\n")) < 5 {
		t.Fatalf("%v: %s\n%s\n%s", err, recorded, out, errs)
	}
	for _, secret := range []string{env["OS_PASSWORD"], env["OS_USERNAME"], env["OS_DOMAIN_NAME"], env["OS_PROJECT_NAME"], sim.ProjectID(), "127.0.0.1"} {
		if bytes.Contains(recorded, []byte(secret)) {
			t.Errorf("%q is in the recording: %s", secret, recorded)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
