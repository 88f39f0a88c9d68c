// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// ErrForged is a message that was not signed by the key it names, or names a key that may not sign.
var ErrForged = errors.New("forged message")

// SigningString is the exact text that SMN signs: keys in alphabetical order, each followed by its value, each line
// ended by a line feed, the last one too (SMN umn: message_signature_verification.rst; docs/cloud-facts.md, Signature). An empty subject
// is left out.
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

// Verify checks the signature: SHA-256 with RSA, PKCS #1 v1.5. The algorithm is fixed, whatever the message says.
// It returns ErrForged.
func (e Envelope) Verify(key *rsa.PublicKey) error {
	signature, err := e.signatureBytes()
	if err != nil {
		return err
	}
	digest := sha256.Sum256(e.SigningString())
	err = rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature)
	if err != nil && e.Type == TypeNotification && e.HasSubject && e.Subject == "" {
		// SMN's text leaves a blank subject out, its Java and Go samples only a missing one.
		digest = sha256.Sum256(e.signingString(true))
		err = rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature)
	}
	if err != nil {
		return fmt.Errorf("%w: the signature does not match", ErrForged)
	}
	return nil
}

// signatureBytes decodes the signature, of which there is one spelling only. It returns ErrForged.
func (e Envelope) signatureBytes() ([]byte, error) {
	if e.Signature == "" || len(e.Signature) > maxSignature {
		return nil, fmt.Errorf("%w: no signature has %d characters", ErrForged, len(e.Signature))
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(e.Signature)
	if err != nil || strings.ContainsAny(e.Signature, "\r\n") { // which base64 skips
		return nil, fmt.Errorf("%w: the signature is not plain base64", ErrForged)
	}
	return signature, nil
}
