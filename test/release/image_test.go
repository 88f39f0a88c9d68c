// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
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

// imageConfig is the part of an image's configuration that the tests check.
type imageConfig struct {
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

// checkImage checks what the release workflow has pushed: an image for each platform, with its SBOM.
func checkImage(t *testing.T, name, version, commit string) {
	t.Helper()
	crane := func(args ...string) string {
		t.Helper()
		return run(t, command(t, nil, tool(t, "crane"), args...))
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		var got imageConfig
		if err := json.Unmarshal([]byte(crane("config", "--platform", platform, name+":"+version)), &got); err != nil {
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
		for label, want := range map[string]string{"version": version, "revision": commit, "licenses": "Apache-2.0"} {
			if label = "org.opencontainers.image." + label; got.Config.Labels[label] != want {
				t.Errorf("%s: label %s is %q, want %q", platform, label, got.Config.Labels[label], want)
			}
		}
		// The workflow attests this file.
		sbom := read(t, root+"/.cache/sbom/rds-autopilot-"+strings.ReplaceAll(platform, "/", "-")+".spdx.json")
		if !strings.Contains(string(sbom), "SPDXRef-DOCUMENT") {
			t.Errorf("the SBOM of %s is no SPDX document", platform)
		}
	}
	dir := t.TempDir()
	crane("export", "--platform", "linux/"+runtime.GOARCH, name+":"+version, dir+"/image.tar")
	run(t, command(t, nil, "tar", "-xf", dir+"/image.tar", "-C", dir))
	if text := run(t, command(t, nil, dir+"/ko-app/rds-autopilot", "version")); !strings.Contains(text, version) || !strings.Contains(text, commit[:7]) {
		t.Errorf("the binary reports the version %s", text)
	}
}

// checkFiles checks the files of a release and its chart, which name the image by its digest.
func checkFiles(t *testing.T, dist, version, image, digest string) {
	t.Helper()
	sums := string(read(t, dist+"/checksums.txt"))
	packed := "rds-autopilot-" + strings.TrimPrefix(version, "v") + ".tgz"
	for _, name := range []string{packed, "install.yaml", "rds.yaml", "namespace.yaml"} {
		if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(read(t, dist+"/"+name)), name); !strings.Contains(sums, want) {
			t.Errorf("checksums.txt lacks %s", want)
		}
	}
	if !strings.Contains(string(read(t, dist+"/install.yaml")), "image: "+image+":"+version+"@"+digest+"\n") {
		t.Error("install.yaml has another image")
	}
	for values, want := range map[string]string{
		",image.repository=registry.internal/mirror": "registry.internal/mirror:" + version + "@" + digest,
		",image.tag=mine":                         image + ":mine",
		",global.imageRegistry=registry.internal": "registry.internal/rds-autopilot:" + version + "@" + digest,
	} {
		rendered := run(t, command(t, nil, tool(t, "helm"), "template", releaseName, "dist/"+packed, "--set", "publicURL=https://a.example.com/smn"+values))
		if !strings.Contains(rendered, want+"\n") {
			t.Errorf("the chart with %q lacks the image %s", values, want)
		}
	}
}
