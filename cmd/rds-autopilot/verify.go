// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/app"
)

func newVerify(env func(string) string) *cobra.Command {
	o := newOptions(env)
	var file string
	c := &cobra.Command{
		Use: "verify -f FILE", Short: "Check a captured message as the receiver would, and name the failed check",
		Args: arguments(0, 0, "want no arguments"),
		Long: `Verify runs the receiver's checks on a captured body, in the receiver's order, and names the first one that fails. It
fetches the signing certificate, only from the hosts of --smn-cert-hosts. It calls no link and confirms nothing. It skips the
checks that need the cluster: whether topic, rule and instance are ours, and whether the message is already stored.

The exit code is 0 if all checks pass, 1 if one fails, 2 if the arguments are wrong or the file cannot be read.`,
	}
	c.Example = `  rds-autopilot verify -f body.json
  rds-autopilot verify -f - --smn-cert-hosts smn.eu-de.otc.t-systems.com`
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVarP(&file, "filename", "f", "",
		"`file` with the body of the POST, byte for byte, without headers; - is standard input; required")
	o.smn(fs, strings.Join(app.KnownSMNHosts(), ", "), app.Console)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if file == "" {
			return usageError{errors.New("-f is required: give the file with the body, or - for standard input")}
		}
		body, err := readCapture(file, c.InOrStdin())
		if err != nil {
			return usageError{fmt.Errorf("-f: %w", err)}
		}
		if err := o.validate(); err != nil {
			return err
		}
		passed, err := webhook.WriteSteps(c.OutOrStdout(), app.Inspect(c.Context(), o.Options, body))
		if err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		if !passed {
			return errCheckFailed
		}
		return nil
	}
	return c
}

// readCapture reads one byte more than the receiver accepts, so that the check of the size can fail.
func readCapture(file string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		in = opened
	}
	return io.ReadAll(io.LimitReader(in, webhook.MaxBody+1))
}
