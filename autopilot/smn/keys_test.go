// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"
)

// signer signs messages as SMN does.
type signer struct {
	key  *rsa.PrivateKey
	cert []byte
}

// signingKey is generated once, because that takes longer than most tests.
var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newSigner(t *testing.T, from, to time.Time) signer {
	t.Helper()
	key, err := signingKey()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "SMN"}, NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (s signer) sign(t *testing.T, e Envelope) Envelope {
	t.Helper()
	digest := sha256.Sum256(e.SigningString())
	sig, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	e.Signature = base64.StdEncoding.EncodeToString(sig)
	return e
}

func TestDialRefusesAddressesThatAreNotPublic(t *testing.T) {
	d := dialer{Fixed("smn.eu-de.otc.t-systems.com", "127.0.0.1:8443", "10.1.2.3", "localhost:8443")}
	const public = "smn.eu-de.otc.t-systems.com:443"
	// 64:ff9b::/96 is NAT64, by which a network with IPv6 only reaches SMN.
	for _, address := range []string{
		"80.158.1.1", "100.125.1.1", "[2003:2:4::1]", "[64:ff9b::100.125.1.1]", "[64:ff9b::80.158.1.1]",
	} {
		if err := d.checkAddress(public, address+":443"); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{
		"100.64.0.1", "100.100.100.200", "0.1.2.3", "240.0.0.1", "[::ffff:10.0.0.1]", "[::7f00:1]",
		"[2002:7f00:1::]", "[2001:0:1::1]", "[fd00:ec2::254]", "127.0.0.1", "10.1.2.3", "169.254.169.254",
		"[::ffff:127.0.0.1]", "[::1]", "[fe80::1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "0.0.0.0",
	} {
		if d.checkAddress(public, address+":443") == nil {
			t.Errorf("%s is allowed", address)
		}
	}
	for _, tc := range []struct {
		asked, resolved string
		ok              bool
	}{
		{"127.0.0.1:8443", "127.0.0.1:8443", true},
		{"127.0.0.1:8444", "127.0.0.1:8444", false},
		{"10.1.2.3:443", "10.1.2.3:443", true}, // a configured private address
		{"10.1.2.3:443", "10.1.2.4:443", false},
		{"localhost:8443", "[::1]:8443", true},
		{"localhost:8443", "10.1.2.3:8443", false},
	} {
		if err := d.checkAddress(tc.asked, tc.resolved); (err == nil) != tc.ok {
			t.Errorf("%s at %s: %v, want allowed %t", tc.asked, tc.resolved, err, tc.ok)
		}
	}
}

// verify checks the URL, certificate and signature of a message, as the receiver does.
func verify(ctx context.Context, keys *Keys, e Envelope, signedBefore bool) error {
	if err := keys.CheckURL(e.CertURL); err != nil {
		return err
	}
	key, err := keys.Key(ctx, e.CertURL, signedBefore)
	if err != nil {
		return err
	}
	return e.Verify(key)
}
