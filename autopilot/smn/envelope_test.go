// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func example(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func exampleKey(t testing.TB) *rsa.PublicKey {
	t.Helper()
	cert, err := ParseCertificate(example(t, "throwaway_cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return cert.PublicKey.(*rsa.PublicKey)
}

func TestExamplesAreReadAndVerified(t *testing.T) {
	for _, name := range []string{
		"notification_alarm", "notification_alarm_pg_instance_level", "notification_ok", "subscription_confirmation", "unsubscribe_confirmation",
	} {
		t.Run(name, func(t *testing.T) {
			e, err := ParseEnvelope(example(t, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if want := example(t, name+".signing-string.txt"); !bytes.Equal(e.SigningString(), want) {
				t.Errorf("signing string\n%q\nwant\n%q", e.SigningString(), want)
			}
			if err := e.Verify(exampleKey(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// edit returns the example with a piece of its text replaced.
func edit(t testing.TB, old, replacement string) []byte {
	t.Helper()
	body := string(example(t, "notification_alarm.json"))
	if !strings.Contains(body, old) {
		t.Fatalf("the example has no %q", old)
	}
	return []byte(strings.Replace(body, old, replacement, 1))
}

func TestEnvelopeRefuses(t *testing.T) {
	for name, body := range map[string][]byte{
		"nothing":                        nil,
		"null":                           []byte(`null`),
		"a list":                         []byte(`[]`),
		"a string":                       []byte(`"x"`),
		"an empty object":                []byte(`{}`),
		"no JSON":                        []byte(`type=Notification`),
		"a byte order mark":              append([]byte("\xef\xbb\xbf"), example(t, "notification_alarm.json")...),
		"text behind it":                 append(example(t, "notification_alarm.json"), []byte(`{}`)...),
		"a second key, other case":       edit(t, `"type"`, `"TYPE": "Notification", "type"`),
		"only the other case":            edit(t, `"type"`, `"Type"`),
		"a long s instead of an s":       edit(t, `"subject"`, `"ſubject"`),
		"a Kelvin sign is no k":          edit(t, `"type"`, `"to\u212aen": 1, "meſſage": "", "type"`),
		"a key twice":                    edit(t, `"type"`, `"type": "Notification", "type"`),
		"a number for a string":          edit(t, `"v1"`, `1`),
		"null for a string":              edit(t, `"v1"`, `null`),
		"an object for a string":         edit(t, `"v1"`, `{}`),
		"bad UTF-8":                      edit(t, `"v1"`, "\"v1\xff\""),
		"half a surrogate pair":          edit(t, `[Major Alarm]`, `\ud800`),
		"nested too deep":                edit(t, `"type"`, `"x": `+strings.Repeat("[", 10001)+strings.Repeat("]", 10001)+`, "type"`),
		"no signature":                   edit(t, `"signature"`, `"unsigned"`),
		"no topic":                       edit(t, `"topic_urn"`, `"topic"`),
		"a line feed in the topic":       edit(t, `:rds-autopilot"`, `:rds-autopilot\nx"`),
		"a line feed in the id":          edit(t, `d84bd6629ef04513ad2e37bffd6e17cb`, `d84bd6629ef04513ad2e37bffd6e17cb\n`),
		"a line feed in the subject":     edit(t, `[Major Alarm]`, `\n`),
		"a line feed in the time":        edit(t, `2024-07-10T10:01:03Z`, `2024-07-10T10:01:03Z\n`),
		"a line feed in the type":        edit(t, `"Notification"`, `"Notification\n"`),
		"another zone":                   edit(t, `2024-07-10T10:01:03Z`, `2024-07-10T10:01:03+02:00`),
		"the 13th month":                 edit(t, `2024-07-10T10:01:03Z`, `2024-13-10T10:01:03Z`),
		"another version":                edit(t, `"v1"`, `"v2"`),
		"a confirmation without its URL": edit(t, `"Notification"`, `"SubscriptionConfirmation"`),
	} {
		if _, err := ParseEnvelope(body); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", name, err)
		}
	}
}

func TestEnvelopeAccepts(t *testing.T) {
	for name, body := range map[string][]byte{
		"unknown keys, whatever they hold": edit(t, `"type"`, `"new": {"a": [1, null, {"b": true}]}, "type"`),
		"signature version in capitals":    edit(t, `"v1"`, `"V1"`),
		"a whole surrogate pair":           edit(t, `[Major Alarm]`, `\ud83d\ude00`),
		"U+FFFD itself":                    edit(t, `[Major Alarm]`, `\ufffd`),
		"no subject":                       edit(t, `"subject"`, `"other"`),
	} {
		if _, err := ParseEnvelope(body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnUnknownTypeIsNotReadFurther(t *testing.T) {
	e, err := ParseEnvelope([]byte(`{"type": "HttpSubscriptionUserConfirm", "topic_urn": "whatever"}`))
	if err != nil || e.Type.Known() || e.TopicURN != "" {
		t.Fatalf("%+v, %v", e, err)
	}
}

func TestVerifyRefuses(t *testing.T) {
	flip := func(field, old, replacement string) []byte {
		t.Helper()
		var m map[string]string
		if err := json.Unmarshal(example(t, "notification_alarm.json"), &m); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(m[field], old) {
			t.Fatalf("%s has no %q", field, old)
		}
		m[field] = strings.Replace(m[field], old, replacement, 1)
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	for name, body := range map[string][]byte{
		"another message":            flip("message", "91.37", "91.38"),
		"another id":                 flip("message_id", "d84", "d85"),
		"another subject":            flip("subject", "Major", "Minor"),
		"another time":               flip("timestamp", "10:01:03", "10:01:04"),
		"another topic":              flip("topic_urn", "rds-autopilot", "rds-autopilot2"),
		"one character of signature": flip("signature", "gUmE", "gUmF"),
		"an empty signature":         flip("signature", flipAll(t), ""),
		"white space in it":          flip("signature", "gUmE", "gU mE"),
		"a line break in it":         flip("signature", "gUmE", "gU\nmE"),
		"no padding":                 flip("signature", "==", ""),
		"URL-safe alphabet":          flip("signature", "/", "_"),
		"trailing bits":              flip("signature", "Q==", "R=="),
	} {
		e, err := ParseEnvelope(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := e.Verify(exampleKey(t)); !errors.Is(err, ErrForged) {
			t.Errorf("%s: %v, want ErrForged", name, err)
		}
	}
}

func flipAll(t *testing.T) string {
	e, err := ParseEnvelope(example(t, "notification_alarm.json"))
	if err != nil {
		t.Fatal(err)
	}
	return e.Signature
}

func TestParseAlarm(t *testing.T) {
	e, err := ParseEnvelope(example(t, "notification_alarm.json"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := ParseAlarm(e.Message)
	if err != nil {
		t.Fatal(err)
	}
	if a.ID != "al1700000000000AbCdEfGhI" || a.Status != "alarm" || a.Metric != "rds039_disk_util" || a.Value != 91.37 ||
		a.Time.UnixMilli() != 1720605661184 || a.ValueTime.UnixMilli() != 1720605600000 ||
		len(a.Dimensions) != 1 || a.Dimensions[0] != (Dimension{"rds_instance_id", "00112233445566778899aabbccddeeffno01"}) {
		t.Errorf("%+v", a)
	}
	if a, err = ParseAlarm(string(example(t, "legacy_extended_ok_pretty.json"))); err != nil || a.Status != "ok" {
		t.Errorf("the pretty recovery: %+v, %v", a, err)
	}
	if _, err := ParseAlarm(string(example(t, "template_v1_alarm.json"))); !errors.Is(err, ErrTemplate) {
		t.Errorf("the template schema: %v, want ErrTemplate", err)
	}
}

func TestParseAlarmRefuses(t *testing.T) {
	e, err := ParseEnvelope(example(t, "notification_alarm.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a string for a number":   {`1720605661184`, `"1720605661184"`},
		"a time of long ago":      {`1720605661184`, `1720605661`},
		"a time beyond int64":     {`1720605661184`, `99999999999999999999`},
		"a broken time":           {`1720605661184`, `1720605661184.5`},
		"no rule":                 {`"alarm_id"`, `"alarm"`},
		"another form of rule":    {`al1700000000000AbCdEfGhI",`, `../x",`},
		"a dimension without end": {`rds_instance_id:`, `rds_instance_id`},
		"a key twice":             {`"alarm_status"`, `"alarm_status":"ok","alarm_status"`},
		"another case":            {`"alarm_status"`, `"Alarm_Status"`},
		"not an object":           {`{"message_type"`, `[{"message_type"`},
	} {
		if !strings.Contains(e.Message, change[0]) {
			t.Fatalf("%s: the example has no %q", name, change[0])
		}
		if _, err := ParseAlarm(strings.Replace(e.Message, change[0], change[1], 1)); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %v, want ErrUnreadable", name, err)
		}
	}
}
