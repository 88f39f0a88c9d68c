// SPDX-License-Identifier: Apache-2.0

package otc

import "net/url"

// SMNHost returns the host of SMN's API, with its port unless it is 443 of https; empty before the first login.
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
