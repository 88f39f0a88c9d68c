// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

const root = "../.."

// blockLimit is how long one command, or one block of a document, may take.
const blockLimit = 10 * time.Minute

// shell runs commands beside a world with the service, in a folder with deploy, and with kubectl and rds-autopilot in the path.
type shell struct {
	world *world.World
	dir   string
	env   []string
}

// tool returns the path of a program that make tools builds. It skips the test if the program is missing.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(root + "/.cache/bin/" + name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("left out, because there is no %s: make tools builds it", name)
	}
	return path
}

var worlds world.Shared

// newWorld starts a world without the service. The cloud has an instance named my-rds, whose storage is in alarm as soon
// as it is watched, and Kubernetes has no Rds yet.
func newWorld(t *testing.T) *shell {
	t.Helper()
	level.Long(t)
	apiserver.NeedReal(t)
	kubectl := tool(t, "kubectl")
	deploy, err := filepath.Abs(root + "/deploy")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := world.Binary(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	err = errors.Join(os.Mkdir(bin, 0o755), os.Symlink(deploy, filepath.Join(dir, "deploy")),
		os.Symlink(kubectl, filepath.Join(bin, "kubectl")), os.Symlink(binary, filepath.Join(bin, "rds-autopilot")))
	if err != nil {
		t.Fatal(err)
	}
	w := worlds.StartAlone(t, world.Options{Binary: binary})
	if _, err := w.Cloud.AddInstance(simcloud.Instance{Name: "my-rds", Flavor: "rds.mysql.n1.medium.4", VolumeGB: 40, Workload: simcloud.Workload{UsedGB: 31}}); err != nil {
		t.Fatal(err)
	}
	env := append(w.Cloud.Env(), "KUBECONFIG="+w.AdminKubeconfig(), "HOME="+dir, "PATH="+bin+":/usr/bin:/bin")
	return &shell{w, dir, env}
}

// sh runs a script as bash does with -e, and returns its output.
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

// must runs a script, and fails the test if the script fails.
func (s *shell) must(t *testing.T, script string) string {
	t.Helper()
	out, err := s.sh(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// waitFor runs a command until it prints all texts.
func (s *shell) waitFor(t *testing.T, script string, want ...string) {
	t.Helper()
	var last string
	err := world.Eventually(t.Context(), fmt.Sprintf("%s prints %q", script, want), func(ctx context.Context) (bool, error) {
		var err error
		last, err = s.sh(ctx, script)
		words := strings.Join(strings.Fields(last), " ")
		return !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(words, text) }), err
	})
	if err != nil {
		t.Errorf("%v\n%s", err, last)
	}
}

// block is the text of a fenced block, without the indentation of the list that it is in.
type block struct {
	kind, text string
}

func blocks(document string) (found []block) {
	for _, m := range regexp.MustCompile("(?ms)^( *)```([a-z]*(?: run)?)\n(.*?)^ *```$").FindAllStringSubmatch(document, -1) {
		found = append(found, block{m[2], regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[3], "")})
	}
	return found
}

// read returns a file of the checkout.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
