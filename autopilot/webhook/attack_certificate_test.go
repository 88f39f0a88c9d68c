// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"net/http"
	"strings"
	"time"
)

// withCertificates returns a row that posts an authentic alarm after prepare has changed what the certificate host
// sends.
func withCertificates(no int, name string, prepare func(*harness), status int, res result, writes int) attack {
	return attack{no, name, func(s *harness) { prepare(s); s.post(s.alarm(nil).json()) }, status, res, writes}
}

func certificateAttacks() []attack {
	const incomplete, stored = resultIncomplete, resultStored
	good := certificate(&signingKey().PublicKey, signingKey(), nil)
	other := newKey(2048)
	rows := []attack{
		{21, "a URL of another host", func(s *harness) {
			s.post(s.alarm(m{"signing_cert_url": "https://" + elsewhereHost + certPath}).json())
		}, 403, resultForged, 0},
		{23, "a URL of another path", func(s *harness) {
			s.post(s.alarm(m{"signing_cert_url": "https://" + s.certHost() + "/bucket" + certPath}).json())
		}, 403, resultForged, 0},
		withCertificates(25, "a redirect is not followed", func(s *harness) {
			s.setCertHandler(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://"+elsewhereHost+certPath, http.StatusTemporaryRedirect)
			})
		}, 503, incomplete, 0),
		withCertificates(26, "a body that is too large", func(s *harness) {
			s.setCertificate(append(good, make([]byte, 64<<10)...))
		}, 503, incomplete, 0),
		withCertificates(26, "a body of HTML", func(s *harness) {
			s.setCertificate([]byte("<html>pa55word</html>"))
		}, 503, incomplete, 0),
		withCertificates(26, "a chain whose first certificate has another key", func(s *harness) {
			s.setCertificate(append(certificate(&other.PublicKey, other, nil), good...))
		}, 403, resultForged, 0),
		withCertificates(26, "text before the certificate", func(s *harness) {
			s.setCertificate(append([]byte("hello\n"), good...))
		}, 200, stored, 1),
		withCertificates(26, "a body that drips without end", func(s *harness) {
			s.fetching.Timeout = 100 * time.Millisecond
			s.setCertHandler(func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					_, _ = w.Write([]byte("-"))
					_ = http.NewResponseController(w).Flush()
					time.Sleep(10 * time.Millisecond) // the pace of the drip; nothing is measured by it
				}
			})
		}, 503, resultUnavailable, 0),
	}
	return append(append(rows, keyAttacks()...), cacheAttacks()...)
}

func keyAttacks() []attack {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	edPublic, edPrivate, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	small := newKey(1024)
	with := func(name string, pem []byte, status int, res result, writes int) attack {
		return withCertificates(27, name, func(s *harness) { s.setCertificate(pem) }, status, res, writes)
	}
	altered := func(alter func(*x509.Certificate)) []byte {
		return certificate(&signingKey().PublicKey, signingKey(), alter)
	}
	const incomplete = resultIncomplete
	return []attack{
		with("ECDSA", certificate(&curve.PublicKey, curve, nil), 503, incomplete, 0),
		with("Ed25519", certificate(edPublic, edPrivate, nil), 503, incomplete, 0),
		with("RSA of 1024 bits", certificate(&small.PublicKey, small, nil), 503, incomplete, 0),
		with("expired", altered(func(c *x509.Certificate) { c.NotAfter = noon().Add(-time.Second) }), 503, incomplete, 0),
		with("not yet valid", altered(func(c *x509.Certificate) { c.NotBefore = noon().Add(time.Second) }), 503, incomplete, 0),
		with("another issuer: trust is in the host", certificate(&signingKey().PublicKey, curve, nil), 200, resultStored, 1),
	}
}

func cacheAttacks() []attack {
	const away, stored = resultUnavailable, resultStored
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	otherPath := strings.Replace(certPath, "0f1e", "ffff", 1)
	missing := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
	invented := func(s *harness) {
		s.post(s.alarm(nil).with("signing_cert_url", "https://"+s.certHost()+otherPath).json())
	}
	return []attack{
		withCertificates(30, "host down, nothing cached", func(s *harness) { s.setCertHandler(down) }, 503, away, 0),
		{30, "host down for more than a day, certificate cached", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.setCertHandler(down)
			s.setNow(noon().Add(25 * time.Hour))
			s.post(event(s, 2, "ok", s.now()))
		}, 200, stored, 2},
		{30, "host down, and the signature does not match the cached certificate", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.setCertHandler(down)
			s.setNow(noon().Add(2 * time.Minute))
			s.post(s.alarm(nil).with("message_id", strings.Repeat("0", 32)).json())
		}, 403, resultForged, 1},
		{30, "expired while cached", func(s *harness) {
			expires := func(c *x509.Certificate) { c.NotAfter = noon().Add(2 * time.Minute) }
			s.setCertificate(certificate(&signingKey().PublicKey, signingKey(), expires))
			s.post(s.alarm(nil).json())
			s.setNow(noon().Add(3 * time.Minute))
			s.post(event(s, 2, "alarm", s.now()))
		}, 503, away, 1},
		{30, "another certificate at the same URL, which SMN never does", func(s *harness) {
			s.post(s.alarm(nil).json())
			other := newKey(2048)
			s.setCertificate(certificate(&other.PublicKey, other, nil))
			s.setNow(noon().Add(2 * time.Minute))
			f := s.alarm(m{"message_id": strings.Repeat("9", 32)})
			delete(f, "signature")
			s.post(s.sign(f, other).json())
		}, 403, resultForged, 1},
		{30, "another URL", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.setNow(noon().Add(time.Minute))
			s.post(s.alarm(m{
				"message_id":       strings.Repeat("9", 32),
				"message":          alarm("alarm", ruleID, "rds039_disk_util", instance, s.now()),
				"signing_cert_url": "https://" + s.certHost() + otherPath,
			}).json())
		}, 200, stored, 2},
		{30, "an invented URL whose host is down, once a certificate is known", func(s *harness) {
			s.post(s.alarm(nil).with("message_id", strings.Repeat("0", 32)).json()) // forged, so it is not stored
			s.setCertHandler(down)
			invented(s)
		}, 503, resultIncomplete, 0},
		{30, "an invented URL whose host is down, after a restart", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.setCertHandler(down)
			s.start()
			invented(s)
		}, 503, resultIncomplete, 1},
		{30, "after a restart, the URL that has signed a stored message has no certificate", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.setCertHandler(missing)
			s.start()
			s.post(event(s, 2, "ok", noon().Add(time.Minute)))
		}, 503, away, 1},
	}
}
