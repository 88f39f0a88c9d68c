// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Host returns the one form of host[:port] in which hosts are compared: in lower case, and without the port 443.
func Host(name string) string { return strings.TrimSuffix(strings.ToLower(name), ":443") }

// ParseHost parses host[:port], followed by =ADDRESS or =NETWORK if the host may have private addresses. It returns the
// name in the form of Host. The network is zero if there is none.
func ParseHost(entry string) (name string, private netip.Prefix, err error) {
	name, network, listed := strings.Cut(strings.ToLower(entry), "=")
	u, err := url.Parse("https://" + name)
	if err != nil || u.Host != name || strings.HasSuffix(name, ":") || !hasForm(u.Hostname(), 1, 253, lower+digits+".-:") {
		return "", private, fmt.Errorf("want host[:port] without scheme and path, not %q", entry)
	}
	name = Host(name)
	if !listed {
		return name, private, nil
	}
	if ip, err := netip.ParseAddr(network); err == nil {
		return name, netip.PrefixFrom(ip, ip.BitLen()), nil
	}
	if private, err = netip.ParsePrefix(network); err != nil {
		return "", private, fmt.Errorf("want an address or a network after %q=, not %q", name, network)
	}
	return name, private, nil
}
