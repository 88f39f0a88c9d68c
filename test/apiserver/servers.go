// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	mainModule = "module github.com/mcsps/rds-autopilot\n"

	apiServerName = "kube-apiserver"
	etcdName      = "etcd"

	apiServerPackage = "k8s.io/kubernetes/cmd/kube-apiserver"
	etcdPackage      = "go.etcd.io/etcd/server/v3"
)

// VersionVariable selects one of the pinned versions of Kubernetes, such as 1.28.
const VersionVariable = "KUBE_VERSION"

// Servers returns the folder that holds kube-apiserver and etcd. It compiles them unless they are there, which takes about
// four minutes on two cores. Processes that ask at the same time wait for one build. The folder is below .cache in the
// checkout, one for each set of versions.
func Servers(ctx context.Context) (string, error) {
	root, err := Checkout()
	if err != nil {
		return "", err
	}
	spec, err := pinned(filepath.Join(root, "test", "apiserver"), os.Getenv(VersionVariable))
	if err != nil {
		return "", err
	}
	done := filepath.Join(root, ".cache", "apiserver", spec.key())
	if isDir(done) {
		return done, nil
	}
	unlock, err := Lock(ctx, done+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(done) {
		return done, nil
	}
	title := fmt.Sprintf("kube-apiserver %s and etcd %s", spec.kube, spec.etcd)
	fmt.Fprintf(os.Stderr, "apiserver: compiling %s from source; the first time takes about 4 minutes on 2 cores\n", title)
	// The name is fixed, so that the next build removes the files of a killed one.
	work := done + ".build"
	if err := errors.Join(os.RemoveAll(work), os.Mkdir(work, 0o755)); err != nil {
		return "", fmt.Errorf("build folder: %w", err)
	}
	defer os.RemoveAll(work)
	if err := spec.compile(ctx, work); err != nil {
		return "", fmt.Errorf("compile %s: %w", title, err)
	}
	return done, os.Rename(work, done)
}

// Lock waits until no other process holds the lock of a file, which it creates with its folder. The end of the process
// releases the lock as well.
func Lock(ctx context.Context, file string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("folder of a lock: %w", err)
	}
	lock, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait for the lock %s: %w", file, err), lock.Close())
	}
	return func() { _ = lock.Close() }, nil
}

// Checkout returns the root of the repository, above the working directory.
func Checkout() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && bytes.HasPrefix(mod, []byte(mainModule)) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no checkout of rds-autopilot above %s, from which the tested binaries are compiled", wd)
		}
	}
}

// buildSpec holds all inputs of the compiler.
type buildSpec struct {
	dir         string // of the module that pins the versions
	pins        []byte // its go.mod and go.sum
	kube, etcd  string // versions, such as v1.36.3
	ldflags     string
	environment []string
}

// pinned returns the spec of a version, or of the newest one if version is empty. The modules are servers for the newest version, and
// servers-<minor> for older ones.
func pinned(dir, version string) (buildSpec, error) {
	if version == "" {
		return readBuildSpec(filepath.Join(dir, "servers"))
	}
	modules, err := filepath.Glob(filepath.Join(dir, "servers*", "go.mod"))
	if err != nil {
		return buildSpec{}, fmt.Errorf("pinned versions: %w", err)
	}
	var all []string
	for _, module := range modules {
		spec, err := readBuildSpec(filepath.Dir(module))
		if err != nil {
			return buildSpec{}, err
		}
		if strings.HasPrefix(spec.kube+".", "v"+version+".") {
			return spec, nil
		}
		all = append(all, spec.kube)
	}
	return buildSpec{}, fmt.Errorf("%s=%s: pinned are only %s", VersionVariable, version, strings.Join(all, ", "))
}

func readBuildSpec(dir string) (buildSpec, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return buildSpec{}, fmt.Errorf("pinned versions: %w", err)
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return buildSpec{}, fmt.Errorf("pinned versions: %w", err)
	}
	r := buildSpec{dir: dir, pins: append(mod, sum...)}
	kube := regexp.MustCompile(`(?m)^\s+k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)`).FindSubmatch(mod)
	etcd := regexp.MustCompile(`(?m)^\s+go\.etcd\.io/etcd/server/v3 (v\S+)`).FindSubmatch(mod)
	if kube == nil || etcd == nil {
		return buildSpec{}, fmt.Errorf("pinned versions: no kubernetes or etcd in %s", filepath.Join(dir, "go.mod"))
	}
	r.kube, r.etcd = string(kube[1]), string(etcd[1])
	// Without these flags the server reports v0.0.0-master, an unknown release.
	const version = "k8s.io/component-base/version"
	r.ldflags = fmt.Sprintf("-s -w -X %[1]s.gitVersion=%[2]s -X %[1]s.gitMajor=%[3]s -X %[1]s.gitMinor=%[4]s",
		version, r.kube, kube[2], kube[3])
	r.environment = []string{"CGO_ENABLED=0", "GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH, "GOWORK=off", "GOFLAGS=-mod=readonly"}
	return r, nil
}

func (r buildSpec) key() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s", runtime.Version(), r.ldflags, strings.Join(r.environment, " "), r.pins)
	return r.kube + "-" + hex.EncodeToString(h.Sum(nil))[:12]
}

// compile puts both binaries into the folder to.
func (r buildSpec) compile(ctx context.Context, to string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", r.ldflags,
		"-o", to+string(filepath.Separator), apiServerPackage, etcdPackage)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), r.environment...)
	// An interrupted go build removes its work folder, a killed one does not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("go build: %w\n%s", err, out), ctx.Err())
	}
	// go build names a binary after the last part of its import path that is not a version.
	if err := os.Rename(filepath.Join(to, "server"), filepath.Join(to, etcdName)); err != nil {
		return fmt.Errorf("name etcd: %w", err)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
