// SPDX-License-Identifier: Apache-2.0

// Package smn reads the messages of the cloud's Simple Message Notification: the envelope, its signature, its
// certificate, and the Cloud Eye alarm inside. Every message may come from an attacker. So the parsers are strict, and
// each URL is compared with the configuration before it is fetched.
//
// The package does not use databases, policies, Kubernetes or HTTP status codes.
package smn

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// ErrMalformed reports that a message does not have the documented form.
var ErrMalformed = errors.New("malformed message")

// Type is the type of a message.
type Type string

// The known types (SMN umn: http_or_https_message_format.rst). Newer types exist. Of these only the type is read.
const (
	TypeNotification Type = "Notification"
	TypeConfirmation Type = "SubscriptionConfirmation"
	TypeUnsubscribed Type = "UnsubscribeConfirmation"
)

// Known reports whether messages of the type are verified and read.
func (t Type) Known() bool {
	return t == TypeNotification || t == TypeConfirmation || t == TypeUnsubscribed
}

// Envelope is a message whose fields have the documented form. It is not authentic before Verify.
type Envelope struct {
	Type       Type
	MessageID  string
	TopicURN   string
	Subject    string
	HasSubject bool // the key exists; SMN's samples sign an empty subject in two ways
	Message    string
	Timestamp  string // as signed
	Time       time.Time
	// SubscribeURL is the confirmation link. It is signed, and set, in the two confirmation types only.
	SubscribeURL string
	// Signature is base64 as sent. Verify checks it.
	Signature string
	// CertURL is the URL of the signing certificate. It is not signed.
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

// ParseEnvelope reads a body. It reads only the type of a message whose type is unknown. Errors are ErrMalformed.
func ParseEnvelope(body []byte) (Envelope, error) {
	found, err := parseObject(body, envelopeKeys()...)
	if err != nil {
		return Envelope{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	text := make(map[string]string, len(found))
	for _, key := range envelopeKeys() {
		value := found[key]
		if value == nil || value.Kind() == 'n' && optional(key) {
			continue // null counts as missing: it holds nothing to sign
		}
		if text[key], err = parseString(value); err != nil {
			return Envelope{}, fmt.Errorf("%w: %s: %w", ErrMalformed, key, err)
		}
	}
	e := Envelope{Type: Type(text[keyType])}
	if !hasForm(string(e.Type), 1, 64, letters) {
		return Envelope{}, fmt.Errorf("%w: type", ErrMalformed)
	}
	if !e.Type.Known() {
		return e, nil
	}
	if err := checkFields(e.Type, text); err != nil {
		return Envelope{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	e.MessageID, e.TopicURN, e.Message = text[keyMessageID], text[keyTopicURN], text[keyMessage]
	e.Subject, e.HasSubject = text[keySubject]
	e.Timestamp, e.Signature, e.CertURL = text[keyTimestamp], text[keySignature], text[keyCertURL]
	// Formatting the time must give the same text, apart from fractions, because time.Parse accepts hours of one digit.
	e.Time, err = time.Parse(timestampForm, e.Timestamp)
	if err != nil || e.Time.Format(timestampForm) != withoutFraction(e.Timestamp) {
		return Envelope{}, fmt.Errorf("%w: timestamp", ErrMalformed)
	}
	if e.Type != TypeNotification { // it is not signed in a notification
		e.SubscribeURL = text[keySubscribeURL]
	}
	return e, nil
}

// optional reports whether a message can lack the field. checkFields rejects a missing field that the type needs.
func optional(key string) bool {
	return key == keySubject || key == keyUnsubscribe || key == keySubscribeURL
}

// withoutFraction removes the fraction of a second. SMN's manual shows none, but does not exclude it.
func withoutFraction(timestamp string) string {
	whole, fraction, found := strings.Cut(timestamp, ".")
	if zone := strings.TrimLeft(fraction, digits); found && zone == "Z" && len(fraction) > 1 {
		return whole + zone
	}
	return timestamp
}

const timestampForm = "2006-01-02T15:04:05Z"

// checkFields checks the form of each field except message. The signing string joins fields by line feeds without
// escaping, so a line feed in a field could move text from one field into another. A full match of each field prevents
// this. Verify and CertURL check signature and signing_cert_url, because a wrong one is a forgery.
func checkFields(t Type, text map[string]string) error {
	required := []string{keyMessageID, keyTopicURN, keyMessage, keyTimestamp, keySignature, keyVersion, keyCertURL}
	if t != TypeNotification {
		required = append(required, keySubscribeURL)
	}
	for _, key := range required {
		if _, found := text[key]; !found {
			return fmt.Errorf("%s is missing", key)
		}
	}
	link := text[keySubscribeURL]
	switch {
	case !hasForm(text[keyMessageID], 1, 64, identifier+"-"): // 32 hex digits in all captures
		return errors.New(keyMessageID)
	case !isTopicURN(text[keyTopicURN]):
		return errors.New(keyTopicURN)
	case !strings.EqualFold(text[keyVersion], "v1"): // the manual has both v1 and V1 (docs/cloud-facts.md, SMN messages)
		return errors.New(keyVersion)
	case strings.ContainsFunc(text[keySubject], unicode.IsControl), len(text[keySubject]) > maxSubject:
		return errors.New(keySubject)
	case !isPrintable(text[keyUnsubscribe], 0, maxURL): // not signed, and not used
		return errors.New(keyUnsubscribe)
	case t == TypeNotification: // its link is not signed, and not used
	case !isPrintable(link, 1, maxURL), !strings.HasPrefix(link, "https://") && !strings.HasPrefix(link, "http://"):
		return errors.New(keySubscribeURL)
	}
	return nil
}

func isTopicURN(s string) bool {
	part := strings.Split(s, ":")
	return len(part) == 5 && part[0] == "urn" && part[1] == "smn" && hasForm(part[2], 1, 32, lower+digits+"-") &&
		hasForm(part[3], 32, 32, hex) && hasForm(part[4], 1, 255, identifier+"-") &&
		strings.Contains(letters+digits, part[4][:1])
}
