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
		Use: "verify -f FILE", Short: "Check a captured message as the receiver would, and say which check fails", Args: arguments(0, 0, "want no arguments"),
		Long: `Verify runs the receiver's checks on a captured body, in its order, and says which one fails first. It fetches the signing
certificate, from the hosts of --smn-cert-hosts only, and nothing else: no link is called, nothing is confirmed. What only
the cluster knows (whether topic, rule and instance are ours, and what is stored already) is not checked.

It exits with 0 if all checks pass, 1 if one fails, 2 if it was called wrongly or cannot read the file.`,
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVarP(&file, "filename", "f", "", "`file` with the body of the POST, byte for byte, without its headers; - is standard input; required")
	o.smn(fs, strings.Join(app.KnownSMNHosts(), ", "), app.Console)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if file == "" {
			return usageError{errors.New("-f is required: the file with the body, or - for standard input")}
		}
		body, err := readCapture(file, c.InOrStdin())
		if err != nil {
			return usageError{fmt.Errorf("-f: %w", err)}
		}
		if err := o.validate(); err != nil {
			return err
		}
		switch ok, err := webhook.WriteSteps(c.OutOrStdout(), app.Inspect(c.Context(), o.Options, body)); {
		case err != nil:
			return fmt.Errorf("write the answer: %w", err)
		case !ok:
			return errCheckFailed
		}
		return nil
	}
	return c
}

// readCapture reads as much as the receiver would, and one byte more.
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
