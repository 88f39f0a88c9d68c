// SPDX-License-Identifier: Apache-2.0

package main

import (
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
		return serve(c.Context(), o, newLogger(c.ErrOrStderr(), level, o.LogFormat))
	}
	return c
}

func serveCommand(env func(string) string) (*cobra.Command, *serveOptions) {
	o := &serveOptions{options: newOptions(env)}
	c := &cobra.Command{
		Use: "serve", Short: "Receive alarms, decide, patch", Args: arguments(0, 0, "want no arguments"),
		Long: fmt.Sprintf(`Serve receives alarms, decides and patches until it receives SIGTERM or SIGINT.

Environment variables can set every flag: --public-url is %s.
Durations have a unit: 30s, 5m, 1h30m. Cloud credentials come from OS_* variables or clouds.yaml.`, envName("public-url")),
	}
	c.Example = `  rds-autopilot serve --public-url https://alarms.example.com/smn --mode Recommend
  rds-autopilot serve --public-url https://alarms.example.com/smn --watch-namespaces shop,billing --log-format console`
	fs := c.Flags()
	fs.SortFlags = false
	o.receiver(fs, "`URL` to which SMN posts alarms; required. The receiver listens on its path. Its scheme is the protocol of the subscriptions; http works, with a warning")
	fs.StringVar(&o.WebhookAddr, "webhook-addr", ":8080", "`address` of the receiver; nothing else listens on it")
	fs.StringVar(&o.AdminAddr, "admin-addr", ":9090",
		"`address` of the status page, /metrics, /healthz and /readyz; do not make it public")
	fs.BoolVar(&o.StatusPage, "status-page", o.StatusPage,
		"serve a page with every database at / of the admin address")
	o.connection(fs)
	fs.StringSliceVar(&o.Namespaces, "watch-namespaces", nil, "comma separated `namespaces` to watch, besides the own one; empty means all")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "elect a leader among the replicas; only the leader decides")
	fs.StringVar(&o.LeaseNamespace, "lease-namespace", "",
		"`namespace` of the service, with the leader's lease and the topic's ConfigMap; required outside a pod; empty means the pod's own")
	o.installation(fs)
	fs.DurationVar(&o.MaxMessageAge, "max-message-age", o.MaxMessageAge, "the receiver refuses older messages")
	fs.DurationVar(&o.Sweep, "sweep-interval", o.Sweep,
		"time between two sweeps; a sweep checks every database, also without a message")
	fs.DurationVar(&o.Recheck, "recheck-interval", o.Recheck,
		"time to the next check while an instance is busy or a change is pending")
	fs.IntVar(&o.MaxFlavorChanges, "max-flavor-changes", o.MaxFlavorChanges,
		"flavor changes in progress at a time in the cluster; each one interrupts its database")
	fs.DurationVar(&o.DrainDelay, "drain-delay", o.DrainDelay,
		"how long the receiver accepts messages after SIGTERM, until senders have learned of the stop; at most 1m, within the pod's termination grace period")
	o.LogLevel, o.LogFormat = "info", "json"
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "least `level` of the log: debug, info, warn or error")
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "`format` of the log: json or console")
	return c, o
}

func (o *serveOptions) validate() (zapcore.Level, error) {
	level, err := zapcore.ParseLevel(o.LogLevel)
	if err != nil || level > zapcore.ErrorLevel {
		return level, usageError{errors.New("--log-level: want debug, info, warn or error")}
	}
	if o.LogFormat != "json" && o.LogFormat != "console" {
		return level, usageError{errors.New("--log-format: want json or console")}
	}
	return level, o.options.validate()
}

func serve(ctx context.Context, o *serveOptions, log *zap.Logger) error {
	defer func() { _ = log.Sync() }() // stderr may be a pipe, which does not support sync
	k8s.RedirectLog(log)
	o.Log = log
	config, _, err := o.config()
	if err != nil {
		return err
	}
	service, err := app.New(ctx, config, o.Options)
	if ctx.Err() != nil {
		log.Info("stopped before the start")
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
