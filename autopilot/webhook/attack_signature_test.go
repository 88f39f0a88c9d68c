// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/base64"
	"io"
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
