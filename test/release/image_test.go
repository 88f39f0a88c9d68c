// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// registry starts a registry on loopback and returns its address.
func registry(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, "crane"), "registry", "serve", "--address", "127.0.0.1:0")
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails only if it has ended
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if m := regexp.MustCompile(`serving on port (\d+)`).FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, output) }() // ends with the process
			return "127.0.0.1:" + m[1]
		}
	}
	t.Fatal("the registry does not say where it listens")
	return ""
}

// image is the part of an image's configuration that the tests check.
type image struct {
	OS, Architecture string
	Config           struct {
		User                 string
		Entrypoint, Cmd, Env []string
		Labels               map[string]string
	}
}

// emptyBase makes an image without files for two platforms in a registry, and returns its name.
func emptyBase(t *testing.T, at string) string {
	t.Helper()
	crane := tool(t, "crane")
	base, layer := at+"/base", filepath.Join(t.TempDir(), "layer.tar")
	run(t, command(t, nil, "tar", "-cf", layer, "-C", t.TempDir(), "."))
	index := []string{"index", "append", "--tag", base}
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		tag := base + ":" + filepath.Base(platform)
		run(t, command(t, nil, crane, "append", "--new_layer", layer, "--new_tag", tag))
		run(t, command(t, nil, crane, "mutate", tag, "--set-platform", platform, "--tag", tag))
		index = append(index, "--manifest", tag)
	}
	run(t, command(t, nil, crane, index...))
	return base
}

// pull returns a folder with the files of an image for this machine.
func pull(t *testing.T, reference string) string {
	t.Helper()
	dir := t.TempDir()
	run(t, command(t, nil, tool(t, "crane"), "export", "--platform", "linux/"+runtime.GOARCH, reference, filepath.Join(dir, "image.tar")))
	run(t, command(t, nil, "tar", "-xf", filepath.Join(dir, "image.tar"), "-C", dir))
	return dir
}

// TestTheReleaseBuildsAnImageForTwoPlatforms builds on an empty base, because the real one is in a registry far away.
func TestTheReleaseBuildsAnImageForTwoPlatforms(t *testing.T) {
	crane := func(args ...string) string {
		t.Helper()
		return run(t, command(t, nil, tool(t, "crane"), args...))
	}
	at := registry(t)
	base, name := emptyBase(t, at), at+"/rds-autopilot"

	commit := strings.Repeat("c", 40)
	build := command(t, []string{"KO_DEFAULTBASEIMAGE=" + base}, "make", "--no-print-directory", "release-image", "IMAGE="+name, "VERSION=v0.1.0", "COMMIT="+commit)
	reference := strings.TrimSpace(run(t, build))
	if !regexp.MustCompile(`^` + regexp.QuoteMeta(name) + `(:v0\.1\.0)?@sha256:[0-9a-f]{64}$`).MatchString(reference) {
		t.Fatalf("it says %q, want the image with its digest", reference)
	}
	var manifests struct {
		Manifests []struct {
			Platform struct{ OS, Architecture string }
		}
	}
	if err := json.Unmarshal([]byte(crane("manifest", name+":v0.1.0")), &manifests); err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifests.Manifests {
		platforms = append(platforms, m.Platform.OS+"/"+m.Platform.Architecture)
	}
	if slices.Sort(platforms); !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %v", platforms)
	}
	for _, platform := range platforms {
		var got image
		if err := json.Unmarshal([]byte(crane("config", "--platform", platform, name+":v0.1.0")), &got); err != nil {
			t.Fatal(err)
		}
		if got.Architecture != filepath.Base(platform) || !slices.Equal(got.Config.Entrypoint, []string{"/ko-app/rds-autopilot"}) {
			t.Errorf("%s: %+v", platform, got)
		}
		if !slices.ContainsFunc(got.Config.Env, func(e string) bool {
			path, ok := strings.CutPrefix(e, "PATH=")
			return ok && slices.Contains(filepath.SplitList(path), "/ko-app")
		}) {
			t.Errorf("%s: %q, and so kubectl exec does not find rds-autopilot", platform, got.Config.Env)
		}
		for label, want := range map[string]string{
			"org.opencontainers.image.version": "v0.1.0", "org.opencontainers.image.revision": commit, "org.opencontainers.image.licenses": "Apache-2.0",
		} {
			if got.Config.Labels[label] != want {
				t.Errorf("%s: label %s is %q, want %q", platform, label, got.Config.Labels[label], want)
			}
		}
	}
	if tags := crane("ls", name); !strings.Contains(tags, ".sbom") {
		t.Errorf("no SBOM among %q", tags)
	}
	for _, platform := range []string{"linux-amd64", "linux-arm64"} { // the workflow attests them
		if text := read(t, filepath.Join(root, ".cache", "sbom", "rds-autopilot-"+platform+".spdx.json")); !strings.Contains(string(text), "SPDXRef-DOCUMENT") {
			t.Errorf("the SBOM of %s is no SPDX document", platform)
		}
	}

	// The binary of this platform runs, and knows what it is.
	dir := pull(t, name+":v0.1.0")
	version := run(t, command(t, nil, filepath.Join(dir, "ko-app", "rds-autopilot"), "version"))
	if !strings.Contains(version, "v0.1.0") || !strings.Contains(version, commit[:7]) {
		t.Errorf("it says it is %s", version)
	}
}

