// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	"github.com/mcsps/rds-autopilot/test/world"
)

const (
	root        = "../.."
	chart       = "../../deploy/chart"
	releaseName = "rds-autopilot" // release, namespace, ServiceAccount and lease
)

var shared = apiserver.Shared{Options: apiserver.Options{CRDs: []string{
	"../../deploy/crds/rds.yaml", "../../deploy/testdata/servicemonitor-crd.yaml", "../../deploy/testdata/prometheusrule-crd.yaml",
	"testdata/httproute-crd.yaml",
}}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tool returns the path of a program that the Makefile has built.
func tool(t *testing.T, name string) string {
	t.Helper()
	level.Long(t)
	path, err := filepath.Abs(filepath.Join(root, ".cache", "bin", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("there is no %s: make tools builds it", name)
	}
	return path
}

// command returns a program to run, in the root of the checkout; env is added to the environment.
func command(t *testing.T, env []string, program string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*world.Patience) // a build for two platforms on a busy machine
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = root
	cmd.WaitDelay = 10 * time.Second // for processes that the program has started
	// Below the make of the tests, a make would also print its folder.
	cmd.Env = append(os.Environ(), "MAKELEVEL=0", "MAKEFLAGS=")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// run returns the output of a program, and fails the test if the program fails.
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

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	must(t, os.WriteFile(path, text, 0o600))
}

// tempFile creates a file in a temporary folder and returns its path.
func tempFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	writeFile(t, path, []byte(content))
	return path
}

// firstWithPolicies is the minor version of Kubernetes since which admissionregistration.k8s.io/v1 has ValidatingAdmissionPolicy.
const firstWithPolicies = 30

// kubeMinor returns the minor version of an API server, such as 36. It fails the test if another version was requested.
func kubeMinor(t *testing.T, config *rest.Config) int {
	t.Helper()
	client, _ := clients(t, config)
	info, err := client.Discovery().ServerVersion()
	must(t, err)
	if want := os.Getenv(apiserver.VersionVariable); want != "" && !strings.HasPrefix(info.GitVersion+".", "v"+want+".") {
		t.Fatalf("the API server is %s, want %s", info.GitVersion, want)
	}
	minor, err := strconv.Atoi(info.Minor)
	must(t, err)
	return minor
}
