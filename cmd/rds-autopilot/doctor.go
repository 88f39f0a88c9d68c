// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/internal/doctor"
)

func newDoctor(env func(string) string) *cobra.Command {
	o, instance := newOptions(env), ""
	c := &cobra.Command{
		Use: "doctor", Short: "Rehearse an alarm with the running service, and report whether this installation can do its job",
		Long: `Doctor reads what the service needs in Kubernetes and in the cloud, one line a step. Then it rehearses with the running
service: it creates an RdsAutopilot that only recommends, with thresholds of 1 %, for an instance that nobody manages. It waits
until the alarm has arrived and a decision is recorded, and deletes the object. It changes no database.

The exit code is 0 if every step has succeeded, 1 if one has failed, 2 if the arguments are wrong.`,
		Args: arguments(0, 0, "want no arguments"),
	}
	c.Example = `  kubectl -n rds-autopilot exec deploy/rds-autopilot -- rds-autopilot doctor
  rds-autopilot doctor --public-url https://alarms.example.com/smn --lease-namespace rds-autopilot`
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&instance, "instance", "", "`id` of the instance to rehearse with; empty means the first one that nobody manages")
	o.receiver(fs, "`URL` that serve runs with; required")
	o.connection(fs)
	fs.StringSliceVar(&o.Namespaces, "watch-namespaces", nil, "comma separated `namespaces` that serve watches; empty means all")
	fs.StringVar(&o.LeaseNamespace, "lease-namespace", "",
		"`namespace` of the service, required outside a pod; empty means the pod's own")
	o.installation(fs)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.validate(); err != nil {
			return err
		}
		config, _, err := o.config()
		if err != nil {
			return err
		}
		signal.Ignore(syscall.SIGPIPE) // of a reader of the output that has ended, such as head
		o.Log = zap.NewNop()
		noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		if !doctor.Run(c.Context(), doctor.Options{
			Options: o.Options, Kube: config, Instance: instance, Web: &http.Client{Timeout: 10 * time.Second, CheckRedirect: noRedirect},
			Report: func(l doctor.Line) { fmt.Fprint(c.OutOrStdout(), l) },
		}) {
			return errCheckFailed
		}
		return nil
	}
	return c
}
