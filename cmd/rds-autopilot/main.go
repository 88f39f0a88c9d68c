// Command rds-autopilot keeps the databases that an operator runs on Open Telekom Cloud from running out of storage, CPU
// and memory.
//
//	rds-autopilot serve     receive alarms, decide, patch
//	rds-autopilot plan      say what would be decided now for a database, and change nothing
//	rds-autopilot verify    check a captured message as the receiver would
//	rds-autopilot version   say which build this is
//
// It exits with 0 after a signal or an answer, 1 when it could not start, go on or answer, or a message failed a check, 2
// when it was called wrongly.
// A second signal ends it at once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
)

// version is set when building: -ldflags "-X main.version=…".
var version = "dev"

// gcPercent is how much garbage the heap may hold beside what is in use. The pod is short of memory, not of processor time;
// GOGC in the environment sets another one.
const gcPercent = 40

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from then on a signal ends the process
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `Usage: rds-autopilot COMMAND [FLAGS]

Commands:
  serve     receive alarms, decide, patch (serve --help explains every flag)
  plan      say what would be decided now for a database, and change nothing (plan --help)
  verify    check a captured message as the receiver would, and say which check fails (verify --help)
  version   say which build this is
`

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "serve":
		return runServe(ctx, args, env, stdout, stderr)
	case "plan":
		return runPlan(ctx, args, env, stdout, stderr)
	case "verify":
		return runVerify(ctx, args, env, os.Stdin, stdout, stderr)
	case "version", "--version":
		fmt.Fprintf(stdout, "rds-autopilot %s (%s)\n", version, runtime.Version())
		return exitOK
	case "help", "--help", "-h":
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	fmt.Fprint(stderr, usage)
	return exitUsage
}

func runServe(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, env, stdout)
	switch {
	case errors.Is(err, errHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "rds-autopilot: %v\n", err)
		return exitUsage
	}
	if err := serve(ctx, o, env, stderr); err != nil {
		fmt.Fprintf(stderr, "rds-autopilot: %v\n", err)
		return exitError
	}
	return exitOK
}
