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
	return attack{no, "C", name, func(s *harness) { serve(s); s.post(s.alarm(nil).json()) }, status, res, writes}
}

func certificateAttacks() []attack {
	const forged, away, limited = resultForged, resultUnavailable, resultLimited
	// In these HOST is the right host and port, NAME and PORT its parts, TRAP one that listens to no good.
	urls := func(no int, name string, texts ...string) []attack {
		return each(no, "C", name, texts, 403, forged, 0, func(s *harness, text string) {
			host := s.certHost()
			name, port, _ := strings.Cut(host, ":")
			url := strings.NewReplacer("HOST", host, "NAME", name, "PORT", port, "TRAP", s.trap).Replace(text)
			s.post(s.alarm(m{"signing_cert_url": url}).json())
		})
	}
	const p = certPath
	rows := urls(21, "host", "https://HOST@TRAP"+p, "https://user@HOST"+p, "https://user:pa55word@HOST"+p, "https://TRAP#@HOST"+p, "https://TRAP?@HOST"+p,
		`https://TRAP\@HOST`+p, "https://NAME:443"+p, "https://NAME"+p, "https://NAME.:PORT"+p, "https://HOST.TRAP"+p, "https://TRAP"+p,
		"https://127.0.0.2:PORT"+p, "https://x.HOST"+p, "https://HOST.evil.example"+p, "https://evil-HOST"+p, "https://localhost:PORT"+p, "https://LOCALHOST:PORT"+p,
		"https://smn.eu-de.otс.t-systems.com"+p, "https://xn--smn-5cd.example"+p, "https://smn。eu-de.otc.t-systems.com"+p, "https://127%2e0.0.1:PORT"+p,
		"https://[::1]:PORT"+p, "https://[::ffff:127.0.0.1]:PORT"+p, "https://[fe80::1%25lo]:PORT"+p, "https://2130706433:PORT"+p, "https://0x7f000001:PORT"+p,
		"https://0177.0.0.1:PORT"+p, "https://127.0.0.1.nip.io:PORT"+p, "https://HOST\n"+p, "https://HOST\x00"+p)
	rows = append(rows, urls(22, "scheme", "http://HOST"+p, "//HOST"+p, "file://HOST"+p, "https:HOST"+p, "https:/HOST"+p, "HTTPS://HOST"+p, "", "gopher://TRAP"+p)...)
	rows = append(rows, urls(23, "path", "https://HOST/smn/../smn"+p[4:], "https://HOST/smn/%2e%2e"+p, "https://HOST/smn%2fSMN_eu-de_0f1e2d3c4b5a69788796a5b4c3d2e1f0.pem", "https://HOST/"+p,
		"https://HOST"+p+"?redirect=https://TRAP", "https://HOST"+p+"?", "https://HOST"+p+"#", "https://HOST"+p+";x", "https://HOST/smn/SMN_eu-de_0f1e.pem", "https://HOST/bucket"+p, "https://HOST"+p+"\n")...)
	rows = append(rows, urls(24, "object storage", "https://smn.obs.eu-de.otc.t-systems.com"+p, "https://obs.eu-de.otc.t-systems.com/smn"+p)...)
	for _, code := range []int{301, 302, 303, 307, 308} {
		rows = append(rows, certified(25, http.StatusText(code), func(s *harness) {
			s.certHostDoes(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://"+s.trap+certPath, code) })
		}, 503, limited, 0))
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
		{"a private key", func() []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(signingKey())})
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
		{30, "C", "host down, nothing kept", func(s *harness) { s.certHostDoes(down); s.post(s.alarm(nil).json()) }, 503, away, 0},
		{30, "C", "host down, certificate kept", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.certHostDoes(down)
			s.post(next(s, 5))
		}, 200, resultStored, 2},
		{30, "C", "a failure, then success", func(s *harness) {
			s.certHostDoes(down)
			s.post(s.alarm(nil).json())
			s.serves(certificate(&signingKey().PublicKey, signingKey(), nil))
			s.post(next(s, 1))
		}, 200, resultStored, 1},
		{30, "C", "the host is poisoned later, and what is kept stays good", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.serves([]byte("poison"))
			s.at(noon().Add(2 * time.Minute))
			s.post(s.alarm(nil).with("message_id", strings.Repeat("0", 32)).json()) // forged
			s.post(next(s, 3))
		}, 200, resultStored, 2},
		{30, "C", "what does not match what is kept", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.certHostDoes(down)
			s.at(noon().Add(2 * time.Minute))
			s.post(s.alarm(nil).with("message_id", strings.Repeat("0", 32)).json())
		}, 403, resultForged, 1},
		{30, "C", "expired while kept", func(s *harness) {
			s.serves(certificate(&signingKey().PublicKey, signingKey(), func(c *x509.Certificate) { c.NotAfter = noon().Add(2 * time.Minute) }))
			s.post(s.alarm(nil).json())
			s.post(next(s, 3))
		}, 503, away, 1},
		{30, "C", "another certificate under the same URL: it is one that SMN never exchanged", func(s *harness) {
			s.post(s.alarm(nil).json())
			other := newKey(2048)
			s.serves(certificate(&other.PublicKey, other, nil))
			s.at(noon().Add(2 * time.Minute))
			f := s.alarm(m{"message_id": strings.Repeat("9", 32), "message": alarm("alarm", ruleID, "rds039_disk_util", instance, s.now())})
			delete(f, "signature")
			s.post(s.sign(f, other).json())
		}, 403, resultForged, 1},
		{30, "C", "another URL", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.at(noon().Add(time.Minute))
			s.post(s.alarm(m{
				"message_id": strings.Repeat("9", 32), "message": alarm("alarm", ruleID, "rds039_disk_util", instance, s.now()),
				"signing_cert_url": "https://" + s.certHost() + strings.Replace(certPath, "0f1e", "ffff", 1),
			}).json())
		}, 200, resultStored, 2},
		{30, "C", "an invented URL on our topic", func(s *harness) {
			s.certHostDoes(only(certPath))
			s.post(s.alarm(nil).json())
			s.post(s.alarm(nil).with("signing_cert_url", s.invented(1)).json())
		}, 503, resultLimited, 1},
		{30, "C", "the URL that has signed a stored message has no certificate any more", func(s *harness) {
			s.post(s.alarm(nil).json())
			s.certHostDoes(only("/"))
			s.at(noon().Add(31 * 24 * time.Hour))
			s.post(s.alarm(m{"timestamp": s.now().Format("2006-01-02T15:04:05Z")}).json())
		}, 503, away, 1},
		{30, "C", "seventy invented URLs, and the honest message after them; a thousand waiters and thousands of URLs: autopilot/smn", func(s *harness) {
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
