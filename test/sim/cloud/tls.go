// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// validity is wide, because tests set the clock to whatever suits them.
func validity() (from, to time.Time) {
	return time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
}

func serial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// newTLS makes a certificate authority and a certificate of it for loopback.
func newTLS() (caPEM []byte, config *tls.Config, err error) {
	from, to := validity()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make CA key: %w", err)
	}
	caSerial, err := serial()
	if err != nil {
		return nil, nil, fmt.Errorf("make CA serial: %w", err)
	}
	ca := &x509.Certificate{
		SerialNumber: caSerial, Subject: pkix.Name{CommonName: "simulated cloud CA"},
		NotBefore: from, NotAfter: to, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, nil, fmt.Errorf("make CA: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make server key: %w", err)
	}
	leafSerial, err := serial()
	if err != nil {
		return nil, nil, fmt.Errorf("make server serial: %w", err)
	}
	leaf := &x509.Certificate{
		SerialNumber: leafSerial, Subject: pkix.Name{CommonName: "localhost"},
		NotBefore: from, NotAfter: to, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return nil, nil, fmt.Errorf("make server certificate: %w", err)
	}
	return certPEM(caDER), &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}, nil
}

// signingCert is the certificate of an RSA key. It chains to nothing: what issues SMN's is not documented.
func signingCert(key *rsa.PrivateKey, from, to time.Time) ([]byte, error) {
	n, err := serial()
	if err != nil {
		return nil, fmt.Errorf("make signing serial: %w", err)
	}
	cert := &x509.Certificate{
		SerialNumber: n, Subject: pkix.Name{CommonName: "simulated SMN"},
		NotBefore: from, NotAfter: to, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make signing certificate: %w", err)
	}
	return certPEM(der), nil
}
