// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	errNoServer = errors.New("the API server does not run")
	errShared   = errors.New("another process has started the cluster: start one of your own")
)

// PauseAPIServer stops the API server until ResumeAPIServer: it accepts connections and answers nothing.
func (c *Cluster) PauseAPIServer() error { return c.signal("pause", syscall.SIGSTOP) }

// ResumeAPIServer continues a paused API server.
func (c *Cluster) ResumeAPIServer() error { return c.signal("resume", syscall.SIGCONT) }

func (c *Cluster) signal(what string, s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.serving(); err != nil {
		return fmt.Errorf("%s the API server: %w", what, err)
	}
	if err := c.apiServer.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s the API server: %w", what, err)
	}
	return nil
}

// serving returns an error if there is no API server that can be paused or killed.
func (c *Cluster) serving() error {
	switch {
	case c.reaper == nil:
		return errShared
	case c.stopped || c.apiServer.ended():
		return errNoServer
	}
	return nil
}
