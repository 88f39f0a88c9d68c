// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
)

const (
	root  = "../.."
	chart = "../../deploy/chart"
	own   = "rds-autopilot" // release, namespace, ServiceAccount and lease

	patience = 5 * time.Minute // for the slowest of machines; no test waits for it
)

var shared = apiserver.Shared{Options: apiserver.Options{CRDs: []string{
	"../../deploy/crds/rds.yaml", "../../deploy/testdata/servicemonitor-crd.yaml", "../../deploy/testdata/prometheusrule-crd.yaml",
	"testdata/httproute-crd.yaml",
}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// tool is a program that the Makefile has built.
func tool(t *testing.T, name string) string {
	t.Helper()
	level.Long(t)
	path, err := filepath.Abs(filepath.Join(root, ".cache", "bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("left out, because there is no %s: make tools builds it", name)
	}
	return path
}

// command returns a program to run, in the root of the checkout; env is added to the environment.
func command(t *testing.T, env []string, program string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience) // a build for two platforms on a busy machine
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = root
	cmd.WaitDelay = 10 * time.Second // for what it started itself
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// run returns what a program prints, and fails the test if it fails.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out, stderr.String())
	}
	return string(out)
}

// refused returns what a program says that must fail.
func refused(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s: want it refused", strings.Join(cmd.Args, " "))
	}
	return string(out)
}

// write makes a file in a temporary folder.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
