// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/test/level"
)

// builder runs buildah with images in a folder of its own, so that it neither finds nor leaves images of this machine.
type builder struct {
	t        *testing.T
	path     string
	settings []string
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	level.Long(t)
	path, err := exec.LookPath("buildah")
	if err != nil {
		t.Fatal("buildah is not installed (Debian: buildah)")
	}
	dir := t.TempDir()
	b := &builder{t, path, []string{"--root", dir + "/root", "--runroot", dir + "/run", "--storage-driver", "vfs"}}
	// Without root, the layers have files of other users, which the end of the test could not remove.
	t.Cleanup(func() {
		for _, args := range [][]string{{"rm", "--all"}, {"rmi", "--all", "--force"}} {
			if out, err := exec.Command(path, append(slices.Clone(b.settings), args...)...).CombinedOutput(); err != nil {
				t.Errorf("buildah %s: %v: %s", args, err, out)
			}
		}
	})
	return b
}

func (b *builder) run(args ...string) string {
	b.t.Helper()
	return strings.TrimSpace(run(b.t, command(b.t, nil, b.path, append(slices.Clone(b.settings), args...)...)))
}

// image makes an image from scratch out of files of this machine, which keep their paths, and of settings.
func (b *builder) image(name string, files []string, config ...string) {
	b.t.Helper()
	container := b.run("from", "scratch")
	for _, file := range files {
		b.run("copy", container, file, file)
	}
	b.run(append(append([]string{"config"}, config...), container)...)
	b.run("commit", "--rm", container, name)
}

// TestTheDockerfileBuildsTheImage replaces both base images by stand-ins and pulls nothing. One has the Go toolchain and
// the shell of this machine. The other one has only a path, like distroless.
func TestTheDockerfileBuildsTheImage(t *testing.T) {
	b := newBuilder(t)
	goEnv := func(name string) string { return strings.TrimSpace(run(t, command(t, nil, "go", "env", name))) }
	toolchain, modules, cache := goEnv("GOROOT"), goEnv("GOMODCACHE"), goEnv("GOCACHE")
	run(t, command(t, nil, "go", "mod", "download")) // so that the build finds all modules without a network

	files := []string{toolchain, "/bin/sh"}
	libraries, _ := exec.CommandContext(t.Context(), "ldd", "/bin/sh").Output() // fails for a static shell
	files = append(files, regexp.MustCompile(`/\S+`).FindAllString(string(libraries), -1)...)
	// The two caches replace a proxy and save compilation.
	b.image("localhost/go", files, "--env", "PATH="+toolchain+"/bin:/bin", "--env", "GOPROXY=off",
		"--env", "GOMODCACHE=/modules", "--env", "GOCACHE=/cache", "--env", "GOTMPDIR=/")
	b.image("localhost/static", nil, "--env", "PATH=/usr/local/bin")

	commit := strings.Repeat("c", 40)
	bases := regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`).FindAllStringSubmatch(string(read(t, root+"/Dockerfile")), -1)
	if len(bases) != 2 {
		t.Fatalf("the Dockerfile has the base images %q, want two", bases)
	}
	b.run("build", "--pull-never", "--isolation", "chroot",
		"--build-context", bases[0][1]+"=docker-image://localhost/go", "--build-context", bases[1][1]+"=docker-image://localhost/static",
		"--volume", modules+":/modules", "--volume", cache+":/cache",
		"--build-arg", "VERSION=v9.8.7", "--build-arg", "COMMIT="+commit, "--tag", "localhost/rds-autopilot", ".")

	dir := t.TempDir()
	b.run("push", "localhost/rds-autopilot", "dir:"+dir)
	got, content := unpack(t, dir)
	config := got.Config
	started := slices.Concat(config.Entrypoint, config.Cmd)
	if config.User != "65532:65532" || !slices.Equal(started, []string{"/usr/local/bin/rds-autopilot", "serve"}) {
		t.Errorf("the image runs %q %q as %q", config.Entrypoint, config.Cmd, config.User)
	}
	for label, want := range map[string]string{"version": "v9.8.7", "revision": commit, "licenses": "Apache-2.0", "title": "rds-autopilot"} {
		if label = "org.opencontainers.image." + label; config.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, config.Labels[label], want)
		}
	}
	var all []string
	err := filepath.WalkDir(content, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, strings.TrimPrefix(path, content))
		}
		return err
	})
	if err != nil || !slices.Equal(all, []string{"/usr/local/bin/rds-autopilot"}) {
		t.Errorf("%v, the image adds %q to its base, want only the binary", err, all)
	}
	version := run(t, command(t, nil, filepath.Join(content, config.Entrypoint[0]), "version"))
	if !strings.Contains(version, "v9.8.7") || !strings.Contains(version, commit[:7]) {
		t.Errorf("the binary reports the version %s", version)
	}
}

// unpack returns the configuration of an image in a folder, and a folder with the content of its layers.
func unpack(t *testing.T, dir string) (got image, content string) {
	t.Helper()
	type blob struct{ Digest string }
	var manifest struct {
		Config blob
		Layers []blob
	}
	path := func(b blob) string { return filepath.Join(dir, strings.TrimPrefix(b.Digest, "sha256:")) }
	if err := json.Unmarshal(read(t, dir+"/manifest.json"), &manifest); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(read(t, path(manifest.Config)), &got); err != nil {
		t.Fatal(err)
	}
	content = t.TempDir()
	for _, layer := range manifest.Layers {
		run(t, command(t, nil, "tar", "-xf", path(layer), "-C", content))
	}
	return got, content
}
