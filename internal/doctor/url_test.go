// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/app"
)

// certificate returns a self-signed certificate for these names that expires at until.
func certificate(t *testing.T, until time.Time, names ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test CA"}, DNSNames: names, NotBefore: until.AddDate(-1, 0, 0), NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestPublicURLAnswerIsJudgedByStatusAndCertificate(t *testing.T) {
	t.Parallel()
	const host = "autopilot.example.com"
	receiver := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }
	year := time.Now().AddDate(1, 0, 0)
	for _, tc := range []struct {
		name     string
		cert     tls.Certificate
		trusted  bool
		answer   http.HandlerFunc
		state    State
		text, do string
	}{
		{"right", certificate(t, year, host), true, receiver, OK, "its certificate is issued by Test CA and expires on " + year.UTC().Format(time.DateOnly), ""},
		{"a certificate that expires soon", certificate(t, time.Now().Add(13*24*time.Hour), host), true, receiver, Warning, "The certificate expires on", "Renew"},
		{"an expired certificate", certificate(t, time.Now().Add(-time.Hour), host), true, receiver, Failed, "expired", "Renew the certificate for exactly this host"},
		{"a certificate of another host", certificate(t, year, "other.example.com"), true, receiver, Failed, "other.example.com", "for exactly this host"},
		{"an untrusted certificate", certificate(t, year, host), false, receiver, Warning, "is not trusted here", "whether SMN checks it is not documented"},
		{"a redirect", certificate(t, year, host), true, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, Failed, "302, and not 405", "the redirect leads to"},
		{"a page", certificate(t, year, host), true, func(http.ResponseWriter, *http.Request) {}, Failed, "200, and not 405", "the path of --public-url"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(tc.answer)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{tc.cert}}
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.StartTLS()
			t.Cleanup(server.Close)
			roots := x509.NewCertPool()
			if tc.trusted {
				roots.AddCert(tc.cert.Leaf)
			}
			web := webClient()
			web.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: host}, DialContext: server.Client().Transport.(*http.Transport).DialContext}
			x := newExamination(Options{Options: app.Defaults(), Web: web})
			x.Now = time.Now
			x.PublicURL, _ = url.Parse(server.URL + "/smn")
			r := x.checkAnswer(t.Context())[0]
			if r.State != tc.state || !strings.Contains(r.Text, tc.text) || !strings.Contains(r.Do, tc.do) || (r.State == OK) != (r.Do == "") {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestPublicURLWarnsOfHTTPAndPrivateAddresses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ url, address, warns string }{
		{"https://autopilot.example.com/smn", "80.158.1.1", ""},
		{"http://autopilot.example.com/smn", "80.158.1.1", "The URL is http"},
		{"https://autopilot.example.com/smn", "192.168.1.1", "is 192.168.1.1, which is private"},
		{"https://autopilot.example.com/smn", "::ffff:10.0.0.1", "is 10.0.0.1, which is private"},
		{"https://100.64.0.1/smn", "", "is 100.64.0.1, which is private"},
		{"https://10.0.0.1/smn", "", "is 10.0.0.1, which is private"},
		{"https://[fd00::1]/smn", "", "is fd00::1, which is private"},
	} {
		x := newExamination(Options{Options: app.Defaults(), LookUp: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(tc.address)}, nil
		}})
		x.PublicURL, _ = url.Parse(tc.url)
		var warned []string
		for _, r := range x.checkPublicURL(t.Context()) {
			if r.State == Warning && r.Do != "" {
				warned = append(warned, r.Text)
			}
		}
		if got := strings.Join(warned, "; "); (got == "") != (tc.warns == "") || !strings.Contains(got, tc.warns) {
			t.Errorf("%s at %s: %q", tc.url, tc.address, got)
		}
	}
}
