// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net"
	"net/url"
	"slices"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
)

// Console is the host that confirmation links lead to in the regions that are known to use it.
const Console = "console.otc.t-systems.com"

// CertHosts are the hosts of signing certificates: as given, else SMN's own in the catalogue. As long as the cloud was
// never reached, and where --endpoint replaces that host, the region's convention stands in.
func CertHosts(o Options, c interface {
	Region() string
	SMNHost() string
}) smn.Hosts {
	if len(o.CertHosts) > 0 {
		return smn.Fixed(o.CertHosts...)
	}
	return func() []string {
		if host := c.SMNHost(); host != "" && o.Endpoints["smn"] == "" {
			return []string{host}
		}
		return []string{SMNHost(c.Region())}
	}
}

// SMNHost is the host of SMN in a region by convention (OTC: endpoints).
func SMNHost(region string) string {
	if region == "eu-ch2" {
		return "smn.eu-ch2.sc.otc.t-systems.com"
	}
	return "smn." + region + ".otc.t-systems.com"
}

// ConfirmHosts are the hosts of confirmation links: as given, else the console's where it is known.
func ConfirmHosts(o Options, region string) ([]string, error) {
	switch {
	case len(o.ConfirmHosts) > 0:
		return o.ConfirmHosts, nil
	case slices.Contains([]string{"eu-de", "eu-nl"}, region):
		return []string{Console}, nil
	}
	return nil, fmt.Errorf("--smn-confirm-hosts is required in region %s: the host of its console, where confirmation links lead", region)
}

// KnownSMNHosts are SMN's hosts in all regions, for when it is not known which one is meant.
func KnownSMNHosts() []string {
	return []string{SMNHost("eu-de"), SMNHost("eu-nl"), SMNHost("eu-ch2")}
}

// CrossesNetworkUnencrypted reports whether alarms to that URL would.
func CrossesNetworkUnencrypted(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}
