// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"net"
	"net/url"
	"strings"
)

// CrossesNetworkUnencrypted reports whether requests to u cross a network over http. A request to a
// loopback address does not.
func CrossesNetworkUnencrypted(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// SameEndpoint reports whether two URLs are the same endpoint. It ignores the case of scheme and host, the default
// port of the scheme, and an empty path. A slash at the end of a path makes another path.
func SameEndpoint(a, b string) bool { return a == b || plainURL(a) == plainURL(b) && plainURL(a) != "" }

func plainURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.Host = strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}
