// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

const (
	root    = "../../../.."
	toolMod = root + "/test/tools/acceptance"

	patience = 5 * time.Minute // only ends a hanging test
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAcceptanceTestsAreOfThePinnedSDK: a newer SDK comes with newer tests.
func TestAcceptanceTestsAreOfThePinnedSDK(t *testing.T) {
	version := regexp.MustCompile(regexp.QuoteMeta(sdk) + ` (v\S+)`)
	used := version.FindStringSubmatch(read(t, root+"/go.mod"))
	tested := version.FindStringSubmatch(read(t, toolMod+"/go.mod"))
	if used == nil || tested == nil || used[1] != tested[1] {
		t.Errorf("the service uses %q, and test/tools/acceptance has %q", used, tested)
	}
}

// TestDevelopmentListsWhatIsNotOffered compares the table of the document, which has the names without Test, with ours.
func TestDevelopmentListsWhatIsNotOffered(t *testing.T) {
	_, text, _ := strings.Cut(read(t, root+"/docs/development.md"), "\n### Not simulated\n")
	text, _, _ = strings.Cut(text, "\n## ")
	named := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, name := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[2], -1) {
			named["Test"+name[1]] = true
		}
	}
	for _, r := range results() {
		if offered := r.stops == "" && r.says == ""; offered == named[r.test] {
			t.Errorf("%s: offered is %v, and docs/development.md lists it as not simulated: %v", r.test, offered, named[r.test])
		}
		delete(named, r.test)
	}
	for name := range named {
		t.Errorf("docs/development.md lists %s, which is no acceptance test", name)
	}
}

// build compiles the acceptance tests of a suite, and returns the program.
func build(t *testing.T, suite string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "acceptance.test")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, folder+suite)
	cmd.Dir = toolMod
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile the tests of %s: %v\n%s", suite, err, out)
	}
	return program
}

// run starts the program in an empty folder, with nothing of the developer's environment. Otherwise credentials of a
// real cloud, in OS_ variables or in clouds.yaml, could make the tests create resources there.
func run(t *testing.T, program string, env []string, args ...string) (string, error) {
	t.Helper()
	empty := t.TempDir()
	none := filepath.Join(empty, "none.yaml")
	if err := os.WriteFile(none, []byte("clouds: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = empty
	cmd.Env = append([]string{
		"HOME=" + empty, "TMPDIR=" + empty, "OS_CLIENT_CONFIG_FILE=" + none, "OS_CLIENT_SECURE_FILE=" + none,
	}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func TestAcceptanceTestsOfTheSDK(t *testing.T) {
	level.Long(t)
	rows := map[string]map[string]result{}
	for _, r := range results() {
		if rows[r.suite] == nil {
			rows[r.suite] = map[string]result{}
		}
		rows[r.suite][r.test] = r
	}
	for suite, listed := range rows {
		t.Run(path.Dir(suite), func(t *testing.T) {
			t.Parallel()
			program := build(t, suite)
			out, err := run(t, program, nil, "-test.list", ".")
			if err != nil {
				t.Fatal(err, out)
			}
			have := strings.Fields(out)
			slices.Sort(have)
			if want := slices.Sorted(maps.Keys(listed)); !slices.Equal(have, want) {
				t.Errorf("the SDK has %q, and the table %q", have, want)
			}
			for _, name := range have {
				if _, ok := listed[name]; !ok {
					continue
				}
				for _, login := range []string{"password", "signature"} {
					t.Run(name+" by "+login, func(t *testing.T) {
						t.Parallel()
						accept(t, program, listed[name], login)
					})
				}
			}
		})
	}
}

// accept runs one acceptance test on a cloud of its own, because one expects its subscription to be the only one.
func accept(t *testing.T, program string, want result, login string) {
	cloud, err := simcloud.Start(simcloud.Options{Speed: 600})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.Close(); err != nil {
			t.Error(err)
		}
	})
	env := cloud.Env()
	if login == "signature" {
		env = cloud.AKSKEnv()
	}
	// The network is not simulated: any id will do. The SDK skips some tests unless they are asked for.
	env = append(env, "OS_VPC_ID=simulated", "OS_NETWORK_ID=simulated", "RUN_RDS_LIFECYCLE=1", "RUN_CES_EVENTS=1")
	out, err := run(t, program, env, "-test.v", "-test.run", "^"+want.test+"$")

	var refused []string
	for _, r := range cloud.Requests() {
		uri, _, _ := strings.Cut(r.URI, "?")
		if r.Service == "unknown" {
			refused = append(refused, r.Method+" "+uri)
		} else if r.Status >= 400 {
			t.Errorf("the simulation refused %s %s with %d", r.Method, r.URI, r.Status)
		}
	}
	if tokens := cloud.Count("iam", "CreateToken"); (tokens > 0) != (login == "password") {
		t.Errorf("%d logins by password, although the credentials are for a %s", tokens, login)
	}
	if want.stops == "" && want.says == "" {
		if err != nil || len(refused) > 0 || !strings.Contains(out, "--- PASS: "+want.test) {
			t.Errorf("want it to pass: %v, not offered: %q", err, refused)
		}
	} else {
		if err == nil || !strings.Contains(out, "--- FAIL: "+want.test) || !strings.Contains(out, want.says) {
			t.Errorf("want it to fail, because the simulation does not offer it (%s): %v", want.why, err)
		}
		stopped := len(refused) > 0
		if stopped {
			stopped, _ = path.Match(want.stops, refused[0])
		}
		if stopped != (want.stops != "") {
			t.Errorf("not offered: %q, want %q", refused, want.stops)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}
