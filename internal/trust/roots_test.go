// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestChangedFileIsTrustedWithoutRestart(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	server.Config.ErrorLog = nil
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	other := selfSigned(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, other, 0o600); err != nil {
		t.Fatal(err)
	}
	roots, err := File(file)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: NewTransport(&http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}, roots)}
	for _, step := range []struct {
		what    string
		content []byte
		trusted bool
		says    string
	}{
		{"another authority", other, false, ""},
		{"the server's", authority, true, ""},
		{"half of a file: the last one is kept", authority[:40], true, ""},
		{"another authority again", other, false, ""},
		{"half of a file: the reason is named", authority[:40], false, "contains no certificate"},
	} {
		if err := os.WriteFile(file, step.content, 0o600); err != nil {
			t.Fatal(err)
		}
		resp, err := client.Get(server.URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
		if step.trusted != (err == nil) || unverified == step.trusted || err != nil && !strings.Contains(err.Error(), step.says) {
			t.Errorf("%s: %v", step.what, err)
		}
	}
}

func TestFileWithoutCertificateIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	if _, err := File(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(file, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := File(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("no certificate: %v", err)
	}
}

// selfSigned returns the PEM of a certificate that no server of the test has.
func selfSigned(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
