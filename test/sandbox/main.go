// SPDX-License-Identifier: Apache-2.0

// Command sandbox is a world on one machine for the service: Kubernetes in memory or a real API server, a simulated cloud on
// a fast clock and a stand-in for the operator. It needs nothing but Go.
//
//	sandbox demo   three databases run full; rds-autopilot enlarges them, and every step is printed
//	sandbox up     the same world with no end, with the status page
//
// demo exits with 0 if everything happened that should and nothing that should not, else with 1. An interrupt ends either.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/test/world"
)

const usage = `Usage: sandbox COMMAND [FLAGS]

Commands:
  demo   three databases run full; rds-autopilot enlarges them, and every step is printed (about 40 seconds)
  up     keep the world running until an interrupt, with the status page

Flags:
  -kube memory|real   Kubernetes in memory (default), or kube-apiserver and etcd, compiled from source
                      (some minutes, once)
  -binary FILE        rds-autopilot (default: compile it)
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

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command, o, err := parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "sandbox: %v\n%s", err, usage)
		return exitUsage
	}
	if err := command(ctx, newConsole(stdout), o); err != nil {
		fmt.Fprintf(stderr, "sandbox: %v\n", err)
		return exitError
	}
	return exitOK
}

// worldOptions are the flags.
type worldOptions struct {
	real   bool   // kube-apiserver and etcd instead of Kubernetes in memory
	binary string // of the service; empty compiles it
}

func (o worldOptions) apply(to world.Options) world.Options {
	to.InMemory, to.Binary = !o.real, o.binary
	return to
}

type command func(context.Context, *console, worldOptions) error

func parse(args []string) (command, worldOptions, error) {
	var o worldOptions
	if len(args) == 0 {
		return nil, o, errors.New("a command is missing")
	}
	run := map[string]command{"demo": demo, "up": up}[args[0]]
	if run == nil {
		return nil, o, fmt.Errorf("unknown command %q", args[0])
	}
	f := flag.NewFlagSet("sandbox "+args[0], flag.ContinueOnError)
	f.SetOutput(io.Discard) // the caller prints the usage
	f.StringVar(&o.binary, "binary", "", "")
	kube := f.String("kube", "memory", "")
	if err := f.Parse(args[1:]); err != nil {
		return nil, o, err
	}
	o.real = *kube == "real"
	if o.binary != "" {
		binary, err := filepath.Abs(o.binary) // it runs in another folder
		if err != nil {
			return nil, o, fmt.Errorf("find %s: %w", o.binary, err)
		}
		o.binary = binary
	}
	switch {
	case f.NArg() > 0:
		return nil, o, fmt.Errorf("unknown argument %q", f.Arg(0))
	case *kube != "real" && *kube != "memory":
		return nil, o, errors.New("-kube is memory or real")
	}
	return run, o, nil
}
