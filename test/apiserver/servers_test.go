// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowCache has a compiler that takes four minutes and counts its calls.
func slowCache(dir string, builds *atomic.Int32, progress *bytes.Buffer) binaryCache {
	return binaryCache{dir: dir, key: "v1", title: "servers", progress: progress,
		compile: func(ctx context.Context, to string) error {
			builds.Add(1)
			select {
			case <-time.After(4 * time.Minute):
				return os.WriteFile(filepath.Join(to, etcdName), nil, 0o600)
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
}

func TestSeveralProcessesWaitForOneBuild(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var builds atomic.Int32
		var first, second bytes.Buffer
		ended := make(chan error)
		go func() {
			_, err := slowCache(dir, &builds, &first).get(t.Context())
			ended <- err
		}()
		synctest.Wait() // the first holds the lock
		for range 2 {   // the second time, the binaries are there
			if got, err := slowCache(dir, &builds, &second).get(t.Context()); err != nil || got != filepath.Join(dir, "v1") {
				t.Errorf("%q, %v", got, err)
			}
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "v1", etcdName)); err != nil || builds.Load() != 1 {
			t.Errorf("%v after %d builds, want one for both", err, builds.Load())
		}
		if !strings.Contains(first.String(), "compiling servers: 1m30s\n") || !strings.Contains(second.String(), "another process compiles servers; waiting") {
			t.Errorf("the one that compiles prints\n%s\nand the one that waits\n%s", &first, &second)
		}
	})
}

func TestAFailedBuildLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	fails := binaryCache{dir: dir, key: "v1", title: "servers", progress: new(bytes.Buffer),
		compile: func(_ context.Context, to string) error {
			if err := os.WriteFile(filepath.Join(to, "half"), nil, 0o600); err != nil {
				return err
			}
			return errors.New("syntax error")
		}}
	if _, err := fails.get(t.Context()); err == nil || !strings.Contains(err.Error(), "compile servers: syntax error") {
		t.Errorf("got %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "v1*")); err != nil || len(left) != 1 || filepath.Ext(left[0]) != ".lock" {
		t.Errorf("left behind: %v, %v, want the lock file alone", left, err)
	}
}

func TestAVersionSelectsTheModuleThatPinsIt(t *testing.T) {
	newest, err := pinned(".", "")
	if err != nil || filepath.Base(newest.dir) != "servers" {
		t.Fatalf("without a version: %s, %v", newest.dir, err)
	}
	minor := strings.TrimPrefix(newest.kube[:strings.LastIndex(newest.kube, ".")], "v")
	for version, want := range map[string]string{minor: "servers", "1.28": "servers-1.28", "1.28.15": "servers-1.28", "1.31": "servers-1.31"} {
		got, err := pinned(".", version)
		if err != nil || filepath.Base(got.dir) != want {
			t.Errorf("version %s: %s, %v, want %s", version, got.dir, err, want)
		}
	}
	for _, version := range []string{"1.2", "1.27", "latest"} {
		if got, err := pinned(".", version); err == nil || !strings.Contains(err.Error(), "v1.28.15") {
			t.Errorf("version %s: %s, %v, want an error with the versions that are pinned", version, got.dir, err)
		}
	}
}
