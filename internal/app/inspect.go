// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
)

const inspectLimit = 10 * time.Second // for the certificate, whose host may be slow

// Inspect runs the receiver's checks, as far as they need no cluster, on the captured body of a message. Hosts that are not
// given are those of every known region.
func Inspect(ctx context.Context, o Options, body []byte) []webhook.Step {
	ctx, cancel := context.WithTimeout(ctx, inspectLimit)
	defer cancel()
	certHosts, confirmHosts := o.CertHosts, o.ConfirmHosts
	if len(certHosts) == 0 {
		certHosts = KnownSMNHosts()
	}
	if len(confirmHosts) == 0 {
		confirmHosts = []string{Console}
	}
	hosts := smn.Fixed(certHosts...)
	return webhook.Inspect(ctx, webhook.Options{Keys: smn.NewKeys(hosts, smn.NewClient(hosts, o.Roots), o.Now), ConfirmHosts: confirmHosts, Now: o.Now}, body)
}
