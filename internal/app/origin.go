// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net"
	"net/http"
	"strings"
)

// protectPages refuses requests that a page of another site makes through the browser of a person with a port-forward.
// Without it, a site whose name resolves to 127.0.0.1 (DNS rebinding) could read the pages.
func protectPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isOwnHost(r.Host):
			writeText(w, http.StatusForbidden, "The pages are served for localhost, for an IP address and for a Service (NAME.NAMESPACE.svc) only. Use kubectl port-forward.")
		case !isOwnSite(r.Header):
			writeText(w, http.StatusForbidden, "Another site made this request. Open the page itself.")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isOwnHost reports whether the Host of a request cannot be the name of somebody's site: localhost, an IP address, or
// the name of a Service. Nobody can register a name below svc or local.
func isOwnHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return host == "localhost" || net.ParseIP(host) != nil || strings.HasSuffix(host, ".svc") ||
		strings.HasSuffix(host, ".svc.cluster.local")
}

// isOwnSite reports whether a request comes from the pages themselves, from a person, or from a client that is no
// browser. A link on another site may open a page. Another port of localhost is the same site, but not the same origin.
func isOwnSite(h http.Header) bool {
	switch h.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
}
