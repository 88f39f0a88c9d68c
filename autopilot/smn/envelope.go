// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// ErrMalformed is a message that SMN would not send: it is not in the documented form.
var ErrMalformed = errors.New("malformed message")

// Type is the type of a message.
type Type string

// The types that are known (SMN umn: http_or_https_message_format.rst). Newer ones exist and are let pass unread.
const (
	TypeNotification Type = "Notification"
	TypeConfirmation Type = "SubscriptionConfirmation"
	TypeUnsubscribed Type = "UnsubscribeConfirmation"
)

// Known reports whether the type is one that is verified and read.
func (t Type) Known() bool {
	return t == TypeNotification || t == TypeConfirmation || t == TypeUnsubscribed
}

// Envelope is a message whose every field has the right form. Nothing of it is authentic yet.
type Envelope struct {
	Type       Type
	MessageID  string
	TopicURN   string
	Subject    string
	HasSubject bool // the key is there, if only empty: the samples of SMN differ on how to sign that
	Message    string
	Timestamp  string // as signed
	Time       time.Time
	// SubscribeURL is the confirmation link; signed in the two confirmation types only.
	SubscribeURL string
	// Signature as sent: base64, not yet looked at.
	Signature string
	// CertURL says where the signing certificate is. It is not signed.
	CertURL string
}

const (
	keyType         = "type"
	keyMessageID    = "message_id"
	keyTopicURN     = "topic_urn"
	keySubject      = "subject"
	keyMessage      = "message"
	keyTimestamp    = "timestamp"
	keySignature    = "signature"
	keyVersion      = "signature_version"
	keyCertURL      = "signing_cert_url"
	keySubscribeURL = "subscribe_url"
	keyUnsubscribe  = "unsubscribe_url"
)

func envelopeKeys() []string {
	return []string{
		keyType, keyMessageID, keyTopicURN, keySubject, keyMessage, keyTimestamp,
		keySignature, keyVersion, keyCertURL, keySubscribeURL, keyUnsubscribe,
	}
}

// ParseEnvelope reads a body. Of a message whose type is not known only the type is read. Errors are ErrMalformed.
func ParseEnvelope(body []byte) (Envelope, error) {
	found, err := parseObject(body, envelopeKeys()...)
	if err != nil {
		return Envelope{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	for i := range found {
		f := &found[i]
		if string(f.raw) == "null" && optional(f.key) { // as if it were not there: there is nothing in it to sign
			f.raw = nil
		}
		if f.raw == nil {
			continue
		}
		if f.text, err = parseString(f.raw); err != nil {
			return Envelope{}, fmt.Errorf("%w: %s: %w", ErrMalformed, f.key, err)
		}
	}
	e := Envelope{Type: Type(found.text(keyType))}
	if !hasForm(string(e.Type), 1, 64, letters) {
		return Envelope{}, fmt.Errorf("%w: type", ErrMalformed)
	}
	if !e.Type.Known() {
		return e, nil
	}
	if err := checkFields(e.Type, found); err != nil {
		return Envelope{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	e.MessageID, e.TopicURN, e.Message = found.text(keyMessageID), found.text(keyTopicURN), found.text(keyMessage)
	e.Subject, e.HasSubject = found.text(keySubject), found.has(keySubject)
	e.Timestamp, e.Signature, e.CertURL = found.text(keyTimestamp), found.text(keySignature), found.text(keyCertURL)
	// Written again it must be the same but for fractions of a second: time.Parse takes hours of one digit.
	if e.Time, err = time.Parse(timestampForm, e.Timestamp); err != nil || e.Time.Format(timestampForm) != withoutFraction(e.Timestamp) {
		return Envelope{}, fmt.Errorf("%w: timestamp", ErrMalformed)
	}
	if e.Type != TypeNotification { // of a notification it is not signed, so it is not kept
		e.SubscribeURL = found.text(keySubscribeURL)
	}
	return e, nil
}

// optional reports whether a message can be whole without the field. Where a type needs it, checkFields misses it.
func optional(key string) bool {
	return key == keySubject || key == keyUnsubscribe || key == keySubscribeURL
}

// withoutFraction takes out milliseconds, or more digits: SMN's manual shows none, and nothing forbids them.
func withoutFraction(timestamp string) string {
	whole, fraction, found := strings.Cut(timestamp, ".")
	if zone := strings.TrimLeft(fraction, digits); found && zone == "Z" && len(fraction) > 1 {
		return whole + zone
	}
	return timestamp
}

const timestampForm = "2006-01-02T15:04:05Z"

// checkFields checks the form of each field but message. The signing string joins fields by line feeds without escaping,
// so a field that could hold one could swallow its neighbours; a full match of each closes that. The forms of signature
// and signing_cert_url are checked later, because a wrong one is a forgery: see Verify and CertURL.
func checkFields(t Type, found fields) error {
	required := []string{keyMessageID, keyTopicURN, keyMessage, keyTimestamp, keySignature, keyVersion, keyCertURL}
	if t != TypeNotification {
		required = append(required, keySubscribeURL)
	}
	for _, key := range required {
		if !found.has(key) {
			return fmt.Errorf("%s is missing", key)
		}
	}
	link := found.text(keySubscribeURL)
	switch {
	case !hasForm(found.text(keyMessageID), 1, 64, identifier+"-"): // 32 hex digits in all captures; only repetitions are known by it
		return errors.New(keyMessageID)
	case !isTopicURN(found.text(keyTopicURN)):
		return errors.New(keyTopicURN)
	case !strings.EqualFold(found.text(keyVersion), "v1"): // the manual's table says V1, its examples v1 (docs/cloud-facts.md, SMN messages)
		return errors.New(keyVersion)
	case strings.ContainsFunc(found.text(keySubject), unicode.IsControl), len(found.text(keySubject)) > maxSubject:
		return errors.New(keySubject)
	case !isPrintable(found.text(keyUnsubscribe), 0, maxURL): // not signed and never used
		return errors.New(keyUnsubscribe)
	case t == TypeNotification: // a link in it is not signed, and not kept
	case !isPrintable(link, 1, maxURL), !strings.HasPrefix(link, "https://") && !strings.HasPrefix(link, "http://"):
		return errors.New(keySubscribeURL)
	}
	return nil
}

// isTopicURN reports whether a text is a topic's: urn:smn:<region>:<project>:<name>.
func isTopicURN(s string) bool {
	part := strings.Split(s, ":")
	return len(part) == 5 && part[0] == "urn" && part[1] == "smn" && hasForm(part[2], 1, 32, lower+digits+"-") &&
		hasForm(part[3], 32, 32, hex) && hasForm(part[4], 1, 255, identifier+"-") && strings.Contains(letters+digits, part[4][:1])
}
