// SPDX-License-Identifier: Apache-2.0

package world

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// reaper outlives this process: when it ends, however it ends, the processes of the world are killed and its folder is
// removed. It reads the processes from a pipe, the last line counts; the end of the pipe is the end of this process.
type reaper struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
	pids map[int]bool
}

const reaperScript = `
while read -r line; do pids=$line; done
[ -z "$pids" ] || kill -9 $pids
rm -rf -- "$0"`

func startReaper(dir string) (*reaper, error) {
	r := &reaper{cmd: exec.Command("/bin/sh", "-c", reaperScript, dir), pids: map[int]bool{}}
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

// watch adds a process, or takes one that has ended from the list.
func (r *reaper) watch(pid int, running bool) error {
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

func (r *reaper) stop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.pipe.Close() // of a pipe that is written to: nothing is lost
	ended := make(chan error, 1)
	go func() { ended <- r.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("reaper: %w", err)
		}
		return nil
	case <-time.After(closeLimit):
		return errors.New("reaper: still not done with removing temporary files")
	}
}

// ownProcessGroup keeps an interrupt from the terminal away from a process, so that it ends in our order.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
