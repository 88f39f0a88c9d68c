// SPDX-License-Identifier: Apache-2.0

// Command run starts a cluster and runs a command that finds it in its environment (apiserver.Variable and
// apiserver.KubeVariable): the tests of all packages share it. The command runs at once, while the servers are still
// compiled. The cluster ends with the command, however that ends. Without a command, kube-apiserver and etcd are compiled if
// need be, and nothing is started.
//
//	go run ./test/apiserver/run go test ./k8s ./deploy
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mcsps/rds-autopilot/test/apiserver"
)

func main() {
	code, err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the exit code of the command.
func run(command []string, stdout, stderr io.Writer) (code int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if len(command) == 0 {
		_, err := apiserver.Servers(ctx, stderr)
		return 0, err
	}
	file, cluster, err := startBeside(ctx, stderr)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.stop()) }()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), apiserver.KubeVariable+"=real", apiserver.Variable+"="+file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	cmd.WaitDelay = 10 * time.Second                      // what outlives it may hold its output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that a signal reaches all that it starts
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start the command: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s, ok := s.(syscall.Signal); ok {
				_ = syscall.Kill(-cmd.Process.Pid, s) // fails only if all have ended
			}
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.Exited() {
				return exit.ExitCode(), nil
			}
			return cmd.ProcessState.ExitCode(), err
		}
	}
}

// beside is a cluster that starts while the command already runs.
type beside struct {
	dir     string
	cancel  context.CancelFunc
	done    chan struct{}
	cluster *apiserver.Cluster // nil if it could not be started
}

// startBeside starts a cluster in the background, so that tests without one run while the servers are compiled. It returns
// the file that tells those with one where it is.
func startBeside(ctx context.Context, progress io.Writer) (file string, b *beside, err error) {
	b = &beside{done: make(chan struct{})}
	if b.dir, err = os.MkdirTemp("", "apiserver-run-"); err != nil {
		return "", nil, fmt.Errorf("temporary folder: %w", err)
	}
	file = filepath.Join(b.dir, "kubeconfig")
	ctx, b.cancel = context.WithCancel(ctx)
	go func() {
		defer close(b.done)
		cluster, err := apiserver.Start(ctx, apiserver.Options{Progress: progress})
		if err == nil {
			b.cluster = cluster
			err = apiserver.Announce(file, cluster.Kubeconfig())
		}
		if err != nil {
			fmt.Fprintln(progress, "apiserver:", err)
			_ = apiserver.AnnounceFailure(file, err) // without it the tests wait for their own limit
		}
	}()
	return file, b, nil
}

// stop ends the start, or the cluster.
func (b *beside) stop() error {
	b.cancel()
	<-b.done
	err := os.RemoveAll(b.dir)
	if b.cluster != nil {
		err = errors.Join(err, b.cluster.Stop())
	}
	return err
}
