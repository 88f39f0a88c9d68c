// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// CertURL returns ErrForged, with the failed check, unless the URL of a certificate is https, on exactly one of the
// hosts, and has SMN's form of path. Matching the host by suffix would let a storage bucket named "smn" serve the
// certificate. The error quotes nothing of the URL, because anyone can send one.
func CertURL(url string, hosts []string) error {
	rest, https := strings.CutPrefix(url, "https://")
	host, path, _ := strings.Cut(rest, "/")
	name, ok := strings.CutPrefix(path, "smn/SMN_")
	switch {
	case !https:
		return fmt.Errorf("%w: the certificate URL is not https", ErrForged)
	case !slices.Contains(hosts, Host(host)):
		return fmt.Errorf("%w: the host of the certificate URL is not one of --smn-cert-hosts %v", ErrForged, hosts)
	case !ok || !isCertName(name):
		return fmt.Errorf("%w: the host of the certificate URL is right, but its path is not /smn/SMN_REGION_ID.pem, the only known form",
			ErrForged)
	}
	return nil
}

func isCertName(s string) bool {
	region, id, ok := strings.Cut(s, "_")
	id, pem := strings.CutSuffix(id, ".pem")
	return ok && pem && hasForm(id, 32, 32, hex) && hasForm(region, 1, 32, lower+digits+"-")
}

// ParseCertificate reads the first PEM block of a file, which is the signer's certificate. It ignores the rest, such
// as the issuers, as SMN's own samples do. The key must be RSA and strong enough. Current checks the dates at each
// use.
func ParseCertificate(data []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, errors.New("no PEM block")
	case bytes.Count(data[:len(data)-len(rest)], []byte("-----BEGIN")) != 1: // pem.Decode skips broken blocks
		return nil, errors.New("the first PEM block is broken")
	case block.Type != "CERTIFICATE" || len(block.Headers) > 0:
		return nil, errors.New("the first PEM block is not a plain certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse certificate: %w", err)
	}
	key, ok := cert.PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("the certificate's key is not RSA")
	}
	if bits := key.N.BitLen(); bits < minKeyBits || bits > maxKeyBits {
		return nil, fmt.Errorf("the certificate's key has %d bits, want %d to %d", bits, minKeyBits, maxKeyBits)
	}
	return cert, nil
}

// Current returns an error unless now is within the dates of the certificate.
func Current(cert *x509.Certificate, now time.Time) error {
	if now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return fmt.Errorf("the certificate is valid from %s to %s only",
			cert.NotBefore.Format(time.RFC3339), cert.NotAfter.Format(time.RFC3339))
	}
	return nil
}
