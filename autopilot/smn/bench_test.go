// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"testing"
)

// BenchmarkSignature is the floor of BenchmarkEnvelope: one signature of RSA-2048.
func BenchmarkSignature(b *testing.B) {
	e, err := ParseEnvelope(example(b, "notification_alarm.json"))
	if err != nil {
		b.Fatal(err)
	}
	key := exampleKey(b)
	signature, err := e.signatureBytes()
	if err != nil {
		b.Fatal(err)
	}
	digest := sha256.Sum256(e.SigningString())
	for b.Loop() {
		if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEnvelope(b *testing.B) {
	body, key := example(b, "notification_alarm.json"), exampleKey(b)
	b.ReportAllocs()
	for b.Loop() {
		e, err := ParseEnvelope(body)
		if err == nil {
			err = e.Verify(key)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
