// SPDX-License-Identifier: Apache-2.0

// Command run starts a cluster and runs a command that finds it in its environment (apiserver.Variable and
// apiserver.KubeVariable): the tests of all packages share it. The cluster ends with the command, however that ends.
// Without a command, kube-apiserver and etcd are compiled if need be, and nothing is started.
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
		_, err := apiserver.Servers(ctx)
		return 0, err
	}
	cluster, err := apiserver.Start(ctx, apiserver.Options{})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), apiserver.KubeVariable+"=real", apiserver.Variable+"="+cluster.Kubeconfig())
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
