// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"sigs.k8s.io/yaml"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/app"
)

func newPlan(env func(string) string) *cobra.Command {
	o := newOptions(env)
	var namespace, output string
	c := &cobra.Command{
		Use: "plan NAME", Short: "Say what would be decided now for a database, and change nothing",
		Long: `Plan says what would be decided now for the Rds of that name if an alarm came, and changes nothing.
It needs to get and list rdss and rdsautopilots. Cloud credentials come from OS_* variables or clouds.yaml.`,
		Args: arguments(1, 1, "want the name of one Rds: plan -n NAMESPACE NAME"),
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVarP(&namespace, "namespace", "n", "", "`namespace` of the Rds; empty means that of the kubeconfig's context")
	fs.StringVarP(&output, "output", "o", "table", "`format` of the answer: table, json or yaml")
	o.connection(fs)
	fs.Lookup("mode").Usage = "what serve runs with, the upper bound for every database: `Auto`, Recommend or Off"
	for _, name := range []string{"allow-apply", "allowed-instances"} {
		fs.Lookup(name).Usage = "what serve runs with: " + fs.Lookup(name).Usage
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := cmp.Or(oneOf("output", output, "table", "json", "yaml"), o.validate()); err != nil {
			return err
		}
		config, ofContext, err := o.config()
		if err != nil {
			return err
		}
		o.Log = zap.NewNop()
		p, err := app.Plan(c.Context(), config, o.Options, cmp.Or(namespace, ofContext), args[0])
		if err != nil {
			return err
		}
		return writePlan(c.OutOrStdout(), p, output)
	}
	return c
}

// writePlan writes a plan in one of the formats.
func writePlan(w io.Writer, p *autopilot.Plan, format string) (err error) {
	var text []byte
	switch format {
	case "json":
		err = writeJSON(w, p)
	case "yaml":
		text, err = yaml.Marshal(p)
	default:
		text, err = p.Text()
	}
	if err == nil {
		_, err = w.Write(text)
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}
