// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcsps/rds-autopilot/internal/app"
)

func newVersion() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "version", Short: "Say which build this is", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			b := app.ThisBuild(version, commit)
			switch output {
			case "":
				_, err := fmt.Fprintf(c.OutOrStdout(), "rds-autopilot %s (commit %s, %s, %s, SDK %s)\n", b.Version, cmp.Or(b.Commit, "unknown"), b.Go, b.Platform, cmp.Or(b.SDK, "unknown"))
				return err
			case "json":
				encoder := json.NewEncoder(c.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(b)
			}
			return usageError{fmt.Errorf("--output: want json, not %q", output)}
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`format`: json; empty means one line for people")
	return c
}
