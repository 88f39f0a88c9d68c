// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const root = "../.."

// blockLimit is how long one command, or one block of a document, may take.
const blockLimit = 10 * time.Minute

// shell is where commands are typed: a world with the service, a checkout to look into, and kubectl.
type shell struct {
	world *world.World
	dir   string
	env   []string
}

// newShell starts the world in which a test types, with the service. The flags are those of the service.
func newShell(t *testing.T, flags ...string) *shell {
	t.Helper()
	s := newWorld(t)
	if _, err := s.world.Serve(t.Context(), flags...); err != nil {
		t.Fatal(err)
	}
	return s
}

// newWorld starts a world without the service. The cloud has an instance named my-rds, whose storage is in alarm as soon
// as it is watched, and Kubernetes has no Rds yet.
func newWorld(t *testing.T) *shell {
	t.Helper()
	level.Long(t)
	kubectl, err := filepath.Abs(root + "/.cache/bin/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kubectl); err != nil {
		t.Skip("left out, because there is no kubectl: make tools builds it")
	}
	deploy, err := filepath.Abs(root + "/deploy")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	binary := filepath.Join(bin, "rds-autopilot")
	err = errors.Join(os.Mkdir(bin, 0o755), os.Symlink(deploy, filepath.Join(dir, "deploy")), os.Symlink(kubectl, filepath.Join(bin, "kubectl")))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, root+"/cmd/rds-autopilot").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w, err := world.Start(t.Context(), world.Options{Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := w.Cloud.AddInstance(simcloud.Instance{Name: "my-rds", Flavor: "rds.mysql.n1.medium.4", VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 31}}); err != nil {
		t.Fatal(err)
	}
	env := append(w.Cloud.Env(), "KUBECONFIG="+w.AdminKubeconfig(), "HOME="+dir, "PATH="+bin+":/usr/bin:/bin")
	return &shell{w, dir, env}
}

// sh runs a script as bash does with -e, and returns all that it says.
func (s *shell) sh(ctx context.Context, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, blockLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", script, err, out)
	}
	return string(out), err
}

// must runs a script that is to succeed.
func (s *shell) must(t *testing.T, script string) string {
	t.Helper()
	out, err := s.sh(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// says waits until a command prints all that is wanted.
func (s *shell) says(t *testing.T, script string, want ...string) {
	t.Helper()
	var last string
	err := world.Eventually(t.Context(), fmt.Sprintf("%s says %q", script, want), func(ctx context.Context) (bool, error) {
		var err error
		last, err = s.sh(ctx, script)
		words := strings.Join(strings.Fields(last), " ")
		return !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(words, text) }), err
	})
	if err != nil {
		t.Errorf("%v\n%s", err, last)
	}
}
