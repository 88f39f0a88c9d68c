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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/internal/doctor"
	"github.com/mcsps/rds-autopilot/test/apiserver"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// watchedBuffer is a buffer that may be read during a write.
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

// publicURL returns a URL, and a function that forwards its requests to an address as soon as a log has it. form is a
// regular expression whose group is the address.
func publicURL(t *testing.T) (public string, forwardTo func(log *watchedBuffer, form string)) {
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

// TestDoctorWithItsOwnReceiver runs the command on a cluster and the simulated cloud over HTTP, where a
// minute takes a second.
func TestDoctorWithItsOwnReceiver(t *testing.T) {
	t.Parallel()
	sim, err := simcloud.Start(simcloud.Options{Speed: 60})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { sim.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait(); _ = sim.Close() })
	f := newPlanWorld(t, sim)
	ns := f.here
	f.database(ns, "db", simcloud.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 42}})
	files := t.TempDir()
	ca, kubeconfig, captured := filepath.Join(files, "ca.pem"), filepath.Join(files, "kubeconfig"), filepath.Join(files, "captured")
	if err := os.WriteFile(ca, sim.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := apiserver.WriteKubeconfig(kubeconfig, f.kube.Config()); err != nil {
		t.Fatal(err)
	}
	public, forwardTo := publicURL(t)
	out, errs := &watchedBuffer{}, &watchedBuffer{}
	running.Go(func() { forwardTo(errs, `listening at (\S+)`) })
	code := run(t.Context(), []string{
		"doctor", "-n", ns, "db", "--wait", "5m", "-o", "json", "--public-url", public, "--listen", "127.0.0.1:0",
		"--capture", captured, "--kubeconfig", kubeconfig, "--watch-namespaces", ns, "--lease-namespace", ns,
		"--smn-ca-file", ca, "--smn-cert-hosts", sim.CertHost(), "--smn-confirm-hosts", sim.ConfirmHost(),
	}, f.env(), out, errs)
	if code != exitOK {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
	for _, topic := range sim.Topics() {
		t.Errorf("topic %s is left", topic.Name)
	}
	var report struct {
		Checks []doctor.Result
		Failed int
	}
	if err := json.Unmarshal([]byte(out.String()), &report); err != nil || report.Failed != 0 {
		t.Fatalf("%v: %s", err, out)
	}
	states := map[string]doctor.State{}
	for _, c := range report.Checks {
		states[c.Check] = c.State
	}
	for _, check := range doctor.Checks() {
		s := states[check.ID]
		if s == doctor.Unseen && !apiserver.Real() {
			continue // Kubernetes in memory has neither the schema nor rights
		}
		if s != doctor.OK && s != doctor.Warning {
			t.Errorf("check %s: %q", check.ID, s)
		}
	}
	for _, a := range doctor.Assumptions() {
		if s := states[a.ID]; s != doctor.OK && s != doctor.Unseen {
			t.Errorf("assumption %s: %q", a.ID, s)
		}
	}
	bodies, err := os.ReadDir(captured)
	if err != nil || len(bodies) < 3 {
		t.Fatalf("captured %v, %v", bodies, err)
	}
	for _, file := range bodies {
		body, err := os.ReadFile(filepath.Join(captured, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		e, err := smn.ParseEnvelope(body)
		if err != nil || e.Signature != "cut-out" || regexp.MustCompile(`token=[0-9a-f]{8}`).Match(body) {
			t.Errorf("%s: %v: %s", file.Name(), err, body)
		}
	}
}

// A recording contains what the cloud answered, also if the cluster cannot be reached, and nothing that names the tenant.
func TestDoctorRecordsTheCloud(t *testing.T) {
	sim, err := simcloud.Start(simcloud.Options{Speed: 60})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	env := environment(sim.Env()...)
	file := filepath.Join(t.TempDir(), "eu-de.jsonl")
	args := []string{"doctor", "--public-url", "http://127.0.0.1:9/smn", "--wait", "1s", "--kubeconfig", filepath.Join(t.TempDir(), "none"), "--record", file}
	out, errs := &watchedBuffer{}, &watchedBuffer{}
	if code := run(t.Context(), args, env, out, errs); code != exitError {
		t.Errorf("exit code %d\n%s\n%s", code, out, errs)
	}
	recorded, err := os.ReadFile(file)
	if err != nil || bytes.Count(recorded, []byte("\n")) < 5 {
		t.Fatalf("%v: %s\n%s\n%s", err, recorded, out, errs)
	}
	for _, secret := range []string{env("OS_PASSWORD"), env("OS_USERNAME"), env("OS_DOMAIN_NAME"), env("OS_PROJECT_NAME"), sim.ProjectID(), "127.0.0.1"} {
		if bytes.Contains(recorded, []byte(secret)) {
			t.Errorf("%q is in the recording: %s", secret, recorded)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
