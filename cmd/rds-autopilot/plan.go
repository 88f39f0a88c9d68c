// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/internal/app"
)

func newPlan(env func(string) string) *cobra.Command {
	o := newOptions(env)
	namespace := ""
	c := &cobra.Command{
		Use: "plan NAME", Short: "Show the decision that a database would get now, and change nothing",
		Long: `Plan shows the decision that the Rds NAME would get if an alarm came now, the guard that prevents a change,
and the larger flavors. It changes nothing. It ignores flavor changes of other databases (--max-flavor-changes).
It needs the rights to get and list rdss and rdsautopilots, and cloud credentials in OS_* variables or clouds.yaml.`,
		Args: arguments(1, 1, "want the name of one Rds: plan -n NAMESPACE NAME"),
	}
	c.Example = `  rds-autopilot plan -n shop orders
  rds-autopilot plan -n shop orders --mode Recommend`
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVarP(&namespace, "namespace", "n", "",
		"`namespace` of the Rds; empty means the one of the kubeconfig's context")
	o.connection(fs)
	fs.Lookup("mode").Usage = "`mode` that serve runs with, the upper bound for every database: Auto, Recommend or Off"
	for _, name := range []string{"allow-apply", "allowed-instances"} {
		fs.Lookup(name).Usage = "value that serve runs with: " + fs.Lookup(name).Usage
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.validate(); err != nil {
			return err
		}
		config, ofContext, err := o.config()
		if err != nil {
			return err
		}
		o.Log = zap.NewNop()
		text, err := app.Plan(c.Context(), config, o.Options, cmp.Or(namespace, ofContext), args[0])
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.OutOrStdout(), text)
		return err
	}
	return c
}
