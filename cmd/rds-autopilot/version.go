// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/mcsps/rds-autopilot/internal/app"
)

func newVersion() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "version", Short: "Print the build", Args: arguments(0, 0, "want no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			b := app.ThisBuild(version, commit)
			if output == "json" {
				return writeJSON(c.OutOrStdout(), b)
			}
			if output != "" {
				return oneOf("output", output, "json")
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "rds-autopilot %s (commit %s, %s, %s, SDK %s)\n", b.Version,
				cmp.Or(b.Commit, "unknown"), b.Go, b.Platform, cmp.Or(b.SDK, "unknown"))
			return err
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`format`: json; empty means one line of text")
	return c
}

// writeJSON writes v as indented JSON.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
