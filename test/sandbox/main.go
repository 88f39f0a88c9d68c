// SPDX-License-Identifier: Apache-2.0

// Command sandbox is a world on one machine for the service: a real Kubernetes API, a simulated cloud on a fast clock and a
// stand-in for the operator. It needs nothing but Go and a C library.
//
//	sandbox demo   three databases run full; rds-autopilot sees to it, and every step is printed
//	sandbox up     the same world with no end, with the status page and a page of the simulated cloud
//
// demo exits with 0 if everything happened that should and nothing that should not, else with 1. An interrupt ends either.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/k8s"
)

const usage = `Usage: sandbox COMMAND

Commands:
  demo   three databases run full; rds-autopilot sees to it, and every step is printed (about a minute)
  up     keep the world running until an interrupt, with the status page and a page of the simulated cloud

Flags of up:
  -listen HOST:PORT   where the pages are (default: a free port of 127.0.0.1)
  -speed N            the time factor, 1 to 600 (default 60: a minute takes a second)
  -replicas N         of rds-autopilot (default 2); with 0 you start it by hand, and are told how
`

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)  // from then on a signal ends the process
	k8s.RedirectLog(zap.NewNop()) // client-go's complaints about servers that are being stopped
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout *os.File, stderr io.Writer) int {
	if len(args) == 1 && (args[0] == "help" || args[0] == "--help" || args[0] == "-h") {
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	command, err := parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "sandbox: %v\n%s", err, usage)
		return exitUsage
	}
	out := newConsole(stdout)
	if err := command(ctx, out); err != nil {
		fmt.Fprintf(stderr, "sandbox: %v\n", err)
		return exitError
	}
	return exitOK
}

func parse(args []string) (func(context.Context, *console) error, error) {
	switch {
	case len(args) == 1 && args[0] == "demo":
		return demo, nil
	case len(args) > 0 && args[0] == "up":
		o, err := readUpFlags(args[1:])
		return func(ctx context.Context, out *console) error { return up(ctx, out, o) }, err
	}
	return nil, errors.New("there is no such command")
}