// TestTheReleaseHasItsFiles makes a version that is not the one in Chart.yaml.
func TestTheReleaseHasItsFiles(t *testing.T) {
	tool(t, "helm")
	dist := filepath.Join(root, "dist")
	t.Cleanup(func() { _ = os.RemoveAll(dist) })
	digest := "sha256:" + strings.Repeat("d", 64)
	text := refused(t, command(t, nil, "make", "--no-print-directory", "release-files", "VERSION=v9.8.7"))
	if !strings.Contains(text, "DIGEST is required") {
		t.Errorf("without a digest it says %s", text)
	}
	run(t, command(t, nil, "make", "--no-print-directory", "release-files", "VERSION=v9.8.7", "DIGEST="+digest))
	sums, err := os.ReadFile(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"rds-autopilot-9.8.7.tgz", "install.yaml", "rds.yaml", "namespace.yaml"} {
		content, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name); !strings.Contains(string(sums), want) {
			t.Errorf("checksums.txt lacks %s", want)
		}
		if name == "install.yaml" && !strings.Contains(string(content), "image: ghcr.io/mcsps/rds-autopilot:v9.8.7@"+digest+"\n") {
			t.Error("install.yaml has another image")
		}
	}
	packed := func(values string) string {
		t.Helper()
		return run(t, command(t, nil, tool(t, "helm"), "template", own, "dist/rds-autopilot-9.8.7.tgz", "--set", "publicURL=https://a.example.com/smn"+values))
	}
	for values, want := range map[string]string{
		"": "rds-autopilot:v9.8.7@" + digest,
		",image.repository=registry.internal/mirror": "registry.internal/mirror:v9.8.7@" + digest,
		",image.tag=mine":                   "rds-autopilot:mine",
		",image.registry=registry.internal": "registry.internal/mcsps/rds-autopilot:v9.8.7@" + digest,
	} {
		if !strings.Contains(packed(values), want+"\n") {
			t.Errorf("the chart with %q has not the image %s", values, want)
		}
	}

	text = refused(t, command(t, nil, "make", "--no-print-directory", "release-notes", "VERSION=v9.8.7"))
	if !strings.Contains(text, "CHANGELOG.md has no section v9.8.7") {
		t.Errorf("without a section it says %s", text)
	}
	run(t, command(t, nil, "make", "--no-print-directory", "release-notes", "VERSION=Unreleased"))
	notes, err := os.ReadFile(filepath.Join(root, ".cache", "release-notes.md"))
	if err != nil || !strings.Contains(string(notes), "- ") || strings.Contains(string(notes), "\n## ") {
		t.Errorf("%v, notes:\n%s", err, notes)
	}

	// A registry takes the chart as it takes the image.
	at := registry(t)
	env := []string{"HOME=" + t.TempDir()}
	pushed, err := command(t, env, tool(t, "helm"), "push", "dist/rds-autopilot-9.8.7.tgz", "oci://"+at+"/charts", "--plain-http").CombinedOutput()
	if err != nil || !regexp.MustCompile(`Digest: sha256:[0-9a-f]{64}`).Match(pushed) { // the workflow signs this digest
		t.Fatalf("helm push: %v, %s", err, pushed)
	}
	shown := run(t, command(t, env, tool(t, "helm"), "show", "chart", "oci://"+at+"/charts/rds-autopilot", "--version", "9.8.7", "--plain-http"))
	if !strings.Contains(shown, "appVersion: v9.8.7") {
		t.Errorf("the registry has\n%s", shown)
	}
}
