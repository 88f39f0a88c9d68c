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

// NewClient returns an HTTP client for the hosts of SMN. It uses TLS 1.2 or newer, no redirects and no proxy. It
// checks each address after the name was resolved, and refuses one that is not public unless that address itself is
// one of the hosts. It accepts 100.125.0.0/16, because the cloud's own services have these addresses inside its
// networks.
func NewClient(hosts Hosts, roots *x509.CertPool) *http.Client {
	d := dialer{hosts: hosts}
	return &http.Client{
		Timeout: certFetchLimit, // for the whole request
		Transport: hideLocation{&http.Transport{
			DialContext:            d.dial,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			MaxResponseHeaderBytes: 64 << 10,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
		}},
	}
}

// hideLocation removes the target of a redirect. A client that does not follow redirects still parses the target and
// quotes it in errors, and it may contain a token.
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

// checkAddress returns an error if the client may not connect to the resolved address. asked is the host and port
// before the name was resolved.
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

// IsPublic reports whether an address belongs to the internet or to the cloud's own services. IPv6 addresses that
// contain an IPv4 address (NAT64, 6to4, Teredo) do not, because the contained address may be private.
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
