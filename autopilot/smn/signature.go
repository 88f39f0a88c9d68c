// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrForged reports that a message was not signed by the key at its URL, or that the URL is refused.
var ErrForged = errors.New("forged message")

// Limits of certificates. A message beyond them is neither authentic nor forged: Keys returns ErrUnavailable.
const (
	// certLimit is the largest certificate file in bytes. SMN's has 2 KB.
	certLimit = 64 << 10
	// certFetchLimit ends a fetch early enough for the receiver to answer within 4 s.
	certFetchLimit = 3 * time.Second
	// keyLife is the time after which a certificate is fetched again, even if it is still within its dates.
	keyLife = 24 * time.Hour
	// keyRetry is the pause after a failed fetch, so that a flood of messages does not become a flood of requests.
	keyRetry = 30 * time.Second
	// maxFirst limits the messages whose URL has not signed a stored message. The receiver has more connections, so these
	// cannot take all of them.
	maxFirst = 256
	// firstHold is the time for which each message that waits for such a fetch holds its place, longer than
	// certFetchLimit. It bounds these fetches to 64 per second on average, however fast the host answers.
	firstHold = 4 * time.Second
	// minKeyBits is the shortest RSA key. Shorter keys can be broken.
	minKeyBits = 2048
	// maxKeyBits is the longest RSA key. Longer keys cost too much to verify.
	maxKeyBits = 8192
)

// SigningString returns the exact text that SMN signs: the keys in alphabetical order, each followed by its value,
// with a line feed after each line (SMN umn: message_signature_verification.rst; docs/cloud-facts.md, Signature). It
// omits an empty subject.
func (e Envelope) SigningString() []byte { return e.signingString(e.Subject != "") }

func (e Envelope) signingString(withSubject bool) []byte {
	lines := append(make([]string, 0, 12), keyMessage, e.Message, keyMessageID, e.MessageID)
	if e.Type == TypeNotification {
		if withSubject {
			lines = append(lines, keySubject, e.Subject)
		}
	} else {
		lines = append(lines, keySubscribeURL, e.SubscribeURL)
	}
	lines = append(lines, keyTimestamp, e.Timestamp, keyTopicURN, e.TopicURN, keyType, string(e.Type))
	size := 0
	for _, line := range lines {
		size += len(line) + 1
	}
	b := make([]byte, 0, size)
	for _, line := range lines {
		b = append(append(b, line...), '\n')
	}
	return b
}

// Verify returns ErrForged unless the signature is SHA-256 with RSA, PKCS #1 v1.5, whatever the message says.
func (e Envelope) Verify(key *rsa.PublicKey) error {
	signature, err := e.signatureBytes()
	if err != nil {
		return err
	}
	digest := sha256.Sum256(e.SigningString())
	err = rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature)
	if err != nil && e.Type == TypeNotification && e.HasSubject && e.Subject == "" {
		// SMN's manual omits an empty subject, but its Java and Go samples sign it.
		digest = sha256.Sum256(e.signingString(true))
		err = rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature)
	}
	if err != nil {
		return fmt.Errorf("%w: the signature does not match", ErrForged)
	}
	return nil
}

// signatureBytes decodes the signature. It accepts only the canonical spelling and returns ErrForged otherwise.
func (e Envelope) signatureBytes() ([]byte, error) {
	if e.Signature == "" || len(e.Signature) > maxSignature {
		return nil, fmt.Errorf("%w: the signature has %d characters", ErrForged, len(e.Signature))
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(e.Signature)
	if err != nil || strings.ContainsAny(e.Signature, "\r\n") { // which base64 skips
		return nil, fmt.Errorf("%w: the signature is not plain base64", ErrForged)
	}
	return signature, nil
}

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

// ParseCertificate reads the first PEM block of a file, which is the signer's certificate. It ignores the rest, as
// SMN's own samples do. The key must be RSA and strong enough. Current checks the dates at each use.
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
