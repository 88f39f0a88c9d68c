// SPDX-License-Identifier: Apache-2.0

// Command sandbox is a world on one machine for the service: Kubernetes in memory or a real API server, a simulated cloud on
// a fast clock and a stand-in for the operator. It needs nothing but Go.
//
//	sandbox demo   three databases run full; rds-autopilot enlarges them, and every step is printed
//	sandbox up     the same world with no end, with the status page and a page of the simulated cloud
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
  up     keep the world running until an interrupt, with the status page and a page of the simulated cloud

Flags of both:
  -kube memory|real   Kubernetes in memory (default), or kube-apiserver and etcd: those in $KUBEBUILDER_ASSETS, or else
                      compiled from source (some minutes, once)
  -binary FILE        rds-autopilot (default: compile it)

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
	if len(args) == 0 {
		return nil, errors.New("a command is missing")
	}
	o, err := readFlags(args[0], args[1:])
	switch args[0] {
	case "demo":
		return func(ctx context.Context, out *console) error { return demo(ctx, out, o.worldOptions) }, err
	case "up":
		return func(ctx context.Context, out *console) error { return up(ctx, out, o) }, err
	}
	return nil, fmt.Errorf("unknown command %q", args[0])
}

// worldOptions are the flags of both commands.
type worldOptions struct {
	real   bool   // kube-apiserver and etcd instead of Kubernetes in memory
	binary string // of the service; empty compiles it
}

func (o worldOptions) apply(to world.Options) world.Options {
	to.InMemory, to.Binary = !o.real, o.binary
	return to
}

// upOptions are the flags of up.
type upOptions struct {
	worldOptions
	listen   string
	speed    float64
	replicas int
}

func readFlags(command string, args []string) (o upOptions, err error) {
	f := flag.NewFlagSet("sandbox "+command, flag.ContinueOnError)
	f.SetOutput(io.Discard) // run prints the usage
	f.StringVar(&o.binary, "binary", "", "")
	kube := f.String("kube", "memory", "")
	o.speed = demoSpeed
	if command == "up" {
		f.StringVar(&o.listen, "listen", "127.0.0.1:0", "")
		f.Float64Var(&o.speed, "speed", demoSpeed, "")
		f.IntVar(&o.replicas, "replicas", 2, "")
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.real = *kube == "real"
	if o.binary != "" {
		if o.binary, err = filepath.Abs(o.binary); err != nil { // it runs in another folder
			return o, fmt.Errorf("find %s: %w", o.binary, err)
		}
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	case *kube != "real" && *kube != "memory":
		return o, errors.New("-kube is memory or real")
	case o.speed < 1 || o.speed > 600 || o.replicas < 0 || o.replicas > 5:
		return o, errors.New("-speed is 1 to 600, and -replicas 0 to 5")
	}
	return o, nil
}
