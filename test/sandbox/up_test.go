// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/world"
)

// sandbox is a running sandbox up, with a folder of its own for temporary files.
type sandbox struct {
	t            *testing.T
	address, dir string
	cmd          *exec.Cmd
	output       *output
}

// output keeps what a process prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// startSandbox starts make sandbox's command, and waits until it prints where its pages are.
func startSandbox(ctx context.Context, t *testing.T) *sandbox {
	t.Helper()
	s := &sandbox{t: t, dir: t.TempDir(), output: &output{}}
	binary := filepath.Join(t.TempDir(), "sandbox")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.cmd = exec.CommandContext(ctx, binary, "up")
	s.cmd.Env = append(os.Environ(), "TMPDIR="+s.dir)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`Simulated cloud (http://\S+)/cloud/`)
	err := world.Eventually(ctx, "it prints where its pages are", func(context.Context) (bool, error) {
		found := address.FindStringSubmatch(s.output.String())
		if found != nil {
			s.address = found[1]
		}
		return found != nil, nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.output)
	}
	return s
}

// ask gets a page, or posts a form if there is one, and returns the status and the text after all redirects.
func (s *sandbox) ask(ctx context.Context, path, form string, headers ...string) (int, string, error) {
	method := http.MethodGet
	if form != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, s.address+path, strings.NewReader(form))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, h := range headers {
		key, value, _ := strings.Cut(h, "=")
		r.Header.Set(key, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// waitFor asks until the answer contains a text.
func (s *sandbox) waitFor(ctx context.Context, path, form, want string) {
	s.t.Helper()
	var last string
	err := world.Eventually(ctx, path+" shows "+want, func(ctx context.Context) (bool, error) {
		_, text, err := s.ask(ctx, path, form)
		last = text
		return strings.Contains(text, want), err
	})
	if err != nil {
		s.t.Fatalf("%v; the page is\n%s", err, last)
	}
}

func TestSandboxActsOnItsPagesAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(world.Within(t), 8*time.Minute)
	defer cancel()
	s := startSandbox(ctx, t)
	s.waitFor(ctx, "/", "", "page.js")
	s.waitFor(ctx, "/api/databases", "", `"name":"orders"`)
	for _, control := range []struct{ path, form, want string }{
		{"sell", "flavor=rds.mysql.n1.large.4&zone=eu-de-01&out=true", "Offer rds.mysql.n1.large.4 in eu-de-01 again"},
		{"sell", "flavor=rds.mysql.n1.large.4&zone=eu-de-01&out=false", "rds.mysql.n1.large.4 can be had again in eu-de-01"},
		{"sell", "flavor=none&zone=eu-de-01&out=true", "This did not work: there is no flavor &#34;none&#34;"},
		{"drop", "on=true", "Deliver notifications again"},
		{"drop", "on=false", "Drop all notifications"},
		{"operator", "stop=true", "Let the operator work again"},
		{"operator", "stop=false", "Stop the operator"},
		{"load", "database=orders&used=20&grow=0&cpu=NaN&memory=10", "This did not work: cpu is no number"},
		{"load", "database=orders&used=32&grow=0.2&cpu=10&memory=10", "orders: 32.0 GB used, growing by 0.2 GB per minute"},
	} {
		status, text, err := s.ask(ctx, "/cloud/"+control.path, control.form)
		if err != nil || status != http.StatusOK || !strings.Contains(text, control.want) {
			t.Errorf("%s %s: %d, %v, want %q in\n%s", control.path, control.form, status, err, control.want, text)
		}
	}
	s.waitFor(ctx, "/cloud/forge", "database=orders", "was answered with 403")
	s.waitFor(ctx, "/api/databases/default/orders", "", "Storage 40 → 50 GB")
	status, _, err := s.ask(ctx, "/cloud/leader", "x=", "Sec-Fetch-Site=cross-site")
	if err != nil || status != http.StatusForbidden {
		t.Errorf("the form of another site is answered with %d, %v", status, err)
	}
	s.waitFor(ctx, "/cloud/leader", "x=", "The leader was killed")
	s.waitFor(ctx, "/cloud/api", "x=", "The API server is away for 20 seconds")

	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, s.output)
	}
	if left, err := os.ReadDir(s.dir); err != nil || len(left) > 0 {
		t.Errorf("it left files behind: %v, %v", left, err)
	}
	if left := processesOf(t, s.dir); len(left) > 0 {
		t.Errorf("it left processes behind: %q", left)
	}
}

// processesOf returns the command lines of the processes that work in a folder or have it in their arguments.
func processesOf(t *testing.T, dir string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		command, _ := os.ReadFile(filepath.Join(p, "cmdline")) // it may have ended by now
		cwd, _ := os.Readlink(filepath.Join(p, "cwd"))
		if bytes.Contains(command, []byte(dir)) || strings.HasPrefix(cwd, dir) {
			found = append(found, string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
		}
	}
	return found
}
