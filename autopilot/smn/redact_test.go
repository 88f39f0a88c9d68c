// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"strings"
	"testing"
)

func TestRedactKeepsNothingToActWith(t *testing.T) {
	for _, name := range []string{"notification_alarm", "subscription_confirmation", "unsubscribe_confirmation"} {
		t.Run(name, func(t *testing.T) {
			before, err := ParseEnvelope(example(t, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			kept := Redact(example(t, name+".json"))
			after, err := ParseEnvelope([]byte(kept))
			if err != nil {
				t.Fatalf("%v: %s", err, kept)
			}
			if strings.Contains(kept, before.Signature) || after.Signature != cutOut {
				t.Errorf("the signature is in %s", kept)
			}
			if _, token, found := strings.Cut(before.SubscribeURL, "token="); found {
				token, _, _ = strings.Cut(token, "&")
				if token == "" || strings.Contains(kept, token) {
					t.Errorf("the token is in %s", kept)
				}
			}
			if after.Message != before.Message || after.TopicURN != before.TopicURN || after.CertURL != before.CertURL || after.Timestamp != before.Timestamp {
				t.Errorf("more than that is gone: %s", kept)
			}
		})
	}
	for _, body := range []string{"", "no JSON", `["a"]`, `"a"`} {
		if kept := Redact([]byte(body)); kept != "" {
			t.Errorf("%q is kept as %q", body, kept)
		}
	}
	if kept := Redact([]byte(`{"unsubscribe_url":"https://user:secret@host/x?a=secret#secret","subscribe_url":"%zz secret","signature":{"x":"secret"}}`)); strings.Contains(kept, "secret") {
		t.Errorf("kept %s", kept)
	}
}

func TestDescribeSignatureAcceptsNothing(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseEnvelope(example(t, "notification_alarm.json"))
	if err != nil {
		t.Fatal(err)
	}
	text := e.SigningString()
	for _, tc := range []struct {
		hash crypto.Hash
		text []byte
		says string
	}{
		{crypto.SHA256, text[:len(text)-1], "it is signed without the line feed at the end"},
		{crypto.SHA512, text, "it is signed with SHA-512"},
		{crypto.SHA384, text, "it is signed with SHA-384"},
		{crypto.SHA256, text[1:], ""},
	} {
		h := tc.hash.New()
		h.Write(tc.text)
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, tc.hash, h.Sum(nil))
		if err != nil {
			t.Fatal(err)
		}
		e.Signature = base64.StdEncoding.EncodeToString(signature)
		if err := e.Verify(&key.PublicKey); err == nil {
			t.Errorf("%s is accepted", tc.says)
		}
		if got := e.DescribeSignature(&key.PublicKey); got != tc.says {
			t.Errorf("it says %q, want %q", got, tc.says)
		}
	}
}
