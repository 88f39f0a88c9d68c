// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/base64"
	"strings"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// theirTopic is one that the attacker owns, and may publish anything to.
const theirTopic = "urn:smn:eu-de:ffffffffffffffffffffffffffffffff:theirs"

// recut signs a message of the attacker's own topic and cuts the signed text in another way.
func recut(message string, alter m) func(*harness) {
	return func(s *harness) {
		f := s.alarm(m{"topic_urn": theirTopic, "subject": "<none>", "message": message})
		for k, v := range alter {
			f = f.with(k, v)
		}
		s.post(f.json())
	}
}

func signingAttacks() []attack {
	const bad, forged = resultMalformed, resultForged
	const id, when = "d84bd6629ef04513ad2e37bffd6e17cb", "2026-11-20T12:00:00Z"
	honestTail := "\nmessage_id\n" + id + "\ntimestamp\n" + when + "\ntopic_urn\n" + theirTopic + "\ntype\nNotification"
	wanted := alarm("alarm", ruleID, "rds039_disk_util", instance, noon())
	embedded := wanted + "\nmessage_id\n" + id + "\ntimestamp\n" + when + "\ntopic_urn\n" + ourTopic + "\ntype\nNotification"
	signed := func(alter m, key, value string) func(*harness) {
		return func(s *harness) { s.post(s.alarm(alter).with(key, value).json()) }
	}
	framed := func(subject string, inFrame bool) func(*harness) {
		return func(s *harness) {
			e := simcloud.Envelope{Type: "Notification", MessageID: id, TopicURN: ourTopic, Message: wanted, Timestamp: when}
			text := e.SigningString()
			if inFrame {
				text = strings.Replace(text, "\ntimestamp\n", "\nsubject\n"+subject+"\ntimestamp\n", 1)
			}
			f := s.alarm(m{"subject": subject})
			delete(f, "signature")
			s.post(s.signText(f, signingKey(), text).json())
		}
	}
	rows := []attack{
		{13, "the tail hidden in topic_urn", recut(embedded, m{"message": wanted, "topic_urn": ourTopic + "\ntype\nNotification" + honestTail}), 400, bad, 0},
		{13, "the tail hidden in subject", recut(wanted+"\nmessage_id\n"+id+"\nsubject\nx", m{"message": wanted, "subject": "x" + honestTail, "topic_urn": ourTopic}), 400, bad, 0},
		{13, "the head alone, the tail dropped", recut(embedded, m{"message": wanted, "topic_urn": ourTopic}), 403, forged, 0},
		{13, "a fresh id on an old signature", signed(nil, "message_id", strings.Repeat("0", 32)), 403, forged, 0},
		{13, "a fresh timestamp on an old signature", signed(nil, "timestamp", "2026-11-20T12:00:01Z"), 403, forged, 0},
		{14, "no subject", func(s *harness) { s.post(s.alarm(m{"subject": "<none>"}).json()) }, 200, resultStored, 1},
		{14, "an empty subject, signed without", framed("", false), 200, resultStored, 1},
		{14, "an empty subject, signed with", framed("", true), 200, resultStored, 1},
		{14, "null for a subject", func(s *harness) { s.post(s.alarm(m{"subject": ""}).swap(s, `"subject":""`, `"subject":null`)) }, 200, resultStored, 1},
		{14, "null for a subject that was signed", func(s *harness) { s.post(s.alarm(m{"subject": "x"}).swap(s, `"subject":"x"`, `"subject":null`)) }, 403, resultForged, 0},
		{14, "a subject of spaces, signed without", framed("  ", false), 403, forged, 0},
		{15, "a confirmation shown as a notification", func(s *harness) { s.post(s.confirmation(nil).with("type", "Notification").json()) }, 403, forged, 0},
		{15, "a notification shown as a confirmation", func(s *harness) {
			s.post(s.alarm(m{"subject": "<none>"}).with("type", "SubscriptionConfirmation").with("subscribe_url", s.link()).json())
		}, 403, forged, 0},
		{15, "a cancellation shown as a confirmation", func(s *harness) {
			s.post(s.confirmation(m{"type": "UnsubscribeConfirmation"}).with("type", "SubscriptionConfirmation").json())
		}, 403, forged, 0},
		{16, "subscribe_url planted in a notification", func(s *harness) {
			s.post(s.alarm(nil).with("subscribe_url", "https://"+elsewhereHost+"/").json())
		}, 200, resultStored, 1},
		{16, "unsubscribe_url planted in a notification", func(s *harness) {
			s.post(s.alarm(nil).with("unsubscribe_url", "https://"+elsewhereHost+"/").json())
		}, 200, resultStored, 1},
		{20, "CRLF for LF in the message", signed(m{"message": "{\n}"}, "message", "{\r\n}"), 403, forged, 0},
		{20, "NFD for NFC in the message", signed(m{"message": "\u00e4"}, "message", "a\u0308"), 403, forged, 0},
	}
	for _, c := range []struct {
		name  string
		alter func(sig string) string
	}{
		{"empty", func(string) string { return "" }},
		{"white space", func(string) string { return "   " }},
		{"the URL-safe alphabet", func(sig string) string { return strings.NewReplacer("+", "-", "/", "_").Replace(sig) + "_" }},
		{"no padding", func(sig string) string { return strings.TrimRight(sig, "=") }},
		{"a line break inside", func(sig string) string { return sig[:76] + "\n" + sig[76:] }},
		{"trailing bits", func(sig string) string { return sig[:len(sig)-3] + string(sig[len(sig)-3]+1) + "==" }},
		{"a zero in front", func(sig string) string { return coded(append([]byte{0}, decoded(sig)...)) }},
		{"truncated", func(sig string) string { return coded(decoded(sig)[:255]) }},
		{"one bit flipped", func(sig string) string { b := decoded(sig); b[100] ^= 1; return coded(b) }},
		{"as long as a book", func(sig string) string { return strings.Repeat("QUJD", 100000) }},
	} {
		rows = append(rows, attack{18, "a signature: " + c.name, func(s *harness) {
			f := s.alarm(nil)
			s.post(f.with("signature", c.alter(f["signature"])).json())
		}, 403, forged, 0})
	}
	rows = append(rows, attack{18, "a signature of another key", func(s *harness) {
		f := s.alarm(nil)
		delete(f, "signature")
		s.post(s.sign(f, newKey(2048)).json())
	}, 403, forged, 0})
	for field, value := range map[string]string{"message": "{", "message_id": strings.Repeat("1", 32), "subject": "A subject", "timestamp": "2026-11-20T11:59:59Z"} {
		rows = append(rows, attack{19, "another " + field, signed(nil, field, value), 403, forged, 0})
	}
	sortByName(rows)
	return append(rows,
		attack{19, "another topic", signed(nil, "topic_urn", ourTopic+"9"), 200, resultForeign, 0},
		attack{19, "another link", func(s *harness) {
			f := s.confirmation(nil)
			s.post(f.with("subscribe_url", f["subscribe_url"]+"1").json())
		}, 403, forged, 0})
}

func decoded(sig string) []byte {
	b, err := base64.StdEncoding.DecodeString(sig)
	if err != nil {
		panic(err)
	}
	return b
}

func coded(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
