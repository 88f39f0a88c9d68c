// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
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

// upProcess is the sandbox as people start it, with a folder of its own for temporary files.
type upProcess struct {
	address, dir string
	cmd          *exec.Cmd
	ended        chan error

	mu     sync.Mutex
	output strings.Builder
}

func startUp(ctx context.Context, t *testing.T, flags ...string) *upProcess {
	t.Helper()
	u := &upProcess{dir: t.TempDir(), ended: make(chan error, 1)}
	binary := filepath.Join(t.TempDir(), "sandbox")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	u.cmd = exec.Command(binary, append([]string{"up"}, flags...)...)
	u.cmd.Env = append(os.Environ(), "TMPDIR="+u.dir)
	u.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := u.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	u.cmd.Stderr = u.cmd.Stdout
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			u.mu.Lock()
			u.output.WriteString(lines.Text() + "\n")
			u.mu.Unlock()
			if found := regexp.MustCompile(`Simulated cloud (http://\S+)/cloud/`).FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
		u.ended <- u.cmd.Wait()
		close(u.ended)
	}()
	t.Cleanup(func() {
		_ = u.cmd.Process.Kill() // it has ended where the test went well
		for range u.ended {      // until it is closed: where the test went well, the error was read before
		}
	})
	select {
	case u.address = <-address:
	case err := <-u.ended:
		t.Fatalf("it has ended: %v\n%s", err, u.text())
	case <-ctx.Done():
		t.Fatalf("it does not say where its pages are\n%s", u.text())
	}
	return u
}

func (u *upProcess) text() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.output.String()
}

// ask gets a page, or posts a form where there is one, and returns the status and the text after all redirects.
func (u *upProcess) ask(ctx context.Context, path string, form url.Values, headers ...string) (int, string, error) {
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(ctx, method, u.address+path, body)
	if err != nil {
		return 0, "", err
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
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

func TestPlaygroundLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	ctx := world.Within(t)
	u := startUp(ctx, t)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	eventually := func(what, path string, form url.Values, want string) {
		t.Helper()
		var last string
		err := world.Eventually(ctx, what, func(ctx context.Context) (bool, error) {
			_, text, err := u.ask(ctx, path, form)
			last = text
			return strings.Contains(text, want), err
		})
		if err != nil {
			t.Fatalf("%v; the page is\n%s", err, last)
		}
	}
	eventually("the status page is there", "/", nil, "of 3 armed")
	eventually("the page names the leader", "/health", nil, "<bdi>rds-autopilot-")
	for _, lever := range []struct{ path, form, want string }{
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
		form, err := url.ParseQuery(lever.form)
		if err != nil {
			t.Fatal(err)
		}
		if status, text, err := u.ask(ctx, "/cloud/"+lever.path, form); err != nil || status != http.StatusOK || !strings.Contains(text, lever.want) {
			t.Errorf("%s %s: %d, %v, want %q in\n%s", lever.path, lever.form, status, err, lever.want, text)
		}
	}
	eventually("a forged message is rejected", "/cloud/forge", url.Values{"database": {"orders"}}, "was answered with 403")
	eventually("the disk has grown", "/databases/default/orders", nil, "Storage 40 → 50 GB")
	if status, _, err := u.ask(ctx, "/cloud/leader", url.Values{}, "Sec-Fetch-Site=cross-site"); err != nil || status != http.StatusForbidden {
		t.Errorf("another page's form is answered with %d, %v", status, err)
	}
	eventually("the leader is killed", "/cloud/leader", url.Values{}, "The leader was killed")
	eventually("the API server is away", "/cloud/api", url.Values{}, "The API server is away for 20 seconds")

	if err := u.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-u.ended:
		if err != nil {
			t.Errorf("it ended with %v\n%s", err, u.text())
		}
	case <-ctx.Done():
		t.Fatalf("it does not end\n%s", u.text())
	}
	if left, err := os.ReadDir(u.dir); err != nil || len(left) > 0 {
		t.Errorf("it left files behind: %v, %v", left, err)
	}
	if left := processesOf(t, u.dir); len(left) > 0 {
		t.Errorf("it left processes behind: %q", left)
	}
}

// processesOf are those that work in a folder, or were told of it.
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

func TestReadFlagsReturnsErrorsForUnknownValues(t *testing.T) {
	inMemory, real := worldOptions{}, worldOptions{real: true, binary: "/x"}
	for args, want := range map[string]*upOptions{
		"up": {inMemory, "127.0.0.1:0", 60, 2}, "up -speed 10 -replicas 0 -listen 127.0.0.1:9": {inMemory, "127.0.0.1:9", 10, 0},
		"demo": {speed: 60}, "demo -kube real -binary /x": {worldOptions: real, speed: 60},
		"up -speed 0": nil, "up -replicas 9": nil, "up -speed x": nil, "up more": nil, "demo -kube none": nil, "demo -speed 1": nil,
	} {
		words := strings.Fields(args)
		got, err := readFlags(words[0], words[1:])
		if want == nil && err == nil || want != nil && (err != nil || got != *want) {
			t.Errorf("%q: %+v, %v", args, got, err)
		}
	}
}
