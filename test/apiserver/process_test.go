// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// asOther turns a run of this test binary into the other process.
const asOther = "KUBETEST_TEST_OTHER_PROCESS"

// TestOtherProcess is the other process of the tests below. It starts a cluster, creates a marked object, prints the address,
// and waits until its input ends.
func TestOtherProcess(t *testing.T) {
	if os.Getenv(asOther) == "" {
		t.Skip("runs only as a child of the other tests")
	}
	cluster, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mark(t, cluster, "of-the-other")
	fmt.Println("STARTED", cluster.Config().Host, os.Getenv("TMPDIR"))
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
	fmt.Println("MARKS", marks(t, cluster))
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
}

// other is another process with a cluster and a temporary folder of its own.
type other struct {
	cmd   *exec.Cmd
	tmp   string
	host  string
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startOther(t *testing.T) *other {
	t.Helper()
	apiserver.NeedReal(t)
	o := &other{tmp: t.TempDir()}
	o.cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOtherProcess$", "-test.v")
	o.cmd.Env = append(os.Environ(), asOther+"=1", "TMPDIR="+o.tmp)
	o.cmd.Stderr = os.Stderr
	stdin, err := o.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.stdin, o.lines = stdin, bufio.NewScanner(stdout)
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o.host, _, _ = strings.Cut(o.line(t, "STARTED "), " ")
	return o
}

// line returns the rest of the next line of output that starts with prefix.
func (o *other) line(t *testing.T, prefix string) string {
	t.Helper()
	var seen []string
	for o.lines.Scan() {
		if rest, ok := strings.CutPrefix(o.lines.Text(), prefix); ok {
			return rest
		}
		seen = append(seen, o.lines.Text())
	}
	t.Fatalf("the other process printed no %s:\n%s", prefix, strings.Join(seen, "\n"))
	return ""
}

// leftovers returns an error that names temporary folders of clusters, or servers that still run in one.
func (o *other) leftovers(t *testing.T) error {
	t.Helper()
	folders, err := fs.Glob(os.DirFS(o.tmp), "apiserver-*")
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) > 0 {
		return fmt.Errorf("temporary folders: %v", folders)
	}
	processes, err := os.ReadDir("/proc")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no such list on this system
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		if dir, err := os.Readlink("/proc/" + p.Name() + "/cwd"); err == nil && strings.HasPrefix(dir, o.tmp) {
			return fmt.Errorf("process %s still runs", p.Name())
		}
	}
	return nil
}

func mark(t *testing.T, cluster *apiserver.Cluster, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"mark": "yes"}}}
	if _, err := clientset(t, cluster.Config()).CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func marks(t *testing.T, cluster *apiserver.Cluster) string {
	t.Helper()
	list, err := clientset(t, cluster.Config()).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{LabelSelector: "mark=yes"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range list.Items {
		names = append(names, object.Name)
	}
	return strings.Join(names, " ")
}

func TestTwoProcessesDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	cluster := shared.Cluster(t)
	o := startOther(t)
	if o.host == cluster.Config().Host {
		t.Fatalf("both at %s", o.host)
	}
	mark(t, cluster, "of-this-one")
	if got := marks(t, cluster); got != "of-this-one" {
		t.Errorf("here are the marks %q", got)
	}
	if err := o.leftovers(t); err == nil {
		t.Error("leftovers does not find a running cluster")
	}
	if err := o.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if got := o.line(t, "MARKS "); got != "of-the-other" {
		t.Errorf("there are the marks %q", got)
	}
	if err := o.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := o.leftovers(t); err != nil {
		t.Errorf("after Stop: %v", err)
	}
	if got := marks(t, cluster); got != "of-this-one" {
		t.Errorf("after the other has stopped, here are the marks %q", got)
	}
}

func TestNothingIsLeftOfAKilledProcess(t *testing.T) {
	t.Parallel()
	o := startOther(t)
	if err := o.leftovers(t); err == nil {
		t.Error("leftovers does not find a running cluster")
	}
	if err := o.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Wait(); err == nil {
		t.Error("a killed process succeeds")
	}
	eventually(t, "servers and files go", func() error { return o.leftovers(t) })
}
