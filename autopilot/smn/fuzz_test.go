package smn

import (
	"bytes"
	"encoding/json"
	"testing"
)

// An accepted body means one thing: read again from its fields it is the same, and encoding/json, lenient as it is,
// reads no other.
func FuzzEnvelope(f *testing.F) {
	for _, name := range []string{"notification_alarm.json", "subscription_confirmation.json", "unsubscribe_confirmation.json"} {
		f.Add(example(f, name))
	}
	f.Add([]byte(`{"type":"Notification","type":"x"}`))
	p := NewParser()
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := p.Envelope(body)
		if err != nil || !e.Type.Known() {
			return
		}
		var lenient struct {
			Type     string
			TopicURN string `json:"topic_urn"`
			Message  string
			ID       string `json:"message_id"`
		}
		if err := json.Unmarshal(body, &lenient); err != nil {
			t.Fatalf("accepted, but not by encoding/json: %v", err)
		}
		if lenient.Type != string(e.Type) || lenient.TopicURN != e.TopicURN || lenient.Message != e.Message || lenient.ID != e.MessageID {
			t.Fatalf("two readings of one body: %+v and %+v", e, lenient)
		}
	})
}

// The signed bytes can be cut into the fields of an accepted envelope in one way only: from the end, whose lines have a
// grammar without line feeds. Whatever remains in front is the message.
func FuzzSigningStringHasOneCut(f *testing.F) {
	f.Add("a message", "a subject", true)
	f.Add("x\nmessage_id\n0123456789abcdef0123456789abcdef\ntimestamp\n2024-07-10T10:01:03Z", "", false)
	f.Add("x\nsubject\ny", "z", true)
	p := NewParser()
	f.Fuzz(func(t *testing.T, message, subject string, hasSubject bool) {
		fields := map[string]string{
			keyType: "Notification", keyMessageID: "0123456789abcdef0123456789abcdef", keyTopicURN: "urn:smn:eu-de:0123456789abcdef0123456789abcdef:t",
			keyMessage: message, keyTimestamp: "2024-07-10T10:01:03Z", keySignature: "", keyVersion: "v1", keyCertURL: "",
		}
		if hasSubject {
			fields[keySubject] = subject
		}
		body, err := json.Marshal(fields)
		if err != nil {
			t.Skip()
		}
		e, err := p.Envelope(body)
		if err != nil {
			return
		}
		lines := bytes.Split(e.SigningString(), []byte("\n"))
		tail := 8 // type, topic, time and id, the last line feed not counted
		if e.Subject != "" {
			tail += 2
		}
		head := bytes.Join(lines[1:len(lines)-1-tail], []byte("\n"))
		if string(lines[0]) != keyMessage || string(head) != e.Message {
			t.Fatalf("cut from the end, the message is %q, not %q", head, e.Message)
		}
	})
}

func FuzzAlarm(f *testing.F) {
	f.Add(string(example(f, "legacy_extended_ok_pretty.json")))
	f.Add(string(example(f, "template_v1_alarm.json")))
	f.Fuzz(func(t *testing.T, message string) {
		a, err := ParseAlarm(message)
		if err != nil {
			return
		}
		if a.ID == "" || len(a.Dimensions) == 0 || a.Value < 0 || a.Value > maxValue || a.Time.IsZero() {
			t.Fatalf("accepted %+v", a)
		}
	})
}

func FuzzCertificate(f *testing.F) {
	f.Add(example(f, "throwaway_cert.pem"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if cert, err := ParseCertificate(data); err == nil && cert == nil {
			t.Fatal("neither certificate nor error")
		}
	})
}

func FuzzCertURL(f *testing.F) {
	f.Add("https://smn.eu-de.otc.t-systems.com/smn/SMN_eu-de_0f1e2d3c4b5a69788796a5b4c3d2e1f0.pem")
	f.Fuzz(func(t *testing.T, url string) {
		const host = "smn.eu-de.otc.t-systems.com"
		if err := CertURL(url, []string{host}); err == nil && (len(url) > 200 || url[:len("https://"+host+"/smn/SMN_")] != "https://"+host+"/smn/SMN_") {
			t.Fatalf("accepted %q", url)
		}
	})
}
