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

func TestExamplesOfTheManualAreVerified(t *testing.T) {
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

// Attack table A of autopilot/webhook and TestParseObjectIsStrictAboutKnownFieldsOnly have the other cases.
func TestParseEnvelopeChecksFields(t *testing.T) {
	for name, tc := range map[string]struct {
		body     []byte
		accepted bool
	}{
		"signature version in capitals":        {edit(t, `"v1"`, `"V1"`), true},
		"unknown key with a nested value":      {edit(t, `"type"`, `"new": {"a": [1, null, {"b": true}]}, "type"`), true},
		"no topic":                             {edit(t, `"topic_urn"`, `"topic"`), false},
		"null for a required field":            {edit(t, `"v1"`, `null`), false},
		"the 13th month":                       {edit(t, `2024-07-10T10:01:03Z`, `2024-13-10T10:01:03Z`), false},
		"a confirmation without subscribe_url": {edit(t, `"Notification"`, `"SubscriptionConfirmation"`), false},
	} {
		_, err := ParseEnvelope(tc.body)
		if errors.Is(err, ErrMalformed) == tc.accepted || (err == nil) != tc.accepted {
			t.Errorf("%s: %v, want accepted: %t", name, err, tc.accepted)
		}
	}
}

func TestParseEnvelopeReadsOnlyTheTypeWhenItIsUnknown(t *testing.T) {
	e, err := ParseEnvelope([]byte(`{"type": "HttpSubscriptionUserConfirm", "topic_urn": "whatever"}`))
	if err != nil || e.Type.Known() || e.TopicURN != "" {
		t.Fatalf("%+v, %v", e, err)
	}
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
