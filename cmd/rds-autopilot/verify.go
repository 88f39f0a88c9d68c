// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
	"github.com/mcsps/rds-autopilot/internal/app"
)

const verifyLimit = 10 * time.Second // for the certificate, whose host may be slow

func newVerify(env func(string) string) *cobra.Command {
	o := newOptions(env)
	var file string
	c := &cobra.Command{
		Use: "verify -f FILE", Short: "Check a captured message as the receiver would, and say which check fails", Args: noArguments,
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
		with, err := o.inspection()
		if err != nil {
			return usageError{err}
		}
		ctx, cancel := context.WithTimeout(c.Context(), verifyLimit)
		defer cancel()
		switch ok, err := webhook.WriteSteps(c.OutOrStdout(), webhook.Inspect(ctx, with, body)); {
		case err != nil:
			return fmt.Errorf("write the answer: %w", err)
		case !ok:
			return errCheckFailed
		}
		return nil
	}
	return c
}

// inspection is what the checks need without a cluster.
func (o *options) inspection() (webhook.Options, error) {
	certHosts, confirmHosts := trimmed(o.CertHosts), trimmed(o.ConfirmHosts)
	if len(certHosts) == 0 {
		certHosts = app.KnownSMNHosts()
	}
	if len(confirmHosts) == 0 {
		confirmHosts = []string{app.Console}
	}
	roots, err := app.TrustRoots(o.CAFile)
	if err != nil {
		return webhook.Options{}, fmt.Errorf("--smn-ca-file: %w", err)
	}
	hosts := smn.Fixed(certHosts...)
	return webhook.Options{Keys: smn.NewKeys(hosts, smn.NewClient(hosts, roots), o.Now), ConfirmHosts: confirmHosts, Now: o.Now}, nil
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
