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
	"github.com/mcsps/rds-autopilot/internal/otc"
)

const (
	// webLimit bounds the name look-up and the request to the public URL.
	webLimit = 10 * time.Second
	// certEndsSoon is the remaining validity below which a certificate should be renewed.
	certEndsSoon = 14 * 24 * time.Hour
)

func lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// webClient returns a client that trusts the system's roots and follows no redirect.
func webClient() *http.Client {
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Timeout: webLimit, CheckRedirect: noRedirect}
}

func (x *examination) checkPublicURL(ctx context.Context) []Result {
	var found []Result
	if otc.CrossesNetworkUnencrypted(x.PublicURL) {
		found = append(found, Result{State: Warning, Text: "The URL is http: alarms cross the network unencrypted",
			Do: "Install a certificate and give an https URL"})
	}
	ctx, cancel := context.WithTimeout(ctx, webLimit)
	defer cancel()
	host := x.PublicURL.Hostname()
	literal, err := netip.ParseAddr(host)
	addresses := []netip.Addr{literal}
	if err != nil {
		addresses, err = x.LookUp(ctx, host)
	}
	if err != nil || len(addresses) == 0 {
		return append(found, result(Failed, "Create a public DNS record for it", "%s cannot be resolved: %v", host, err)...)
	}
	for _, a := range addresses {
		if a = a.Unmap(); !smn.IsPublic(a) {
			return append(found, result(Warning, publicAddress, "From here, %s is %s, which is private", host, a)...)
		}
	}
	return append(found, ok("%s is %s", host, addresses[0])...)
}

// checkAnswer sends a GET. The receiver answers it with 405, because it accepts only POST, and does not count it.
func (x *examination) checkAnswer(ctx context.Context) []Result {
	if x.Listen != nil && x.api != nil {
		var err error
		if x.mailbox, err = x.listen(x.run); err != nil {
			return result(Failed, "", "The receiver of --listen cannot start: %v", err)
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
	if resp.TLS != nil && len(resp.TLS.PeerCertificates) > 0 &&
		resp.TLS.PeerCertificates[0].NotAfter.Sub(x.Now()) < certEndsSoon {
		return result(Warning, "Renew the certificate", "The certificate expires on %s",
			resp.TLS.PeerCertificates[0].NotAfter.Format(time.DateOnly))
	}
	if resp.StatusCode == http.StatusMethodNotAllowed {
		return ok("A receiver answers%s", secured)
	}
	do := "Check whether the path of --public-url is the same as for the service, and whether the Ingress routes to its port 8080"
	if resp.StatusCode/100 == 3 {
		do = "Give the URL that the redirect leads to, because SMN may not follow it"
	}
	return result(Failed, do, "Another server answers: a GET returns %d, and not 405%s", resp.StatusCode, secured)
}

func describeTLS(state *tls.ConnectionState) string {
	if state == nil || len(state.PeerCertificates) == 0 {
		return ""
	}
	c := state.PeerCertificates[0]
	return fmt.Sprintf("; its certificate is issued by %s and expires on %s", c.Issuer.CommonName,
		c.NotAfter.Format(time.DateOnly))
}

func webFailure(err error) (State, string, string, string) {
	unknown, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	_, isHost := errors.AsType[x509.HostnameError](err)
	switch {
	case isUnknown:
		return Warning, "Use a certificate of a public CA: whether SMN checks it is not documented",
			"The certificate is not trusted here: %v", unknown.Error()
	case isInvalid, isHost:
		return Failed, "Renew the certificate for exactly this host", "The certificate is invalid: %v", err.Error()
	}
	return Warning, "If no message arrives either, check Ingress, firewall and DNS",
		"No answer from here, which is normal if the network does not route back to itself: %v", err.Error()
}
