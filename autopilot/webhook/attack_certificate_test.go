// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"
	"time"
)

// sortByName makes the order of rows that came out of a map that of each run.
func sortByName(rows []attack) {
	slices.SortStableFunc(rows, func(a, b attack) int {
		if a.no == b.no && a.no == 19 {
			return strings.Compare(a.name, b.name)
		}
		return cmp.Compare(a.no, b.no)
	})
}

// certified is what becomes of an authentic alarm when the certificate host serves this.
func certified(no int, name string, serve func(*harness), status int, res result, writes int) attack {
	return attack{no, name, func(s *harness) { serve(s); s.post(s.alarm(nil).json()) }, status, res, writes}
}

func certificateAttacks() []attack {
	const forged, away, limited = resultForged, resultUnavailable, resultLimited
	rows := []attack{
		{21, "a URL of another host", func(s *harness) {
			s.post(s.alarm(m{"signing_cert_url": "https://" + elsewhereHost + certPath}).json())
		}, 403, forged, 0},
		{23, "a URL of another path", func(s *harness) {
			s.post(s.alarm(m{"signing_cert_url": "https://" + s.certHost() + "/bucket" + certPath}).json())
		}, 403, forged, 0},
		certified(25, "a redirect is not followed", func(s *harness) {
			s.certHostDoes(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://"+elsewhereHost+certPath, http.StatusTemporaryRedirect)
			})
		}, 503, limited, 0),
	}
	good := func() []byte { return certificate(&signingKey().PublicKey, signingKey(), nil) }
	small := func() []byte { key := newKey(1024); return certificate(&key.PublicKey, key, nil) }
	bodies := []struct {
		name string
		pem  func() []byte
	}{
		{"too large", func() []byte { return append(good(), make([]byte, 64<<10)...) }},
		{"HTML", func() []byte { return []byte("<html>pa55word</html>") }},
		{"empty", func() []byte { return nil }},
		{"a chain whose first one is another's", func() []byte { return append(small(), good()...) }},
		{"a broken one and a good one", func() []byte {
			return append([]byte("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"), good()...)
		}},
		{"a private key in front", func() []byte {
			return append(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(signingKey())}), good()...)
		}},
		{"DER", func() []byte { b, _ := pem.Decode(good()); return b.Bytes }},
	}
	for _, b := range bodies {
		rows = append(rows, certified(26, "a body: "+b.name, func(s *harness) { s.serves(b.pem()) }, 503, limited, 0))
	}
	rows = append(rows,
		certified(26, "a body: text in front, which is no block", func(s *harness) { s.serves(append([]byte("hello\n"), good()...)) }, 200, resultStored, 1),
		certified(26, "a body: a chain, of which the first one signs", func(s *harness) { s.serves(append(good(), small()...)) }, 200, resultStored, 1),
		certified(26, "a body: a chain that ends in the middle", func(s *harness) { s.serves(append(good(), good()[:100]...)) }, 200, resultStored, 1))
	rows = append(rows, certified(26, "a body that drips without end", func(s *harness) {
		s.fetching.Timeout = 100 * time.Millisecond
		s.certHostDoes(func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("-"))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond) // the pace of the drip; nothing is measured by it
			}
		})
	}, 503, away, 0))
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
	of := func(alter func(*x509.Certificate)) func(*harness) {
		return func(s *harness) { s.serves(certificate(&signingKey().PublicKey, signingKey(), alter)) }
	}
	const limited = resultLimited
	return []attack{
		certified(27, "ECDSA", func(s *harness) { s.serves(certificate(&curve.PublicKey, curve, nil)) }, 503, limited, 0),
		certified(27, "Ed25519", func(s *harness) { s.serves(certificate(edPublic, edPrivate, nil)) }, 503, limited, 0),
		certified(27, "RSA of 1024 bits", func(s *harness) { s.serves(certificate(&small.PublicKey, small, nil)) }, 503, limited, 0),
		certified(27, "expired", of(func(c *x509.Certificate) { c.NotAfter = noon().Add(-time.Second) }), 503, limited, 0),
		certified(27, "not yet valid", of(func(c *x509.Certificate) { c.NotBefore = noon().Add(time.Second) }), 503, limited, 0),
		certified(27, "another name: trust is in the host", of(func(c *x509.Certificate) { c.Subject.CommonName = "evil.example" }), 200, resultStored, 1),
		certified(27, "another issuer: trust is in the host", func(s *harness) { s.serves(certificate(&signingKey().PublicKey, curve, nil)) }, 200, resultStored, 1),
		certified(27, "an authority's: trust is in the host", of(func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }), 200, resultStored, 1),
		certified(27, "itself signed with SHA-1: trust is in the host", of(func(c *x509.Certificate) { c.SignatureAlgorithm = x509.SHA1WithRSA }), 200, resultStored, 1),
	}
}

