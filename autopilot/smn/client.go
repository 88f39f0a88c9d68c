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
// not public is refused when dialled, after the name was resolved, unless that very address is one of the hosts.
// 100.64.0.0/10 is let pass: the cloud's own services answer from there inside its networks.
func NewClient(hosts []string, roots *x509.CertPool) *http.Client {
	d := dialer{hosts: hosts}
	return &http.Client{
		Timeout: certFetchLimit,
		Transport: &http.Transport{
			DialContext:            d.dial,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			TLSHandshakeTimeout:    certFetchLimit,
			ResponseHeaderTimeout:  certFetchLimit,
			MaxResponseHeaderBytes: 64 << 10,
			MaxConnsPerHost:        8,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type dialer struct{ hosts []string }

func (d dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	nd := net.Dialer{Timeout: certFetchLimit, Control: func(_, resolved string, _ syscall.RawConn) error {
		return d.allow(address, resolved)
	}}
	return nd.DialContext(ctx, network, address)
}

// allow judges the resolved address; asked is what was dialled, before its name was resolved.
func (d dialer) allow(asked, resolved string) error {
	to, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("dial %s: %w", asked, err)
	}
	ip := to.Addr().Unmap()
	if ip.IsGlobalUnicast() && !ip.IsPrivate() && !translated(ip) {
		return nil
	}
	host, _, err := net.SplitHostPort(asked)
	if err != nil {
		return fmt.Errorf("dial %s: %w", asked, err)
	}
	literal, err := netip.ParseAddr(host)
	named := host == "localhost" && ip.IsLoopback()
	if (named || err == nil && literal.Unmap() == ip) && slices.ContainsFunc(d.hosts, func(h string) bool {
		return h == asked || h == host
	}) {
		return nil
	}
	return errors.New("dial " + asked + ": the address is not public and not configured")
}

// translated addresses carry an IPv4 address inside: NAT64 and 6to4.
func translated(ip netip.Addr) bool {
	return netip.MustParsePrefix("64:ff9b::/32").Contains(ip) || netip.MustParsePrefix("2002::/16").Contains(ip)
}
