// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func verify(t *testing.T, e Envelope, certificate []byte) error {
	t.Helper()
	block, _ := pem.Decode(certificate)
	if block == nil {
		t.Fatal("no PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(e.Signature)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(e.SigningString()))
	return rsa.VerifyPKCS1v15(cert.PublicKey.(*rsa.PublicKey), crypto.SHA256, hash[:], signature)
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSigningStringMatchesTheExamples(t *testing.T) {
	for _, name := range []string{
		"notification_alarm", "notification_alarm_pg_instance_level", "notification_ok", "subscription_confirmation", "unsubscribe_confirmation",
	} {
		t.Run(name, func(t *testing.T) {
			var e Envelope
			if err := json.Unmarshal(readFile(t, name+".json"), &e); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(readFile(t, name+".signing-string.txt")), e.SigningString()); diff != "" {
				t.Error(diff)
			}
			if err := verify(t, e, readFile(t, "throwaway_cert.pem")); err != nil {
				t.Error(err)
			}
			var again Envelope
			if err := json.Unmarshal(e.JSON(), &again); err != nil || again != e {
				t.Errorf("the body does not read back: %v\n%s", err, e.JSON())
			}
		})
	}
}

func TestSignedEnvelopeVerifiesWithTheHostedCertificate(t *testing.T) {
	w := start(t, Options{})
	first := w.Sign(Envelope{TopicURN: "urn:smn:eu-de:" + hexID(32) + ":foreign", Subject: "ä", Message: "x"})
	if err := w.RotateSigningKey(); err != nil {
		t.Fatal(err)
	}
	second := w.Sign(Envelope{Type: TypeUnsubscribe, SubscribeURL: "https://example.com/", Message: "x"})
	want := regexp.MustCompile(`^https://` + regexp.QuoteMeta(w.CertHost()) + `/smn/SMN_eu-de_[0-9a-f]{32}\.pem$`)
	for name, e := range map[string]Envelope{"before rotation": first, "after rotation": second} {
		t.Run(name, func(t *testing.T) {
			if !want.MatchString(e.SigningCertURL) {
				t.Fatal(e.SigningCertURL)
			}
			status, cert := w.get(e.SigningCertURL)
			if status != 200 {
				t.Fatal(status)
			}
			if err := verify(t, e, cert); err != nil {
				t.Error(err)
			}
			e.Message += "."
			if verify(t, e, cert) == nil {
				t.Error("a changed message still verifies")
			}
		})
	}
	if first.SigningCertURL == second.SigningCertURL {
		t.Error("rotation kept the URL")
	}
	if status, _ := w.get("https://" + w.CertHost() + "/smn/SMN_eu-de_" + strings.Repeat("0", 32) + ".pem"); status != 404 {
		t.Errorf("unknown certificate: %d", status)
	}
	if w.Count("cert", "GetCertificate") != 3 {
		t.Errorf("%d fetches counted", w.Count("cert", "GetCertificate"))
	}
}
