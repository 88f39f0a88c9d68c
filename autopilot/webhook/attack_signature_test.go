// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// theirTopic belongs to the attacker, who may publish anything to it.
const theirTopic = "urn:smn:eu-de:ffffffffffffffffffffffffffffffff:theirs"

// alteredAfterSigning returns a function that posts an alarm with a field altered after it was signed.
func alteredAfterSigning(key, value string) func(*harness) {
	return func(s *harness) { s.post(s.alarm(nil).with(key, value).json()) }
}

func signatureAttacks() []attack {
	const id, when = "d84bd6629ef04513ad2e37bffd6e17cb", "2026-11-20T12:00:00Z"
	wanted := alarm("alarm", ruleID, "rds039_disk_util", instance, noon())
	tail := func(topic string) string {
		return "\nmessage_id\n" + id + "\ntimestamp\n" + when + "\ntopic_urn\n" + topic + "\ntype\nNotification"
	}
	embedded := wanted + tail(ourTopic)
	// rearranged signs a message of the attacker's own topic, and then distributes the signed text among other fields.
	rearranged := func(message string, fields m) func(*harness) {
		return func(s *harness) {
			f := s.alarm(m{"topic_urn": theirTopic, "subject": "<none>", "message": message})
			for k, v := range fields {
				f = f.with(k, v)
			}
			s.post(f.json())
		}
	}
	// withSubject posts a subject that is signed, or that the signed text does not have.
	withSubject := func(subject string, isSigned bool) func(*harness) {
		return func(s *harness) {
			e := simcloud.Envelope{Type: "Notification", MessageID: id, TopicURN: ourTopic, Message: wanted, Timestamp: when}
			text := e.SigningString()
			if isSigned {
				text = strings.Replace(text, "\ntimestamp\n", "\nsubject\n"+subject+"\ntimestamp\n", 1)
			}
			f := s.alarm(m{"subject": subject})
			delete(f, "signature")
			s.post(s.signText(f, signingKey(), text).json())
		}
	}
	const bad, forged, stored = resultMalformed, resultForged, resultStored
	rows := []attack{
		{13, "the tail hidden in topic_urn", rearranged(embedded,
			m{"message": wanted, "topic_urn": ourTopic + "\ntype\nNotification" + tail(theirTopic)}), 400, bad, 0},
		{13, "the tail hidden in subject", rearranged(wanted+"\nmessage_id\n"+id+"\nsubject\nx",
			m{"message": wanted, "subject": "x" + tail(theirTopic), "topic_urn": ourTopic}), 400, bad, 0},
		{13, "the head alone, without the tail", rearranged(embedded,
			m{"message": wanted, "topic_urn": ourTopic}), 403, forged, 0},
		{14, "no subject", func(s *harness) { s.post(s.alarm(m{"subject": "<none>"}).json()) }, 200, stored, 1},
		{14, "an empty subject, signed without", withSubject("", false), 200, stored, 1},
		{14, "an empty subject, signed with", withSubject("", true), 200, stored, 1},
		{14, "null for a subject that was signed", func(s *harness) {
			s.post(strings.Replace(s.alarm(m{"subject": "x"}).json(), `"subject":"x"`, `"subject":null`, 1))
		}, 403, forged, 0},
		{14, "a subject of spaces, signed without", withSubject("  ", false), 403, forged, 0},
		{15, "a confirmation shown as a notification", func(s *harness) {
			s.post(s.confirmation(nil).with("type", "Notification").json())
		}, 403, forged, 0},
		{15, "a notification shown as a confirmation", func(s *harness) {
			f := s.alarm(m{"subject": "<none>"}).with("type", "SubscriptionConfirmation")
			s.post(f.with("subscribe_url", s.link()).json())
		}, 403, forged, 0},
		{15, "a cancellation shown as a confirmation", func(s *harness) {
			s.post(s.confirmation(m{"type": "UnsubscribeConfirmation"}).with("type", "SubscriptionConfirmation").json())
		}, 403, forged, 0},
		{16, "subscribe_url added to a notification",
			alteredAfterSigning("subscribe_url", "https://"+elsewhereHost+"/"), 200, stored, 1},
	}
	for _, c := range []struct {
		name  string
		alter func(sig string) string
	}{
		{"empty", func(string) string { return "" }},
		{"in the URL-safe alphabet", func(sig string) string {
			return strings.NewReplacer("+", "-", "/", "_").Replace(sig) + "_"
		}},
		{"without padding", func(sig string) string { return strings.TrimRight(sig, "=") }},
		{"with a line break", func(sig string) string { return sig[:76] + "\n" + sig[76:] }},
		{"with trailing bits", func(sig string) string { return sig[:len(sig)-3] + string(sig[len(sig)-3]+1) + "==" }},
		{"truncated", func(sig string) string { return encoded(decoded(sig)[:255]) }},
		{"with one bit flipped", func(sig string) string { b := decoded(sig); b[100] ^= 1; return encoded(b) }},
	} {
		rows = append(rows, attack{18, "a signature " + c.name, func(s *harness) {
			f := s.alarm(nil)
			s.post(f.with("signature", c.alter(f["signature"])).json())
		}, 403, forged, 0})
	}
	return append(rows,
		attack{18, "a signature of another key", func(s *harness) {
			f := s.alarm(nil)
			delete(f, "signature")
			s.post(s.sign(f, newKey(2048)).json())
		}, 403, forged, 0},
		attack{19, "another message", alteredAfterSigning("message", "{"), 403, forged, 0},
		attack{19, "another message_id", alteredAfterSigning("message_id", strings.Repeat("1", 32)), 403, forged, 0},
		attack{19, "another subject", alteredAfterSigning("subject", "A subject"), 403, forged, 0},
		attack{19, "another timestamp", alteredAfterSigning("timestamp", "2026-11-20T11:59:59Z"), 403, forged, 0},
		attack{19, "another topic", alteredAfterSigning("topic_urn", ourTopic+"9"), 200, resultForeign, 0},
		attack{19, "another link", func(s *harness) {
			f := s.confirmation(nil)
			s.post(f.with("subscribe_url", f["subscribe_url"]+"1").json())
		}, 403, forged, 0},
		attack{20, "CRLF for LF in the message", func(s *harness) {
			s.post(s.alarm(m{"message": "{\n}"}).with("message", "{\r\n}").json())
		}, 403, forged, 0})
}

