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

// warden outlives this process: when it ends, however it ends, the processes of the world are killed and its folder is
// removed. It reads the processes from a pipe, the last line counts; the end of the pipe is the end of this process.
type warden struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser
	pids map[int]bool
}

const wardenScript = `
while read -r line; do pids=$line; done
[ -z "$pids" ] || kill -9 $pids
rm -rf -- "$0"`

func startWarden(dir string) (*warden, error) {
	w := &warden{cmd: exec.Command("/bin/sh", "-c", wardenScript, dir), pids: map[int]bool{}}
	w.cmd.Dir = "/"
	w.cmd.SysProcAttr = apart()
	var err error
	if w.pipe, err = w.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("warden: %w", err)
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("warden: %w", err)
	}
	return w, nil
}

// watch adds a process, or takes one that has ended from the list.
func (w *warden) watch(pid int, running bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pids, pid)
	if running {
		w.pids[pid] = true
	}
	var line []string
	for pid := range w.pids {
		line = append(line, strconv.Itoa(pid))
	}
	if _, err := io.WriteString(w.pipe, strings.Join(line, " ")+"\n"); err != nil {
		return fmt.Errorf("warden: %w", err)
	}
	return nil
}

func (w *warden) dismiss() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.pipe.Close() // of a pipe that is written to: nothing is lost
	ended := make(chan error, 1)
	go func() { ended <- w.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("warden: %w", err)
		}
		return nil
	case <-time.After(closeLimit):
		return errors.New("warden: still not done with removing temporary files")
	}
}

// apart keeps an interrupt from the terminal away from a process, so that it ends in our order.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
