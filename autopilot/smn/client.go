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
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// NewClient returns an HTTP client for the hosts of SMN. It uses TLS 1.2 or newer and no redirects. Without a proxy, it
// checks each address after the name was resolved, and refuses one that is neither public nor itself one of the hosts.
// It accepts 100.125.0.0/16, because the cloud's own services have these addresses inside its networks. roots may be nil
// for the system's. proxy returns the proxy of a request, or nil. A proxy resolves the name by itself, so only the list
// of hosts limits what is fetched through it.
func NewClient(hosts Hosts, roots *x509.CertPool, proxy func(*http.Request) (*url.URL, error)) *http.Client {
	base := func() *http.Transport {
		return &http.Transport{
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			MaxResponseHeaderBytes: 64 << 10,
			IdleConnTimeout:        time.Minute,
			ForceAttemptHTTP2:      true,
		}
	}
	direct, proxied := base(), base()
	direct.DialContext, proxied.Proxy = dialer{hosts}.dial, proxy
	return &http.Client{
		Timeout:   certFetchLimit, // for the whole request
		Transport: transport{direct, proxied, proxy},
	}
}

type transport struct {
	direct, proxied http.RoundTripper
	proxy           func(*http.Request) (*url.URL, error)
}

// RoundTrip removes the target of a redirect. A client that does not follow redirects still parses the target and
// quotes it in errors, and it may contain a token.
func (t transport) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	var via *url.URL
	if via, err = t.proxy(req); err != nil {
		return nil, errors.New("the proxy in the environment is not a URL") // err may quote its password
	}
	if via == nil {
		resp, err = t.direct.RoundTrip(req)
	} else if resp, err = t.proxied.RoundTrip(req); err != nil {
		err = fmt.Errorf("through the proxy %s: %w", via.Host, err)
	}
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

func (d dialer) checkAddress(asked, resolved string) error {
	to, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("dial %s: %w", asked, err)
	}
	ip := withoutNAT64(to.Addr())
	if IsPublic(ip) {
		return nil
	}
	asked = strings.ToLower(asked)
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
	return fmt.Errorf("dial %s: its address %s is not public", asked, ip)
}

// withoutNAT64 returns the IPv4 address that a NAT64 gateway or the kernel connects to for an IPv6 address, or the
// address itself.
func withoutNAT64(ip netip.Addr) netip.Addr {
	if b := ip.As16(); netip.MustParsePrefix("64:ff9b::/96").Contains(ip) {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip.Unmap()
}

// IsPublic reports whether an address belongs to the internet or to the cloud's own services. It judges the IPv4
// address in one of NAT64. Other addresses that contain an IPv4 address (6to4, Teredo) are not public, because the
// contained address may be private.
func IsPublic(ip netip.Addr) bool {
	ip = withoutNAT64(ip)
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
