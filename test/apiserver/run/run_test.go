// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

func TestCommandGetsAClusterThatEndsWithIt(t *testing.T) {
	apiserver.NeedReal(t)
	var out, errs bytes.Buffer
	code, err := run([]string{"sh", "-c", `while [ ! -e "$KUBETEST_KUBECONFIG" ]; do sleep 0.05; done
		grep -o "server: https://127.0.0.1:[0-9]*" "$KUBETEST_KUBECONFIG"; echo beside >&2; exit 7`}, &out, &errs)
	if code != 7 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	if !strings.Contains(out.String(), "server: https://127.0.0.1:") || !strings.HasSuffix(errs.String(), "beside\n") {
		t.Errorf("it printed %q and %q", &out, &errs)
	}
}

// lockedBuffer is a buffer that several processes may write to.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

func TestASignalReachesAllThatTheCommandStarts(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	go func() {
		for { // only then is the signal no longer the end of this process
			if _, err := os.Stat(started); err == nil {
				_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	var out, errs lockedBuffer // the servers and the command write to it
	child := `trap "echo child ended; exit 0" TERM; echo > ` + started + `; while :; do sleep 0.05; done`
	code, err := run([]string{"sh", "-c", "sh -c '" + child + "' & wait"}, &out, &errs)
	if err == nil || code != -1 {
		t.Errorf("exit code %d, %v, want it ended by a signal", code, err)
	}
	if !strings.Contains(out.String(), "child ended") {
		t.Errorf("it printed %q and %q", &out, &errs)
	}
}
