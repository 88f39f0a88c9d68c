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

// ErrForged reports that a message was not signed by the key at its URL, or that the URL is refused.
var ErrForged = errors.New("forged message")

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

// Verify returns ErrForged unless the signature is SHA-256 with RSA, PKCS #1 v1.5. The message cannot choose the
// algorithm.
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
