// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// NewClient returns an HTTP client for the hosts of SMN: TLS 1.2 or newer, no redirects, no proxy. An address that is
// not public is refused when dialled, after the name was resolved, unless that very address is one of the hosts. Of the
// others only 100.125.0.0/16 is let pass: the cloud's own services answer from there inside its networks.
func NewClient(hosts Hosts, roots *x509.CertPool) *http.Client {
	d := dialer{hosts: hosts}
	return &http.Client{
		Timeout: certFetchLimit, // of all of it
		Transport: hideLocation{&http.Transport{
			DialContext:            d.dial,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			MaxResponseHeaderBytes: 64 << 10,
			MaxConnsPerHost:        maxFirstFetches,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
		}},
	}
}

// hideLocation removes where a redirect leads. A client that does not follow redirects would still parse it and quote it
// in errors, and it may hold a token.
type hideLocation struct{ *http.Transport }

func (s hideLocation) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.Transport.RoundTrip(req)
	if err == nil {
		resp.Header.Del("Location")
	}
	return resp, err
}

type dialer struct{ hosts Hosts }

func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	nd := net.Dialer{Control: func(_, resolved string, _ syscall.RawConn) error {
		return d.checkAddress(address, resolved)
	}}
	return nd.DialContext(ctx, network, address)
}

// checkAddress returns an error if the resolved address may not be dialled; asked is what was dialled, before its name
// was resolved.
func (d dialer) checkAddress(asked, resolved string) error {
	to, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("dial %s: %w", asked, err)
	}
	ip := to.Addr().Unmap()
	if IsPublic(ip) {
		return nil
	}
	host, _, err := net.SplitHostPort(asked)
	if err != nil {
		return fmt.Errorf("dial %s: %w", asked, err)
	}
	literal, err := netip.ParseAddr(host)
	named := host == "localhost" && ip.IsLoopback()
	if (named || err == nil && literal.Unmap() == ip) && slices.ContainsFunc(d.hosts(), func(h string) bool {
		return h == asked || h == host
	}) {
		return nil
	}
	return errors.New("dial " + asked + ": the address is not public and not configured")
}

// IsPublic reports whether an address is the internet's, or the cloud's own. IPv6 addresses that carry an IPv4 address
// (NAT64, 6to4, Teredo) are not: what they reach is not to be seen from here.
func IsPublic(ip netip.Addr) bool {
	in := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return netip.MustParsePrefix(p).Contains(ip) })
	}
	switch {
	case in("100.125.0.0/16"):
		return true
	case ip.Is4():
		return ip.IsGlobalUnicast() && !ip.IsPrivate() &&
			!in("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4")
	}
	return in("2000::/3") && !in("2001::/32", "2002::/16")
}
