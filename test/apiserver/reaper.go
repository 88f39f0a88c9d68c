// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Reaper is a child process that outlives this one. When this process ends, even by a signal, the reaper kills the
// watched processes and removes a folder. It reads process IDs from a pipe, and the last line counts. The pipe ends
// with this process.
type Reaper struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
	pids map[int]bool
}

// reaperLimit is how long Stop waits, because a busy machine takes seconds to remove the files of etcd.
const reaperLimit = time.Minute

const reaperScript = `
while read -r line; do pids=$line; done
[ -z "$pids" ] || kill -9 $pids
rm -rf -- "$0" || { sleep 1; rm -rf -- "$0"; }`

// StartReaper starts a reaper that will remove dir.
func StartReaper(dir string) (*Reaper, error) {
	r := &Reaper{cmd: exec.Command("/bin/sh", "-c", reaperScript, dir), pids: map[int]bool{}}
	r.cmd.Dir = "/"
	r.cmd.SysProcAttr = ownProcessGroup()
	var err error
	if r.pipe, err = r.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("reaper: %w", err)
	}
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("reaper: %w", err)
	}
	return r, nil
}

// Watch adds a process to those that the reaper kills. It removes one that no longer runs.
func (r *Reaper) Watch(pid int, running bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pids, pid)
	if running {
		r.pids[pid] = true
	}
	var line []string
	for pid := range r.pids {
		line = append(line, strconv.Itoa(pid))
	}
	if _, err := io.WriteString(r.pipe, strings.Join(line, " ")+"\n"); err != nil {
		return fmt.Errorf("reaper: %w", err)
	}
	return nil
}

// Stop lets the reaper do its work and waits until it has ended.
func (r *Reaper) Stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.pipe.Close() // nothing is lost, because each write is complete
	ended := make(chan error, 1)
	go func() { ended <- r.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("reaper: %w", err)
		}
		return nil
	case <-time.After(reaperLimit):
		return errors.New("reaper: still not done with removing temporary files")
	}
}
