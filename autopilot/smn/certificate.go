package smn

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// minKeyBits is the least RSA key that may sign.
const minKeyBits = 2048

// CertURL checks where a message says its certificate is: https, a host that is configured to the byte, and SMN's form
// of path. Nothing else is fetched. Matching by suffix would let a bucket named "smn" serve the certificate.
// It returns ErrForged.
func CertURL(url string, hosts []string) error {
	for _, host := range hosts {
		if path, ok := strings.CutPrefix(url, "https://"+host+"/smn/"); ok {
			if ok, err := regexp.MatchString(`^SMN_[a-z0-9-]{1,32}_[0-9a-f]{32}\.pem$`, path); err == nil && ok {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: the certificate URL is not SMN's on a configured host", ErrForged)
}

// ParseCertificate reads exactly one PEM certificate with an RSA key that is strong enough. Whether it is within its
// dates is asked at each use: see Current.
func ParseCertificate(data []byte) (*x509.Certificate, error) {
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, errors.New("no PEM block")
	case block.Type != "CERTIFICATE":
		return nil, errors.New("a PEM block that is no certificate")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("more than one certificate")
	case !bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN CERTIFICATE-----")):
		return nil, errors.New("text before the certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse certificate: %w", err)
	}
	key, ok := cert.PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, errors.New("the certificate's key is not RSA")
	}
	if bits := key.N.BitLen(); bits < minKeyBits {
		return nil, fmt.Errorf("the certificate's key has %d bits, fewer than %d", bits, minKeyBits)
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
