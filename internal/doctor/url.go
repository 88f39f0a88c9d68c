// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
	"github.com/mcsps/rds-autopilot/internal/app"
)

const (
	webLimit     = 10 * time.Second
	certEndsSoon = 14 * 24 * time.Hour
)

func lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// webClient asks what answers at the public URL, as a stranger would.
func webClient() *http.Client {
	return &http.Client{Timeout: webLimit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (x *examination) checkPublicURL(ctx context.Context) []Result {
	var found []Result
	if app.CrossesNetworkUnencrypted(x.PublicURL) {
		found = append(found, Result{State: Warning, Text: "It is http: alarms cross the network unencrypted", Do: "Give it a certificate, and an https URL"})
	}
	ctx, cancel := context.WithTimeout(ctx, webLimit)
	defer cancel()
	host := x.PublicURL.Hostname()
	addresses := []netip.Addr{{}}
	var err error
	if addresses[0], err = netip.ParseAddr(host); err != nil {
		addresses, err = x.LookUp(ctx, host)
	}
	if err != nil || len(addresses) == 0 {
		return append(found, result(Failed, "Make its DNS record, one that the Internet sees", "%s cannot be found: %v", host, err)...)
	}
	for _, a := range addresses {
		if a = a.Unmap(); !smn.IsPublic(a) {
			return append(found, result(Warning, publicAddress, "Seen from here, %s is %s, which is private", host, a)...)
		}
	}
	return append(found, ok("%s is %s", host, addresses[0])...)
}

// checkAnswer asks as a browser would: the receiver takes POST alone, and nothing is counted.
func (x *examination) checkAnswer(ctx context.Context) []Result {
	if x.Listen != nil && x.api != nil {
		var err error
		if x.mailbox, err = x.listen(randomName()); err != nil {
			return result(Failed, "", "Listening here: %v", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.PublicURL.String(), nil)
	if err != nil {
		return result(Failed, "", "%v", err)
	}
	resp, err := x.Web.Do(req)
	if err != nil {
		return result(webFailure(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 1<<16)
	secured := describeTLS(resp.TLS)
	if resp.TLS != nil && len(resp.TLS.PeerCertificates) > 0 && resp.TLS.PeerCertificates[0].NotAfter.Sub(x.Now()) < certEndsSoon {
		return result(Warning, "Renew the certificate", "The certificate ends on %s", resp.TLS.PeerCertificates[0].NotAfter.Format(time.DateOnly))
	}
	if resp.StatusCode == http.StatusMethodNotAllowed {
		return ok("A receiver of messages%s", secured)
	}
	do := "Check that the path of --public-url is the one that the service has, and that the Ingress leads to its port 8080"
	if resp.StatusCode/100 == 3 {
		do = "SMN need not follow a redirect: give the URL that it leads to"
	}
	return result(Failed, do, "Something else: a GET is answered with %d, and not with 405%s", resp.StatusCode, secured)
}

func describeTLS(state *tls.ConnectionState) string {
	if state == nil || len(state.PeerCertificates) == 0 {
		return ""
	}
	c := state.PeerCertificates[0]
	return fmt.Sprintf("; its certificate is of %s and ends on %s", c.Issuer.CommonName, c.NotAfter.Format(time.DateOnly))
}

func webFailure(err error) (State, string, string, string) {
	unknown, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, isHost := errors.AsType[x509.HostnameError](err)
	switch {
	case isUnknown:
		return Warning, "Use a certificate that the Internet trusts: whether SMN checks it is not documented", "Its certificate is not trusted from here: %v", unknown.Error()
	case isInvalid, isHost:
		return Failed, "Renew the certificate, for this very host", "Its certificate is wrong: %v", err.Error()
	}
	return Warning, "If the message does not arrive either: check Ingress, firewall and DNS", "Nothing answers from here, which is normal where the network does not lead back: %v", err.Error()
}
