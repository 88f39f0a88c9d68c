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
	"time"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// asOther turns a run of this test binary into the other process.
const asOther = "KUBETEST_TEST_OTHER_PROCESS"

// TestOtherProcess is the other process of the test below. It starts a cluster, and stops it when its input ends.
func TestOtherProcess(t *testing.T) {
	if os.Getenv(asOther) == "" {
		t.Skip("runs only as a child of the other test")
	}
	cluster, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("STARTED")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(); err != nil {
		t.Fatal(err)
	}
}

// startOther starts another process, and returns once it has a cluster. The cluster's folder is below dir.
func startOther(t *testing.T, dir string) (cmd *exec.Cmd, stdin io.WriteCloser) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOtherProcess$", "-test.v")
	cmd.Env = append(os.Environ(), asOther+"=1", "TMPDIR="+dir)
	cmd.Stderr = os.Stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text() == "STARTED" {
			return cmd, stdin
		}
	}
	t.Fatal("the other process ended before its cluster ran")
	return nil, nil
}

// leftovers returns an error that names temporary folders of clusters, or servers that still run in one.
func leftovers(dir string) error {
	folders, err := fs.Glob(os.DirFS(dir), "apiserver-*")
	if err != nil || len(folders) > 0 {
		return fmt.Errorf("temporary folders: %v, %w", folders, err)
	}
	processes, err := os.ReadDir("/proc")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no such list on this system
	}
	for _, p := range processes {
		if cwd, err := os.Readlink("/proc/" + p.Name() + "/cwd"); err == nil && strings.HasPrefix(cwd, dir) {
			return fmt.Errorf("process %s still runs", p.Name())
		}
	}
	return err
}

func TestNothingIsLeftOfAStoppedOrAKilledProcess(t *testing.T) {
	apiserver.NeedReal(t)
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed: %t", killed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd, stdin := startOther(t, dir)
			if err := leftovers(dir); err == nil {
				t.Error("leftovers does not find a running cluster")
			}
			end := stdin.Close
			if killed {
				end = cmd.Process.Kill
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); (err != nil) != killed {
				t.Errorf("the process ends with %v", err)
			}
			if err := leftovers(dir); err != nil && !killed {
				t.Errorf("after Stop: %v", err)
			}
			for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
				err := leftovers(dir)
				if err == nil {
					break
				}
				if time.Since(began) > 5*time.Minute {
					t.Fatal(err)
				}
			}
		})
	}
}
