// SPDX-License-Identifier: Apache-2.0

// Command sandbox is a world on one machine for the service: a real Kubernetes API, a simulated cloud on a fast clock and a
// stand-in for the operator. It needs nothing but Go and a C library.
//
//	sandbox demo   three databases run full; rds-autopilot sees to it, and every step is printed
//	sandbox up     keep the world running for a service that is started by hand
//
// demo exits with 0 if everything happened that should and nothing that should not, else with 1. An interrupt ends either.
package main

import (
	"context"
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
  up     keep the world running for a service that is started by hand, until an interrupt
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
	commands := map[string]func(context.Context, *console) error{"demo": demo, "up": up}
	if len(args) == 1 && (args[0] == "help" || args[0] == "--help" || args[0] == "-h") {
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	if len(args) != 1 || commands[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	out := newConsole(stdout, colourful(stdout, os.Getenv))
	if err := commands[args[0]](ctx, out); err != nil {
		fmt.Fprintf(stderr, "sandbox: %v\n", err)
		return exitError
	}
	return exitOK
}
