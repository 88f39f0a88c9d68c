// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"fmt"
	"net/url"
	"strings"
)

// Host returns the one form of host[:port] in which hosts are compared: in lower case, and without the port 443.
func Host(name string) string { return strings.TrimSuffix(strings.ToLower(name), ":443") }

// ParseHost parses host[:port] and returns it in the form of Host.
func ParseHost(entry string) (string, error) {
	name := strings.ToLower(entry)
	u, err := url.Parse("https://" + name)
	if err != nil || u.Host != name || strings.HasSuffix(name, ":") || !hasForm(u.Hostname(), 1, 253, lower+digits+".-:") {
		return "", fmt.Errorf("want host[:port] without scheme and path, not %q", entry)
	}
	return Host(name), nil
}
