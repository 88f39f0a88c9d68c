// SPDX-License-Identifier: Apache-2.0

// Command rds-autopilot keeps the databases that an operator runs on Open Telekom Cloud from running out of storage,
// CPU and memory.
//
//	rds-autopilot serve      receive alarms, decide, patch
//	rds-autopilot plan       show the decision that a database would get now, and change nothing
//	rds-autopilot doctor     rehearse an alarm with the running service
//	rds-autopilot version    print the build
//
// The exit code is 0 after success or a signal, 1 after a failure or a failed check, and 2 after wrong arguments. A
// second signal ends the process at once.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// version and commit are set when building: -ldflags "-X main.version=… -X main.commit=…".
var (
	version = "dev"
	commit  = ""
)

func main() {
	ctx, stop := untilSignal(context.Background())
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// untilSignal returns a context that ends with the first signal. A second SIGINT or SIGTERM ends the process at once. A
// second SIGHUP does not, because a terminal that closes often sends two, and doctor must delete its object. nohup
// stays in effect.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	stopHangup := func() {}
	if !signal.Ignored(syscall.SIGHUP) {
		ctx, stopHangup = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, func() {
		stop()
		stopHangup()
	}
}

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

type usageError struct{ error }

// errCheckFailed makes the exit code 1. The command has already written which check failed.
var errCheckFailed = errors.New("a check failed")

// run executes the command line and returns the exit code. It writes an error as one line to stderr.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	root := newRoot(env)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errCheckFailed):
		return exitError
	}
	line := strings.ReplaceAll(err.Error(), "\n", "; ") // joined errors have several lines
	fmt.Fprintf(stderr, "rds-autopilot: %s\n", line)
	if errors.As(err, &usageError{}) {
		return exitUsage
	}
	return exitError
}

func newRoot(env func(string) string) *cobra.Command {
	root := &cobra.Command{
		Use: "rds-autopilot", Version: version,
		Short: "Keep databases on Open Telekom Cloud from running out of storage, CPU and memory",
		Long: `rds-autopilot receives the cloud's alarms, decides whether a database gets a larger volume or the next larger flavor,
and patches its Rds. The database operator applies the change.`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{errors.New("a command is missing: serve, plan, doctor or version; --help explains them")}
		}
		return usageError{fmt.Errorf("unknown command %q; --help lists them", args[0])}
	}
	root.RunE = func(*cobra.Command, []string) error { return nil } // Args has returned an error already
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return fromEnv(c.Flags(), env) }
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServe(env), newPlan(env), newDoctor(env), newVersion())
	return root
}

func arguments(least, most int, want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usageError{fmt.Errorf("%s, not %q", want, args)}
		}
		return nil
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the build", Args: arguments(0, 0, "want no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "rds-autopilot %s (commit %s, %s, %s/%s)\n", version,
				cmp.Or(commit, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// newLogger returns a logger that writes one line per event to w. format is json or console.
func newLogger(w io.Writer, level zapcore.Level, format string) *zap.Logger {
	config := zap.NewProductionEncoderConfig()
	config.TimeKey, config.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	encoder := zapcore.NewJSONEncoder(config)
	if format == "console" {
		encoder = zapcore.NewConsoleEncoder(config)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level))
}
