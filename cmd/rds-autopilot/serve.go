// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	options
	WebhookAddr string
	AdminAddr   string
	LogLevel    string
	LogFormat   string
}

func newServe(env func(string) string) *cobra.Command {
	c, o := serveCommand(env)
	c.RunE = func(c *cobra.Command, _ []string) error {
		level, err := o.validate()
		if err != nil {
			return err
		}
		return serve(c.Context(), o, app.NewLogger(c.ErrOrStderr(), level, o.LogFormat))
	}
	return c
}

// serveCommand returns the command with its flags, and where they go.
func serveCommand(env func(string) string) (*cobra.Command, *serveOptions) {
	o := &serveOptions{options: newOptions(env)}
	c := &cobra.Command{
		Use: "serve", Short: "Receive alarms, decide, patch", Args: arguments(0, 0, "want no arguments"),
		Long: fmt.Sprintf(`Serve receives alarms, decides and patches until it gets SIGTERM or an interrupt.

Every flag can be set in the environment too: --public-url as %s.
Durations have a unit: 30s, 5m, 1h30m. Cloud credentials come from OS_* variables or clouds.yaml.`, envName("public-url")),
	}
	fs := c.Flags()
	fs.SortFlags = false
	o.receiver(fs, "the `URL` that SMN posts alarms to; required. Its path is the webhook's, its scheme the subscription's protocol. http works, with a warning")
	fs.StringVar(&o.WebhookAddr, "webhook-addr", ":8080", "`address` of the receiver, and of nothing else")
	fs.StringVar(&o.AdminAddr, "admin-addr", ":9090", "`address` of the status page, /metrics, /healthz and /readyz; not for the public")
	fs.BoolVar(&o.StatusPage, "status-page", o.StatusPage, "show every database and this replica's health at / of the admin address")
	o.connection(fs)
	fs.StringSliceVar(&o.Namespaces, "watch-namespaces", nil, "comma separated `namespaces` to watch; empty means all")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "elect a leader among the replicas; only it decides")
	fs.StringVar(&o.LeaseNamespace, "lease-namespace", "", "`namespace` of the lease rds-autopilot; empty means the pod's own, and it is required outside a pod")
	o.smn(fs, "that of SMN in the cloud's catalogue", app.Console+" in eu-de and eu-nl; required elsewhere")
	fs.DurationVar(&o.MaxMessageAge, "max-message-age", o.MaxMessageAge, "older messages are refused")
	fs.DurationVar(&o.Sweep, "sweep-interval", o.Sweep, "how often every database is looked at although no message came")
	fs.DurationVar(&o.Recheck, "recheck-interval", o.Recheck, "the next look while an instance is busy or a change is pending")
	fs.IntVar(&o.MaxFlavorChanges, "max-flavor-changes", o.MaxFlavorChanges, "how many flavors may be changing at a time in the cluster; each interrupts its database")
	fs.DurationVar(&o.DrainDelay, "drain-delay", o.DrainDelay, "how long the receiver goes on after SIGTERM, until nobody sends to it any more; at most 1m, and must fit the pod's termination grace period")
	fs.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error")
	fs.StringVar(&o.LogFormat, "log-format", "json", "json or console")
	return c, o
}

func (o *serveOptions) validate() (zapcore.Level, error) {
	level, err := zapcore.ParseLevel(o.LogLevel)
	if err != nil {
		return level, usageError{errors.New("--log-level: want debug, info, warn or error")}
	}
	return level, cmp.Or(oneOf("log-format", o.LogFormat, "json", "console"), o.options.validate())
}

// serve runs until the context ends. Whatever keeps it from starting is one error; a signal meanwhile is none.
func serve(ctx context.Context, o *serveOptions, log *zap.Logger) error {
	defer func() { _ = log.Sync() }() // stderr may be a pipe that cannot
	k8s.RedirectLog(log)
	o.Log = log
	config, _, err := o.config()
	if err != nil {
		return err
	}
	service, err := app.New(ctx, config, o.Options)
	if ctx.Err() != nil {
		log.Info("stopped before it began")
		return nil
	}
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	public, err := listen.Listen(ctx, "tcp", o.WebhookAddr)
	if err != nil {
		return fmt.Errorf("--webhook-addr: %w", err)
	}
	private, err := listen.Listen(ctx, "tcp", o.AdminAddr)
	if err != nil {
		return errors.Join(fmt.Errorf("--admin-addr: %w", err), public.Close())
	}
	return service.Run(ctx, public, private)
}
