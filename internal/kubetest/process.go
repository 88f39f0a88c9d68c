// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a running server. Its output goes to a file, because go test waits for every process that holds its own output.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed once it has ended
}

// startProcess starts a binary in the working directory dir.
func startProcess(binary, dir string, args ...string) (*process, error) {
	p := &process{name: filepath.Base(binary), done: make(chan struct{})}
	p.log = filepath.Join(dir, p.name+".log")
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", p.name, err)
	}
	defer log.Close()
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir = dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = ownProcessGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	go func() {
		p.cmd.Wait() //nolint:errcheck // how it ended is of no interest: it is killed, or its log says why
		close(p.done)
	}()
	return p, nil
}

// ended says whether the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process without giving it time: nothing it holds is needed, and a stopped process ends as well.
func (p *process) kill() {
	p.cmd.Process.Kill() //nolint:errcheck // it fails only when the process is gone
	<-p.done
}

// explain adds the end of the log to an error.
func (p *process) explain(err error) error {
	text, readErr := os.ReadFile(p.log)
	if readErr != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%w; the end of its log:\n%s", err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
}

// addressInUse says whether the log complains of the port.
func (p *process) addressInUse() bool {
	text, err := os.ReadFile(p.log)
	return err == nil && bytes.Contains(text, []byte("address already in use"))
}

// ownProcessGroup keeps an interrupt from the terminal away from a process, so that it ends in our order.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reaper outlives this process: when it ends, however it ends, the servers are killed and their folder is removed. It
// reads the processes to kill from a pipe, the last line counts; the end of the pipe is the end of this process.
type reaper struct {
	pipe io.WriteCloser
	cmd  *exec.Cmd
}

const reaperScript = `
while read -r line; do pids=$line; done
[ -z "$pids" ] || kill -9 $pids
rm -rf -- "$0" || { sleep 1; rm -rf -- "$0"; }`

func startReaper(dir string) (*reaper, error) {
	r := &reaper{cmd: exec.Command("/bin/sh", "-c", reaperScript, dir)}
	r.cmd.Dir = "/"
	r.cmd.SysProcAttr = ownProcessGroup()
	pipe, err := r.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("reaper: %w", err)
	}
	r.pipe = pipe
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("reaper: %w", err)
	}
	return r, nil
}

// watch replaces the processes that are to be killed.
func (r *reaper) watch(processes ...*process) error {
	var pids []string
	for _, p := range processes {
		if p != nil && !p.ended() {
			pids = append(pids, strconv.Itoa(p.cmd.Process.Pid))
		}
	}
	if _, err := io.WriteString(r.pipe, strings.Join(pids, " ")+"\n"); err != nil {
		return fmt.Errorf("reaper: %w", err)
	}
	return nil
}

// stop lets it remove the folder and waits for that.
func (r *reaper) stop() error {
	r.pipe.Close() //nolint:errcheck // closing a pipe for writing cannot fail in a way that matters
	ended := make(chan error, 1)
	go func() { ended <- r.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("reaper: %w", err)
		}
		return nil
	case <-time.After(10 * time.Second):
		return errors.New("reaper: still not done with removing temporary files after 10 s")
	}
}
