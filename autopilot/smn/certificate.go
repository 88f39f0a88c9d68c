// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// CertURL checks where a message says its certificate is: https, a host that is configured to the byte, and SMN's form
// of path, matched whole: what is fetched consists of nothing but parts that were compared or spelled out here. Matching
// by suffix would let a bucket named "smn" serve the certificate. It returns ErrForged.
func CertURL(url string, hosts []string) error {
	for _, host := range hosts {
		rest, https := strings.CutPrefix(url, "https://")
		rest, ours := strings.CutPrefix(rest, host)
		name, ok := strings.CutPrefix(rest, "/smn/SMN_")
		if https && ours && ok && isCertName(name) {
			return nil
		}
	}
	return fmt.Errorf("%w: the certificate URL is not SMN's on one of the configured hosts (--smn-cert-hosts) %v", ErrForged, hosts)
}

// isCertName reports whether the rest of the path is <region>_<32 hex digits>.pem and nothing more.
func isCertName(s string) bool {
	region, id, ok := strings.Cut(s, "_")
	id, pem := strings.CutSuffix(id, ".pem")
	return ok && pem && hasForm(id, 32, 32, hex) && hasForm(region, 1, 32, lower+digits+"-")
}

// ParseCertificate reads the first PEM block of a file, which is the signer's certificate; what follows, such as its
// issuers, is ignored, as in SMN's own samples. Its key must be RSA and strong enough. Whether it is within its dates is
// asked at each use: see Current.
func ParseCertificate(data []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, errors.New("no PEM block")
	case bytes.Count(data[:len(data)-len(rest)], []byte("-----BEGIN")) != 1: // pem.Decode skips a broken one
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

// Current returns an error unless the certificate is within its dates.
func Current(cert *x509.Certificate, now time.Time) error {
	if now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return fmt.Errorf("the certificate is valid from %s to %s only",
			cert.NotBefore.Format(time.RFC3339), cert.NotAfter.Format(time.RFC3339))
	}
	return nil
}
