// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/autopilot/webhook"
)

// inspectLimit bounds the download of the signing certificate.
const inspectLimit = 10 * time.Second

// Inspect runs those of the receiver's checks that need no cluster on the captured body of a message. Without
// configured hosts, it accepts the hosts of every known region.
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
	route := webhook.Step{State: webhook.StateNote, Check: "route", Text: "certificates: " + Routes(certHosts)}
	return append([]webhook.Step{route}, webhook.Inspect(ctx, webhook.Options{Keys: smn.NewKeys(hosts, o.smnClient(hosts), o.Now),
		ConfirmHosts: confirmHosts, Now: o.Now}, body)...)
}