func decoded(sig string) []byte {
	b, err := base64.StdEncoding.DecodeString(sig)
	if err != nil {
		panic(err)
	}
	return b
}

func encoded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// withMessage returns a function that posts an alarm of our topic with another message in it.
func withMessage(message string) func(*harness) {
	return func(s *harness) { s.post(s.alarm(m{"message": message}).json()) }
}

func envelopeAttacks() []attack {
	padded := func(s *harness, size int) string {
		body := s.alarm(nil).json()
		return body + strings.Repeat(" ", size-len(body))
	}
	withHeader := func(key, value string) func(*harness) {
		return func(s *harness) { s.post(s.alarm(nil).json(), key, value) }
	}
	inChunks := func(s *harness, body string) { s.send(io.MultiReader(strings.NewReader(body))) } // of unknown length
	in2099 := alarm("alarm", ruleID, "rds039_disk_util", instance, time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
	const ignored, stored, unreadable, tooLarge = resultIgnored, resultStored, resultUnreadable, resultTooLarge
	return []attack{
		{4, "no JSON", func(s *harness) { s.post("hello") }, 400, resultMalformed, 0},
		{8, "an alarm of the year 2099", withMessage(in2099), 200, unreadable, 0},
		{8, "the newer schema", withMessage(`{"version":"v1","data":{}}`), 200, unreadable, 0},
		{9, "a body of the limit", func(s *harness) { s.post(padded(s, MaxBody)) }, 200, stored, 1},
		{9, "a byte more", func(s *harness) { s.post(padded(s, MaxBody+1)) }, 413, tooLarge, 0},
		{9, "a byte more, in chunks", func(s *harness) { inChunks(s, padded(s, MaxBody+1)) }, 413, tooLarge, 0},
		{9, "chunks without a length", func(s *harness) { inChunks(s, s.alarm(nil).json()) }, 200, stored, 1},
		{9, "the content type of a form", withHeader("Content-Type", "multipart/form-data; boundary=x"), 200, stored, 1},
		{10, "a header of another type", withHeader("X-SMN-MESSAGE-TYPE", "SubscriptionConfirmation"), 200, stored, 1},
		{10, "a header of another topic", withHeader("X-SMN-TOPIC-URN", theirTopic), 200, stored, 1},
		{11, "a known type in lower case", func(s *harness) {
			s.post(s.alarm(m{"type": "notification"}).json())
		}, 200, ignored, 0},
	}
}

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
