// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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
		p.cmd.Wait() //nolint:errcheck // it is killed, or its log has the reason
		close(p.done)
	}()
	return p, nil
}

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the process at once, also a stopped one. Its data is not needed.
func (p *process) kill() {
	p.cmd.Process.Kill() //nolint:errcheck // fails only if the process has ended
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

// addressInUse reports whether the log says that the port is taken.
func (p *process) addressInUse() bool {
	text, err := os.ReadFile(p.log)
	return err == nil && bytes.Contains(text, []byte("address already in use"))
}

// ownProcessGroup keeps an interrupt from the terminal away from a process, so that it ends in our order.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
