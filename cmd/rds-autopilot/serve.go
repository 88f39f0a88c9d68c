package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/k8s"
)

// serve runs until the context ends. Whatever keeps it from starting is one error; a signal meanwhile is none.
func serve(ctx context.Context, o options, env func(string) string, stderr io.Writer) error {
	log := o.logger(stderr)
	defer func() { _ = log.Sync() }() // stderr may be a pipe that cannot
	k8s.RedirectLog(log)
	service, err := prepare(ctx, o, env, log)
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
	defer public.Close()
	private, err := listen.Listen(ctx, "tcp", o.AdminAddr)
	if err != nil {
		return fmt.Errorf("--admin-addr: %w", err)
	}
	defer private.Close()
	return service.Run(ctx, public, private)
}

func prepare(ctx context.Context, o options, env func(string) string, log *zap.Logger) (*app.App, error) {
	config, err := k8s.NewConfig(o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	of := o.app(env, log)
	if of.Roots, err = trustRoots(o.CAFile); err != nil {
		return nil, fmt.Errorf("--smn-ca-file: %w", err)
	}
	if o.plain() {
		log.Warn("--public-url is http: alarms cross the network unencrypted")
	}
	return app.New(ctx, config, of)
}

// app are the options of the service.
func (o *options) app(env func(string) string, log *zap.Logger) app.Options {
	return app.Options{
		PublicURL: o.PublicURL, Mode: o.Mode, Namespaces: o.Namespaces, CertHosts: o.CertHosts, ConfirmHosts: o.ConfirmHosts,
		MaxMessageAge: o.MaxMessageAge, Sweep: o.Sweep, Recheck: o.Recheck, MaxFlavorChanges: o.MaxFlavors,
		LeaderElect: o.LeaderElect, LeaseNamespace: o.LeaseNS, DrainDelay: o.DrainDelay,
		CloudRate: o.CloudRate, Endpoints: o.Endpoints, Env: env, Version: version, Log: log, Now: time.Now,
	}
}

// trustRoots are the system's and those of the file.
func trustRoots(file string) (*x509.CertPool, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if file == "" {
		return roots, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return roots, nil
}
