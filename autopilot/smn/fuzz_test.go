// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// An accepted body has one meaning: the lenient encoding/json reads the same fields, and so does ParseEnvelope after
// they are encoded again.
func FuzzEnvelope(f *testing.F) {
	for _, name := range []string{"notification_alarm.json", "notification_ok.json", "subscription_confirmation.json", "unsubscribe_confirmation.json"} {
		f.Add(example(f, name))
	}
	twice := bytes.Replace(example(f, "notification_alarm.json"), []byte(`"type":`), []byte(`"message": "other", "type":`), 1)
	f.Add(twice)
	f.Add([]byte(`{"type": "HttpSubscriptionUserConfirm", "topic_urn": "whatever"}`))
	f.Add([]byte(`{"type":"Notification","TYPE":"x","meſſage":"y","x":[[[[[[[[1]]]]]]]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := ParseEnvelope(body)
		if err != nil {
			if !cmp.Equal(e, Envelope{}) {
				t.Fatalf("refused, and yet %+v", e)
			}
			return
		}
		seen := map[string]int{}
		for _, key := range keysOf(t, body) {
			for _, k := range envelopeKeys() {
				if strings.EqualFold(k, key) {
					seen[k]++
				}
			}
		}
		for k, n := range seen {
			if n != 1 {
				t.Fatalf("accepted with %d keys that a lenient reader takes for %q", n, k)
			}
		}
		var lenient struct {
			Type         string
			TopicURN     string `json:"topic_urn"`
			Message      string
			ID           string `json:"message_id"`
			Subject      string
			Timestamp    string
			Signature    string
			CertURL      string `json:"signing_cert_url"`
			SubscribeURL string `json:"subscribe_url"`
		}
		if err := json.Unmarshal(body, &lenient); err != nil {
			t.Fatalf("accepted, but not by encoding/json: %v", err)
		}
		if lenient.Type != string(e.Type) {
			t.Fatalf("two types of one body: %q and %q", e.Type, lenient.Type)
		}
		if !e.Type.Known() {
			if !cmp.Equal(e, Envelope{Type: e.Type}) {
				t.Fatalf("more than the type was read of an unknown one: %+v", e)
			}
			return
		}
		again := map[string]string{
			keyType: lenient.Type, keyTopicURN: lenient.TopicURN, keyMessage: lenient.Message, keyMessageID: lenient.ID, keyTimestamp: lenient.Timestamp,
			keySignature: lenient.Signature, keyCertURL: lenient.CertURL, keyVersion: "v1",
		}
		if e.HasSubject {
			again[keySubject] = lenient.Subject
		}
		if e.Type != TypeNotification {
			again[keySubscribeURL] = lenient.SubscribeURL
		}
		written, err := json.Marshal(again)
		must(t, err)
		reread, err := ParseEnvelope(written)
		if diff := cmp.Diff(e, reread); err != nil || diff != "" {
			t.Fatalf("two readings of one body, %v:\n%s", err, diff)
		}
		for _, s := range []string{e.MessageID, e.TopicURN, e.Subject, e.Timestamp, e.SubscribeURL} {
			if strings.ContainsFunc(s, unicode.IsControl) {
				t.Fatalf("a control character outside the message: %q", s)
			}
		}
	})
}

// keysOf returns the keys of an object in their order, with repetitions.
func keysOf(t *testing.T, body []byte) []string {
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for dec.More() {
		key, err := dec.Token()
		must(t, err)
		keys = append(keys, key.(string))
		must(t, dec.Decode(new(json.RawMessage)))
	}
	return keys
}

// No two accepted sets of fields have the same signed bytes, because the fields can be read back from the bytes. An
// absent subject equals an empty one.
func FuzzSigningStringHasOneCut(f *testing.F) {
	const id, topic, at, link = "0123456789abcdef0123456789abcdef", "urn:smn:eu-de:0123456789abcdef0123456789abcdef:t", "2024-07-10T10:01:03Z", "https://c/?t=1"
	f.Add("Notification", "a message", id, "a subject", true, at, topic, "")
	f.Add("Notification", "x\nmessage_id\n"+id+"\ntimestamp\n"+at, id, "", true, at, topic, "")
	f.Add("Notification", "x\nsubject\ny", id, "z", true, at, topic, "")
	f.Add("Notification", "x", id, "s\ntimestamp\n"+at, true, at, topic, "")
	f.Add("Notification", "x", id, "s", true, at, topic+"\ntype\nNotification\n", "")
	f.Add("Notification", "x", id+"\nsubject\ny", "", false, at, topic, "")
	f.Add("Notification\nx", "x", id, "", false, at, topic, "")
	f.Add("Notification", "x", id, "", false, at+"\ntopic_urn\n"+topic, topic, "")
	f.Add("SubscriptionConfirmation", "a\nsubscribe_url\n"+link, id, "", false, at, topic, link)
	f.Add("SubscriptionConfirmation", "a", id, "s", true, at, topic, link)
	f.Add("UnsubscribeConfirmation", "a", id, "", false, at, topic, link+"\ntimestamp\n"+at)
	f.Fuzz(func(t *testing.T, typ, message, id, subject string, hasSubject bool, at, topic, link string) {
		fields := map[string]string{
			keyType: typ, keyMessage: message, keyMessageID: id, keyTimestamp: at, keyTopicURN: topic,
			keySignature: "", keyVersion: "v1", keyCertURL: "",
		}
		if hasSubject {
			fields[keySubject] = subject
		}
		if link != "" {
			fields[keySubscribeURL] = link
		}
		body, err := json.Marshal(fields)
		if err != nil {
			t.Skip()
		}
		e, err := ParseEnvelope(body)
		if err != nil || !e.Type.Known() {
			return
		}
		want := map[string]string{
			keyType: string(e.Type), keyMessage: e.Message, keyMessageID: e.MessageID, keyTimestamp: e.Timestamp, keyTopicURN: e.TopicURN,
		}
		if e.Type != TypeNotification {
			want[keySubscribeURL] = e.SubscribeURL
		}
		framed := maps.Clone(want)
		framed[keySubject] = e.Subject
		if e.Type == TypeNotification && e.Subject != "" { // elsewhere it is not signed
			want = framed
		}
		if diff := cmp.Diff(want, fieldsOf(e.SigningString())); diff != "" {
			t.Fatalf("the signed bytes have other fields:\n%s", diff)
		}
		if e.Type == TypeNotification && e.HasSubject { // an empty subject may also be signed
			if diff := cmp.Diff(framed, fieldsOf(e.signingString(true))); diff != "" {
				t.Fatalf("the signed bytes with a subject have other fields:\n%s", diff)
			}
		}
	})
}

// fieldsOf reads the fields of signed bytes line by line from the end, where no value has a line feed. The rest is the
// message.
func fieldsOf(signed []byte) map[string]string {
	lines := strings.Split(strings.TrimSuffix(string(signed), "\n"), "\n")
	fields := map[string]string{}
	for len(lines) >= 2 {
		key, value := lines[len(lines)-2], lines[len(lines)-1]
		lines = lines[:len(lines)-2]
		fields[key] = value
		if key == keyMessageID {
			break
		}
	}
	if len(lines) > 0 && lines[0] == keyMessage {
		fields[keyMessage] = strings.Join(lines[1:], "\n")
	}
	return fields
}

// Every field of an accepted alarm has its form, and encoding/json reads the same. Only the status is changed to lower
// case.
func FuzzAlarm(f *testing.F) {
	f.Add(string(example(f, "legacy_extended_ok_pretty.json")))
	f.Add(string(example(f, "template_v1_alarm.json")))
	for _, name := range []string{"notification_alarm.json", "notification_alarm_pg_instance_level.json"} {
		e, err := ParseEnvelope(example(f, name))
		must(f, err)
		f.Add(e.Message)
	}
	f.Add(`{"alarm_id":"al1","alarm_status":"ok","namespace":"N","metric_name":"m","dimension":"a:b,c:d","time":1720605661184,"alarmValue":[{"time":1720605661184,"value":1e308}]}`)
	f.Add(`{"alarm_id":"al1","alarm_status":"ok","namespace":"N","metric_name":"m","dimension":"a:b","time":1720605661184,"alarmValue":[{"time":1720605661184,"value":1},{"time":1720605601184,"value":2}]}`)
	f.Add(`{"alarm_id":"al1","alarm_status":"ok","namespace":"N","metric_name":"m","dimension":"a:b","time":1720605661184,"alarmValue":[{"time":1720605661184,"value":null}]}`)
	f.Add(`{"alarm_id":"al1","alarm_status":"ok","namespace":"N","metric_name":"m","dimension":"a:b","time":1720605661184,"alarmValue":"93.1"}`)
	f.Add(`{"alarm_id":"al1","alarm_status":"ok","namespace":"N","metric_name":"m","dimension":"a:b","time":1720605661184,"alarmValue":[{"time":1720605661184,"value":1},{"time":1,"value":2}]}`)
	f.Add(`{"alarm_id":"al1","alarm_status":"OK","namespace":"N","metric_name":"m","dimension":"a:b","time":1720605661184}`)
	f.Fuzz(func(t *testing.T, message string) {
		a, err := ParseAlarm(message)
		if err != nil {
			return
		}
		var lenient struct {
			ID        string `json:"alarm_id"`
			Status    string `json:"alarm_status"`
			Namespace string
			Metric    string `json:"metric_name"`
			Dimension string
			Time      int64
			Values    json.RawMessage `json:"alarmValue"`
		}
		if err := json.Unmarshal([]byte(message), &lenient); err != nil {
			t.Fatalf("accepted, but not by encoding/json: %v", err)
		}
		if lenient.ID != a.ID || strings.ToLower(lenient.Status) != a.Status || lenient.Namespace != a.Namespace || lenient.Metric != a.Metric || lenient.Time != a.Time.UnixMilli() {
			t.Fatalf("two readings of one alarm: %+v and %+v", a, lenient)
		}
		var dims []string
		for _, d := range a.Dimensions {
			dims = append(dims, d.Name+":"+d.Value)
		}
		if strings.Join(dims, ",") != lenient.Dimension || len(dims) == 0 {
			t.Fatalf("dimensions %q of %q", dims, lenient.Dimension)
		}
		if a.ID == "" || a.Time.UnixMilli() < minMilli || a.Time.UnixMilli() > maxMilli || math.IsNaN(a.Value) || a.Value < 0 || a.Value > maxValue {
			t.Fatalf("accepted %+v", a)
		}
		checkValue(t, a, lenient.Values)
		for _, s := range []string{a.ID, a.Status, a.Namespace, a.Metric, lenient.Dimension} {
			if strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) || unicode.IsSpace(r) }) {
				t.Fatalf("accepted %q", s)
			}
		}
	})
}

// checkValue fails unless the value is that of the newest datapoint. There must be none if any datapoint is out of
// range.
func checkValue(t *testing.T, a Alarm, raw json.RawMessage) {
	t.Helper()
	var points []map[string]any
	if json.Unmarshal(raw, &points) != nil {
		points = nil
	}
	newest, value := int64(math.MinInt64), 0.0
	for _, p := range points {
		at, isTime := p["time"].(float64)
		v, isNumber := p["value"].(float64)
		if !isTime || !isNumber || at < minMilli || at > maxMilli || v < 0 || v > maxValue {
			if !a.ValueTime.IsZero() {
				t.Fatalf("a value of %v although a datapoint is invalid: %s", a.Value, raw)
			}
			return
		}
		if int64(at) > newest {
			newest, value = int64(at), v
		}
	}
	switch {
	case a.ValueTime.IsZero():
		if a.Value != 0 {
			t.Fatalf("a value without a time: %v", a.Value)
		}
	case len(points) == 0 || newest != a.ValueTime.UnixMilli() || value != a.Value:
		t.Fatalf("the datapoint is %v of %v, the newest of %s is %v of %d", a.Value, a.ValueTime, raw, value, newest)
	}
}

// An accepted certificate is the whole first block of the file, whatever follows it.
func FuzzCertificate(f *testing.F) {
	good := example(f, "throwaway_cert.pem")
	block, _ := pem.Decode(good)
	f.Add(good)
	f.Add(bytes.TrimSpace(good))
	f.Add(block.Bytes)
	f.Add(append([]byte("x\n"), good...))
	f.Add(append(bytes.Clone(good), good...))
	f.Add(append(bytes.Clone(good), "-----BEGIN CERTIFICATE-----\n!\n"...))
	f.Add(append([]byte("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"), good...))
	f.Add(append([]byte("-----BEGIN CERTIFICATE-----\n"), good...))
	f.Add(append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: block.Bytes}), good...))
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"X": "y"}, Bytes: block.Bytes}))
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: block.Bytes}))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cert, err := ParseCertificate(data)
		if err != nil {
			if cert != nil {
				t.Fatal("an error and a certificate")
			}
			return
		}
		key, ok := cert.PublicKey.(*rsa.PublicKey)
		if !ok || key.N.BitLen() < minKeyBits {
			t.Fatalf("accepted a key of type %T", cert.PublicKey)
		}
		// The test reads the base64 between the first two marks itself.
		_, first, _ := strings.Cut(string(data), "-----BEGIN ")
		first, _, _ = strings.Cut(first, "-----END CERTIFICATE-----")
		kind, body, _ := strings.Cut(first, "-----")
		body = strings.Join(strings.Fields(body), "")
		if kind != "CERTIFICATE" || body != base64.StdEncoding.EncodeToString(cert.Raw) {
			t.Fatalf("it is not the first block, a %s", kind)
		}
		for _, tail := range [][]byte{append([]byte("\n"), good...), []byte("\n-----BEGIN CERTIFICATE-----\n!"), []byte("\nx")} {
			with, err := ParseCertificate(append(bytes.Clone(data), tail...))
			if err != nil || !with.Equal(cert) {
				t.Fatalf("it differs if %.30q follows: %v", tail, err)
			}
		}
	})
}

// An accepted URL leads to a file of SMN's on the configured host, for every reader of URLs. Only the first three seeds do.
func FuzzCertURL(f *testing.F) {
	const host, p = "smn.eu-de.otc.t-systems.com", "/smn/SMN_eu-de_0f1e2d3c4b5a69788796a5b4c3d2e1f0.pem"
	for _, url := range []string{
		"https://" + host + p, "https://" + host + ":443" + p, "https://" + strings.ToUpper(host) + p,
		"https://" + host + "@evil.example" + p, "https://user@" + host + p, "https://user:password@" + host + p,
		"https://evil.example#@" + host + p, "https://evil.example?@" + host + p, `https://evil.example\@` + host + p,
		"https://" + host + ":8443" + p, "https://" + host + "." + p, "https://" + host + ".evil.example" + p,
		"https://x." + host + p, "https://evil-" + host + p, "https://smn.eu-de.otс.t-systems.com" + p,
		"https://smn。eu-de.otc.t-systems.com" + p, "https://smn%2eeu-de.otc.t-systems.com" + p, "https://[::1]" + p, "https://" + host + "\n" + p,
		"https://" + host + "\x00" + p, "https://smn.obs.eu-de.otc.t-systems.com" + p, "https://obs.eu-de.otc.t-systems.com/smn" + p,
		"http://" + host + p, "//" + host + p, "file://" + host + p, "https:" + host + p, "https:/" + host + p, "HTTPS://" + host + p, "",
		"https://" + host + "/smn/../smn" + p[4:], "https://" + host + "/smn/%2e%2e" + p, "https://" + host + "/smn%2f" + p[5:],
		"https://" + host + "/" + p, "https://" + host + "/bucket" + p, "https://" + host + p + "?redirect=x", "https://" + host + p + "?",
		"https://" + host + p + "#", "https://" + host + p + ";x", "https://" + host + "/smn/SMN_eu-de_0f1e.pem", "https://" + host + p + "\n",
	} {
		f.Add(url)
	}
	path := regexp.MustCompile(`\A/smn/SMN_[a-z0-9-]{1,32}_[0-9a-f]{32}\.pem\z`)
	f.Fuzz(func(t *testing.T, raw string) {
		err := CertURL(raw, []string{host})
		if err != nil {
			if slices.Contains([]string{"https://" + host + p, "https://" + host + ":443" + p, "https://" + strings.ToUpper(host) + p}, raw) || !errors.Is(err, ErrForged) {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		u, err := url.Parse(raw)
		must(t, err)
		if u.Scheme != "https" || Host(u.Host) != host || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || !path.MatchString(u.Path) || u.String() != raw {
			t.Fatalf("accepted %q", raw)
		}
	})
}

// parseObject accepts what encoding/json accepts as an object, except for its own rules, and reads the same strings.
func FuzzObject(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-0.5e+7,true,false,null,"\u00e9\n\/",{}],"b":{}}`, `{"a":[[[[[[[1]]]]]]]}`,
		`{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"b":"\ud83d"}`, `{"a":-}`, `{"a":nul}`, `{"a":[1,]}`, `{,}`,
		``, ` `, `{"a"}`, `{"é":"é"}`, `{"a":"x"}{}`, `{"a":"x"} null`, `{"a":"x"},`, `{"a":"x"`, `{"a":"x",}`,
		`{,"a":"x"}`, `{"a" "x"}`, `{"a":"x" "b":1}`, `{a:"x"}`, `{'a':"x"}`, `{"a":"x"/**/}`, `[{"a":"x"}]`,
		"\xef\xbb\xbf{\"a\":\"x\"}", "\u00a0{\"a\":\"x\"}", "{\"a\":\"x\"}\x00", "{\"a\":\"\x00\"}",
		"{\"a\":\"\t\"}", `{"a":"\x41"}`, `{"a":"\u12"}`, `{"a":"x","b":01}`, `{"a":"x","b":1.}`,
		`{"a":"x","b":+1}`, `{"a":"x","b":NaN}`, `{"a":"x","b":-0.5e+7}`, `{"a":"x","b":1e999999}`,
		" \t\r\n{ \"a\" : \"x\" } \t\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := parseObject(data, "a")
		var lenient map[string]json.RawMessage
		valid := json.Unmarshal(data, &lenient) == nil && lenient != nil
		if err == nil && !valid {
			t.Fatal("accepted, but not by encoding/json")
		}
		if err != nil {
			own := errors.Is(err, errDepth) || strings.HasPrefix(err.Error(), "key ") || strings.HasPrefix(err.Error(), "a key ") || !utf8.Valid(data)
			if valid && !own {
				t.Fatalf("%v, but encoding/json accepts it", err)
			}
			return
		}
		if !bytes.Equal(found["a"], lenient["a"]) {
			t.Fatalf("the field is %q, want %q", found["a"], lenient["a"])
		}
		var want string
		read, err := parseString(found["a"])
		if json.Unmarshal(found["a"], &want) != nil {
			want = ""
		}
		if read != want && (err == nil || !strings.Contains(want, "\ufffd")) {
			t.Fatalf("read %q (%v), want %q", read, err, want)
		}
	})
}