func cacheAttacks() []attack {
	down := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	next := func(s *harness, minutes int) string {
		at := noon().Add(time.Duration(minutes) * time.Minute)
		s.at(at)
		return s.alarm(m{
			"message_id": strings.Repeat("7", 31) + string(rune('0'+minutes)), "timestamp": at.Format("2006-01-02T15:04:05Z"),
			"message": alarm("alarm", ruleID, "rds039_disk_util", instance, at),
		}).json()
	}
	const away = resultUnavailable
	return []attack{
		{30, "host down, nothing kept", func(s *harness) { s.certHostDoes(down); s.post(s.alarm(nil).json()) }, 503, away, 0},
		{30, "host down, certificate kept", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.certHostDoes(down)
			s.post(next(s, 5))
		}, 200, resultStored, 2},
		{30, "host down for more than a day, certificate kept", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.certHostDoes(down)
			s.at(noon().Add(25 * time.Hour))
			s.post(event(s, 2, "ok", s.now()))
		}, 200, resultStored, 2},
		{30, "a signature that does not match the kept certificate, and the host is down", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.certHostDoes(down)
			s.at(noon().Add(2 * time.Minute))
			s.post(s.alarm(nil).with("message_id", strings.Repeat("0", 32)).json())
		}, 403, resultForged, 1},
		{30, "expired while kept", func(s *harness) {
			s.serves(certificate(&signingKey().PublicKey, signingKey(), func(c *x509.Certificate) { c.NotAfter = noon().Add(2 * time.Minute) }))
			s.post(s.alarm(nil).json())
			s.post(next(s, 3))
		}, 503, away, 1},
		{30, "another certificate under the same URL: it is one that SMN never exchanged", func(s *harness) {
			s.post(s.alarm(nil).json())
			other := newKey(2048)
			s.serves(certificate(&other.PublicKey, other, nil))
			s.at(noon().Add(2 * time.Minute))
			f := s.alarm(m{"message_id": strings.Repeat("9", 32), "message": alarm("alarm", ruleID, "rds039_disk_util", instance, s.now())})
			delete(f, "signature")
			s.post(s.sign(f, other).json())
		}, 403, resultForged, 1},
		{30, "another URL", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.at(noon().Add(time.Minute))
			s.post(s.alarm(m{
				"message_id": strings.Repeat("9", 32), "message": alarm("alarm", ruleID, "rds039_disk_util", instance, s.now()),
				"signing_cert_url": "https://" + s.certHost() + strings.Replace(certPath, "0f1e", "ffff", 1),
			}).json())
		}, 200, resultStored, 2},
		{30, "an invented URL on our topic", func(s *harness) {
			s.certHostDoes(only(certPath))
			s.post(s.alarm(nil).json())
			s.post(s.alarm(nil).with("signing_cert_url", s.invented(1)).json())
		}, 503, resultLimited, 1},
		{30, "after a restart, the URL that has signed a stored message has no certificate", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.certHostDoes(only("/"))
			s.start()
			s.post(event(s, 2, "ok", noon().Add(time.Minute)))
		}, 503, away, 1},
		{30, "seventy invented URLs, and the honest message after them", func(s *harness) {
			s.certHostDoes(only(certPath))
			for i := range 70 {
				s.post(s.alarm(nil).with("signing_cert_url", s.invented(i)).json())
			}
			s.post(s.alarm(nil).json())
		}, 200, resultStored, 1},
	}
}

// only serves the certificate at one path.
func only(path string) http.HandlerFunc {
	good := certificate(&signingKey().PublicKey, signingKey(), nil)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(good)
	}
}

func (s *harness) invented(i int) string {
	return "https://" + s.certHost() + strings.Replace(certPath, "0f1e", coded16(i), 1)
}

func coded16(i int) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[i>>12&15], digits[i>>8&15], digits[i>>4&15], digits[i&15]})
}
