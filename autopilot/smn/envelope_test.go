// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func example(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	return data
}

func TestExamplesOfTheManualAreVerified(t *testing.T) {
	cert, err := ParseCertificate(example(t, "throwaway_cert.pem"))
	must(t, err)
	for _, name := range []string{
		"notification_alarm", "notification_alarm_pg_instance_level", "notification_ok", "subscription_confirmation", "unsubscribe_confirmation",
	} {
		t.Run(name, func(t *testing.T) {
			e, err := ParseEnvelope(example(t, name+".json"))
			must(t, err)
			if want := example(t, name+".signing-string.txt"); !bytes.Equal(e.SigningString(), want) {
				t.Errorf("signing string\n%q\nwant\n%q", e.SigningString(), want)
			}
			if err := e.Verify(cert.PublicKey.(*rsa.PublicKey)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestParseObjectIsStrictAboutKnownFieldsOnly has the rules of JSON.
func TestParseEnvelopeChecksFields(t *testing.T) {
	const subject, id, at, version = `"subject": "`, `"message_id": "`, `2024-07-10T10:01:03Z`, `"v1"`
	nested := strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)
	body := string(example(t, "notification_alarm.json"))
	for name, tc := range map[string]struct {
		old, replacement string
		accepted         bool
	}{
		"signature version in capitals":        {version, `"V1"`, true},
		"signature version v2":                 {version, `"v2"`, false},
		"signature version 1":                  {version, `"1"`, false},
		"empty signature version":              {version, `""`, false},
		"signature version with a space":       {version, `"v1 "`, false},
		"unknown key with a nested value":      {`"type"`, `"new": {"a": [1, null, {"b": true}]}, "type"`, true},
		"unknown key with a value too deep":    {`"type"`, `"new": ` + nested + `, "type"`, false},
		"unknown key with a Kelvin sign":       {`"type"`, `"to\u212aen": "x", "type"`, true},
		"message with a long s beside message": {`"type"`, `"meſſage": "x", "type"`, false},
		"key in capitals instead of its form":  {`"type"`, `"TYPE"`, false},
		"key twice, once escaped":              {`"type"`, `"t\u0079pe": "Notification", "type"`, false},
		"no topic":                             {`"topic_urn"`, `"topic"`, false},
		"null for a required field":            {version, `null`, false},
		"null for a subject":                   {`"subject": "`, `"subject": null, "x": "`, true},
		"NUL in the id":                        {id, id + `\u0000`, false},
		"U+2028 in the topic":                  {`"urn:smn`, `"\u2028urn:smn`, false},
		"line feed in the topic":               {`"urn:smn`, `"urn:smn\nx`, false},
		"line feed in the timestamp":           {at, at + `\n`, false},
		"a type of 100 KB":                     {`"Notification"`, `"` + strings.Repeat("x", 100000) + `"`, false},
		"the 13th month":                       {at, `2024-13-10T10:01:03Z`, false},
		"another time zone":                    {at, `2024-07-10T10:01:03+00:00`, false},
		"a fraction of a second":               {at, `2024-07-10T10:01:03.0Z`, true},
		"a fraction without a digit":           {at, `2024-07-10T10:01:03.Z`, false},
		"line feed in the subject":             {subject, subject + `a\nb`, false},
		"escape sequence in the subject":       {subject, subject + `\u001b[31m`, false},
		"U+2028 in the subject":                {subject, subject + `\u2028`, true},
		"half a surrogate pair in the subject": {subject, subject + `\ud800`, false},
		"bad UTF-8 in the subject":             {subject, subject + "\xff", false},
		"a subject of 100 KB":                  {subject, subject + strings.Repeat("x", 100000), false},
		"a confirmation without subscribe_url": {`"Notification"`, `"SubscriptionConfirmation"`, false},
	} {
		if !strings.Contains(body, tc.old) {
			t.Fatalf("the example has no %q", tc.old)
		}
		_, err := ParseEnvelope([]byte(strings.Replace(body, tc.old, tc.replacement, 1)))
		if errors.Is(err, ErrMalformed) == tc.accepted || (err == nil) != tc.accepted {
			t.Errorf("%s: %v, want accepted: %t", name, err, tc.accepted)
		}
	}
}

// FuzzAlarm has the other examples.
func TestParseAlarmReadsTheValueOfTheExampleAndRefusesTheTemplate(t *testing.T) {
	e, err := ParseEnvelope(example(t, "notification_alarm.json"))
	must(t, err)
	if a, err := ParseAlarm(e.Message); err != nil || a.Value != 91.37 || a.ValueTime.UnixMilli() != 1720605600000 {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := ParseAlarm(string(example(t, "template_v1_alarm.json"))); !errors.Is(err, ErrUnreadable) {
		t.Errorf("the template schema: %v, want ErrUnreadable", err)
	}
}

func TestParseAlarmRefuses(t *testing.T) {
	e, err := ParseEnvelope(example(t, "notification_alarm.json"))
	must(t, err)
	for name, change := range map[string][2]string{
		"a string for a number":   {`1720605661184`, `"1720605661184"`},
		"a time of long ago":      {`1720605661184`, `1720605661`},
		"no rule":                 {`"alarm_id"`, `"alarm"`},
		"another form of rule":    {`al1700000000000AbCdEfGhI",`, `../x",`},
		"a dimension without end": {`rds_instance_id:`, `rds_instance_id`},
		"a path in a dimension":   {`rds_instance_id:`, `rds_instance_id:../`},
		"a key twice":             {`"alarm_status"`, `"alarm_status":"ok","alarm_status"`},
		"another case":            {`"alarm_status"`, `"Alarm_Status"`},
		"not an object":           {`{"message_type"`, `[{"message_type"`},
		"10001 deep":              {`"message_type"`, `"x":` + strings.Repeat("[", 10001) + strings.Repeat("]", 10001) + `,"message_type"`},
	} {
		if !strings.Contains(e.Message, change[0]) {
			t.Fatalf("%s: the example has no %q", name, change[0])
		}
		if _, err := ParseAlarm(strings.Replace(e.Message, change[0], change[1], 1)); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %v, want ErrUnreadable", name, err)
		}
	}
}

// The inputs are valid JSON that other readers judge differently. FuzzObject has the invalid ones.
func TestParseObjectIsStrictAboutKnownFieldsOnly(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for input, accepted := range map[string]bool{
		`{"a":"x"}`:                    true,
		`{"a":"x","a":"x"}`:            false,
		`{"a":"x","\u0061":"x"}`:       false,
		`{"a":"x","A":1}`:              false,
		`{"a":"x","b":1,"b":2}`:        true,
		`{"a":"x","b":{"c":1,"c":2}}`:  true,
		`{"a":"x","b":"\ud800"}`:       true,
		`{"a":"x","\udc00":1}`:         true,
		`{"a":"\ud800"}`:               false,
		`{"a":"\udc00\ud800"}`:         false,
		`{"a":"\ufffd"}`:               true,
		`{"a":"\ud83d\ude00"}`:         true,
		`{"a":"\u0000"}`:               true,
		"{\"a\":\"\x7f\"}":             true,
		"{\"a\":\"x\",\"b\":\"\xff\"}": false,
		"{\"a\":\"\xed\xa0\x80\"}":     false,
		`{"a":1}`:                      false,
		`{"a":null}`:                   false,
		`{"a":"x","b":` + strings.Repeat("9", 9999) + `}`: true,
		`{"a":"x","b":` + nested(maxDepth-1) + `}`:        true,
		`{"a":"x","b":` + nested(maxDepth) + `}`:          false,
		`{"a":"x","b":` + nested(20000) + `}`:             false,
		`{"a":"x","b":[{},{"c":` + nested(5) + `}]}`:      true,
		`{"a":"x","b":[{},{"c":` + nested(6) + `}]}`:      false,
	} {
		found, err := parseObject([]byte(input), "a")
		if err == nil {
			_, err = parseString(found["a"])
		}
		if (err == nil) != accepted {
			t.Errorf("%.60q: %v, want accepted: %t", input, err, accepted)
		}
	}
}
