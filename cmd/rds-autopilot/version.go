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
	output := "text"
	c := &cobra.Command{
		Use: "version", Short: "Print the build", Args: arguments(0, 0, "want no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			b := app.ThisBuild(version, commit)
			if output == "json" {
				return writeJSON(c.OutOrStdout(), b)
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "rds-autopilot %s (commit %s, %s, %s, SDK %s)\n", b.Version,
				cmp.Or(b.Commit, "unknown"), b.Go, b.Platform, cmp.Or(b.SDK, "unknown"))
			return err
		},
	}
	c.Example = "  rds-autopilot version -o json"
	enumVar(c.Flags(), &output, "output", "o", "`format` of the output: text or json", "text", "json")
	return c
}

// writeJSON writes v as indented JSON.
func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
