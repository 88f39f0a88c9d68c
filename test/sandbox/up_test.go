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
	"syscall"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/world"
)

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sandbox is a running sandbox up, with a folder of its own for temporary files.
type sandbox struct {
	t           *testing.T
	page, loads string // URLs
	dir         string
	cmd         *exec.Cmd
	output      *os.File
}

// printed returns what the process has printed.
func (s *sandbox) printed() string {
	text, err := os.ReadFile(s.output.Name())
	must(s.t, err)
	return string(text)
}

// startSandbox starts make sandbox's command, and waits until it prints where its pages are.
func startSandbox(ctx context.Context, t *testing.T) *sandbox {
	t.Helper()
	s := &sandbox{t: t, dir: t.TempDir()}
	var err error
	s.output, err = os.Create(filepath.Join(t.TempDir(), "output"))
	must(t, err)
	t.Cleanup(func() { _ = s.output.Close() })
	binary := filepath.Join(t.TempDir(), "sandbox")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.cmd = exec.CommandContext(ctx, binary, "up")
	s.cmd.Env = append(os.Environ(), "TMPDIR="+s.dir)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	must(t, s.cmd.Start())
	addresses := regexp.MustCompile(`Status page +(http://\S+)/\n.*curl -d used=34 (http://\S+)/orders`)
	err = world.Eventually(ctx, "it prints where its pages are", func(context.Context) (bool, error) {
		found := addresses.FindStringSubmatch(s.printed())
		if found != nil {
			s.page, s.loads = found[1], found[2]
		}
		return found != nil, nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.printed())
	}
	return s
}

// post posts a form, and returns the status and the text of the answer.
func (s *sandbox) post(ctx context.Context, path, form string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.loads+path, strings.NewReader(form))
	must(s.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.answer(r)
}

func (s *sandbox) answer(r *http.Request) string {
	s.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	must(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(s.t, err)
	return resp.Status + " " + string(text)
}

func TestSandboxGrowsADatabaseWhoseLoadIsChangedAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(world.Within(t), 8*time.Minute)
	defer cancel()
	s := startSandbox(ctx, t)
	for _, tc := range []struct{ path, form, want string }{
		{"/none", "used=30", "404"},
		{"/orders", "cpu=NaN", "400 Bad Request cpu must be a number"},
		{"/orders", "used=32&cpu=10", "200 OK orders has 40 GB, rds.mysql.n1.large.2 (2 vCPUs, 4 GB): 32.0 GB used, 0.2 vCPUs busy"},
	} {
		if got := s.post(ctx, tc.path, tc.form); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s %s: %s, want %s", tc.path, tc.form, got, tc.want)
		}
	}
	err := world.Eventually(ctx, "the status page shows the growth", func(ctx context.Context) (bool, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.page+"/api/databases/default/orders", nil)
		return err == nil && strings.Contains(s.answer(r), "Storage 40 → 50 GB"), err
	})
	must(t, err)

	must(t, s.cmd.Process.Signal(os.Interrupt))
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, s.printed())
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
	must(t, err)
	for _, p := range all {
		command, _ := os.ReadFile(filepath.Join(p, "cmdline")) // it may have ended by now
		cwd, _ := os.Readlink(filepath.Join(p, "cwd"))
		if bytes.Contains(command, []byte(dir)) || strings.HasPrefix(cwd, dir) {
			found = append(found, string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// The demo fails by itself if a database does not grow as expected, or if something happens that should not.
func TestDemoEndsAsExpected(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := demo(world.Within(t), newConsole(&out), worldOptions{real: apiserver.Real()}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if text := out.String(); !strings.Contains(text, " as expected") || !strings.Contains(text, "make sandbox") {
		t.Errorf("the end is missing:\n%s", text)
	}
}
