// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/test/level"
)

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
	if err := json.Unmarshal([]byte(buildah("inspect", "--type", "image", "localhost/rds-autopilot")), &got); err != nil {
		t.Fatal(err)
	}
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
