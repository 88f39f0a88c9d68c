// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"net/url"
	"strings"
)

// SameEndpoint says whether two URLs are one endpoint in two ways of writing: the case of scheme and host, the scheme's own
// port, and no path for the path / make no difference. A slash at the end of a path does: it is another path.
func SameEndpoint(a, b string) bool { return a == b || plainURL(a) == plainURL(b) && plainURL(a) != "" }

// plainURL is empty for what is no URL with a host.
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
