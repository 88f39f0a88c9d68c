// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha512" // for Odd.SignsSHA512; sha256 comes with tls
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"time"
)

// Types of an envelope. SMN umn: http_or_https_message_format.rst.
const (
	TypeConfirmation = "SubscriptionConfirmation"
	TypeNotification = "Notification"
	TypeUnsubscribe  = "UnsubscribeConfirmation"
)

// Envelope is what SMN posts to an endpoint.
type Envelope struct {
	Signature        string `json:"signature"`
	Subject          string `json:"subject,omitempty"`
	SubscribeURL     string `json:"subscribe_url,omitempty"`
	TopicURN         string `json:"topic_urn"`
	MessageID        string `json:"message_id"`
	SignatureVersion string `json:"signature_version"`
	Type             string `json:"type"`
	Message          string `json:"message"`
	UnsubscribeURL   string `json:"unsubscribe_url,omitempty"`
	SigningCertURL   string `json:"signing_cert_url"`
	Timestamp        string `json:"timestamp"`
}

// SigningString returns the text that SMN signs: the keys in alphabetical order, each key and each value on a line of
// its own, with a line feed after the last line as well. SMN umn: message_signature_verification.rst. The last line
// feed follows from captured messages.
func (e Envelope) SigningString() string {
	pairs := [][2]string{{"message", e.Message}, {"message_id", e.MessageID}}
	switch {
	case e.Type == TypeNotification && e.Subject != "":
		pairs = append(pairs, [2]string{"subject", e.Subject})
	case e.Type != TypeNotification:
		pairs = append(pairs, [2]string{"subscribe_url", e.SubscribeURL})
	}
	pairs = append(pairs, [2]string{"timestamp", e.Timestamp}, [2]string{"topic_urn", e.TopicURN}, [2]string{"type", e.Type})
	var b bytes.Buffer
	for _, p := range pairs {
		b.WriteString(p[0] + "\n" + p[1] + "\n")
	}
	return b.String()
}

// JSON returns the body that SMN posts, in one line.
func (e Envelope) JSON() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(e) // never fails, because all fields are strings
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Sign signs an envelope of any content with the cloud's key, also one that the cloud would never send. Before, it sets
// an empty message id, type (to Notification), timestamp, version and certificate URL.
func (c *Cloud) Sign(e Envelope) Envelope {
	now := c.lock()
	e = c.complete(e, now)
	key, odd := c.signingKey, c.settings.Odd
	c.mu.Unlock()
	return e.signed(key, odd)
}

// complete sets the empty fields. The caller signs later without the lock, because a signature takes a millisecond.
func (c *Cloud) complete(e Envelope, now time.Time) Envelope {
	c.startSigning()
	e.Type, e.SignatureVersion = cmp.Or(e.Type, TypeNotification), cmp.Or(e.SignatureVersion, "v1")
	e.MessageID = cmp.Or(e.MessageID, hexID(32))
	if c.settings.MessageIDIsUUID && len(e.MessageID) == 32 {
		e.MessageID = dashed(strings.ToUpper(e.MessageID))
	}
	e.Timestamp = cmp.Or(e.Timestamp, c.timestamp(now))
	host := c.CertHost()
	if c.settings.CertOnOtherHost {
		host = "other." + host
	}
	e.SigningCertURL = cmp.Or(e.SigningCertURL, "https://"+host+c.signingCert)
	return e
}

func (c *Cloud) timestamp(now time.Time) string {
	switch {
	case c.settings.TimestampIsLocal:
		now = now.Add(localAhead)
	case c.settings.TimestampHasFraction:
		return now.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return now.UTC().Format("2006-01-02T15:04:05Z")
}

func (e Envelope) signed(key *rsa.PrivateKey, odd Odd) Envelope {
	text := []byte(e.SigningString())
	if odd.SignsOtherText {
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	algorithm := crypto.SHA256
	if odd.SignsSHA512 {
		algorithm = crypto.SHA512
	}
	hash := algorithm.New()
	hash.Write(text)
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, algorithm, hash.Sum(nil))
	if err == nil { // fails only for keys that are too short
		e.Signature = base64.StdEncoding.EncodeToString(signature)
	}
	return e
}

// startSigning generates the first key unless one was given. This takes long, and many clouds never sign. c.mu is held.
func (c *Cloud) startSigning() {
	if c.signingKey != nil {
		return
	}
	key, _ := rsa.GenerateKey(rand.Reader, 2048) // never fails, because a system without random numbers ends the process
	_ = c.useSigningKey(key)                     // fails only for keys that cannot sign
}

// useSigningKey makes SMN sign with a key. Its certificate is self-signed, because the issuer of SMN's is not
// documented. It is valid until 2099, because tests choose their own time.
func (c *Cloud) useSigningKey(key *rsa.PrivateKey) error {
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "simulated SMN"}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return fmt.Errorf("make signing certificate: %w", err)
	}
	c.signingKey, c.signingCert = key, fmt.Sprintf("/smn/SMN_%s_%s.pem", c.opts.Region, hexID(32))
	c.certificates[c.signingCert] = der
	return nil
}

func (c *Cloud) certOperations() []operation {
	return []operation{{service: "cert", name: "GetCertificate", pattern: "GET /smn/{file}", open: true, run: func(q *call) reply {
		cert, ok := c.certificates[q.URL.Path]
		if !ok {
			return reply{status: http.StatusNotFound}
		}
		if !c.settings.CertIsDER {
			cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
		}
		return reply{status: http.StatusOK, header: http.Header{"Content-Type": {"application/x-pem-file"}}, body: cert}
	}}}
}
