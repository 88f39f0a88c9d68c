// SPDX-License-Identifier: Apache-2.0

package otc

import "net/url"

// SMNHost is the host of SMN's API, with a port that is not its scheme's own; empty as long as the cloud was never
// reached.
func (c *Cloud) SMNHost() string {
	g := c.session.current()
	if g == nil {
		return ""
	}
	u, err := url.Parse(g.bases[serviceSMN])
	if err != nil {
		return ""
	}
	if u.Scheme == "https" && u.Port() == "443" {
		return u.Hostname()
	}
	return u.Host
}
