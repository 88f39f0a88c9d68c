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

	"github.com/mcsps/rds-autopilot/test/level"
)

// registry starts a registry on loopback and returns its address.
func registry(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, "crane"), "registry", "serve", "--address", "127.0.0.1:0")
	output, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
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
		must(t, json.Unmarshal([]byte(crane("config", "--platform", platform, name+":"+version)), &got))
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

// TestTheDockerfileBuildsTheImage replaces both base images by stand-ins and pulls nothing. One has the Go toolchain and the shell of
// this machine. The other one has only a path, like distroless. Buildah keeps its images in a folder of the test.
func TestTheDockerfileBuildsTheImage(t *testing.T) {
	level.Long(t)
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Fatal("buildah is not installed (Debian: buildah)")
	}
	dir := t.TempDir()
	settings := []string{"--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver", "vfs"}
	buildah := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(run(t, command(t, nil, "buildah", append(slices.Clone(settings), args...)...)))
	}
	// Without root, the layers have files of other users, which the end of the test could not remove.
	t.Cleanup(func() {
		for _, args := range [][]string{{"rm", "--all"}, {"rmi", "--all", "--force"}} {
			if out, err := exec.Command("buildah", append(slices.Clone(settings), args...)...).CombinedOutput(); err != nil {
				t.Errorf("buildah %s: %v: %s", args, err, out)
			}
		}
	})
	image := func(name string, files []string, config ...string) {
		t.Helper()
		container := buildah("from", "scratch")
		for _, file := range files {
			buildah("copy", container, file, file)
		}
		buildah(append(append([]string{"config"}, config...), container)...)
		buildah("commit", "--rm", container, name)
	}
	goEnv := func(name string) string { return strings.TrimSpace(run(t, command(t, nil, "go", "env", name))) }
	toolchain, modules, cache := goEnv("GOROOT"), goEnv("GOMODCACHE"), goEnv("GOCACHE")
	run(t, command(t, nil, "go", "mod", "download")) // so that the build finds all modules without a network

	files := []string{toolchain, "/bin/sh"}
	libraries, _ := exec.CommandContext(t.Context(), "ldd", "/bin/sh").Output() // fails for a static shell
	files = append(files, regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1)...)
	// The two caches replace a proxy and save compilation.
	image("localhost/go", files, "--env", "PATH="+toolchain+"/bin:/bin", "--env", "GOPROXY=off",
		"--env", "GOMODCACHE=/modules", "--env", "GOCACHE=/cache", "--env", "GOTMPDIR=/")
	image("localhost/static", nil, "--env", "PATH=/usr/local/bin")

	bases := regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`).FindAllStringSubmatch(string(read(t, root+"/Dockerfile")), -1)
	if len(bases) != 2 {
		t.Fatalf("the Dockerfile has the base images %q, want two", bases)
	}
	buildah("build", "--pull-never", "--isolation", "chroot",
		"--build-context", bases[0][1]+"=docker-image://localhost/go", "--build-context", bases[1][1]+"=docker-image://localhost/static",
		"--volume", modules+":/modules", "--volume", cache+":/cache", "--build-arg", "VERSION=v9.8.7", "--tag", "localhost/rds-autopilot", ".")

	var got struct{ OCIv1 imageConfig }
	must(t, json.Unmarshal([]byte(buildah("inspect", "--type", "image", "localhost/rds-autopilot")), &got))
	config := got.OCIv1.Config
	started := slices.Concat(config.Entrypoint, config.Cmd)
	if config.User != "65532:65532" || !slices.Equal(started, []string{"/usr/local/bin/rds-autopilot", "serve"}) {
		t.Errorf("the image runs %q %q as %q", config.Entrypoint, config.Cmd, config.User)
	}
	version := buildah("run", "--isolation", "chroot", buildah("from", "localhost/rds-autopilot"), "/usr/local/bin/rds-autopilot", "version")
	if !strings.Contains(version, "v9.8.7") {
		t.Errorf("the binary reports the version %s", version)
	}
}
