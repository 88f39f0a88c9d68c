// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
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

// KillAPIServer ends the API server: connections are cut, then refused. etcd keeps the data.
func (c *Cluster) KillAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.serving(); err != nil {
		return fmt.Errorf("kill the API server: %w", err)
	}
	c.apiServer.kill()
	return c.reaper.Watch(c.apiServer.cmd.Process.Pid, false)
}

// RestartAPIServer starts a killed API server at the same address with the same keys, and returns once it is ready.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !errors.Is(c.serving(), errNoServer) || c.stopped {
		return errors.New("restart the API server: it was not killed, or the cluster is stopped")
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.startAPIServer(ctx); err != nil {
		return fmt.Errorf("restart the API server: %w", err)
	}
	return nil
}
