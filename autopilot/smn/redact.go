// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"crypto"
	"crypto/rsa"
	_ "crypto/sha512" // for DescribeSignature
	"encoding/json"
	"fmt"
	"net/url"
)

// cutOut replaces the secrets of a message.
const cutOut = "cut-out"

// Redact returns a body without its signature and without the tokens of its links, which would let a reader act with
// it. It returns an empty text if the body is not a JSON object.
func Redact(body []byte) string {
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		return ""
	}
	for key, value := range fields {
		text, isText := value.(string)
		switch {
		case key == keySignature:
			fields[key] = cutOut
		case isText && (key == keySubscribeURL || key == keyUnsubscribe):
			fields[key] = withoutToken(text)
		}
	}
	kept, err := json.Marshal(fields)
	if err != nil {
		return ""
	}
	return string(kept)
}

// withoutToken replaces each value in the link's query, except the topic and the region.
func withoutToken(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return cutOut
	}
	query := u.Query()
	for key := range query {
		if key != "topic_urn" && key != "region" && key != "region_id" {
			query.Set(key, cutOut)
		}
	}
	u.User, u.RawQuery, u.Fragment = nil, query.Encode(), ""
	return u.String()
}

// DescribeSignature explains for doctor why Verify refused a signature: SMN may have changed the algorithm or the end
// of the text. It returns an empty text if neither matches. It does not accept the message.
func (e Envelope) DescribeSignature(key *rsa.PublicKey) string {
	signature, err := e.signatureBytes()
	if err != nil || key == nil {
		return ""
	}
	text := e.SigningString()
	for _, variant := range []struct {
		what string
		text []byte
		hash crypto.Hash
	}{
		{"signed without the line feed at the end", text[:len(text)-1], crypto.SHA256},
		{"signed with SHA-384", text, crypto.SHA384},
		{"signed with SHA-512", text, crypto.SHA512},
	} {
		h := variant.hash.New()
		h.Write(variant.text)
		if rsa.VerifyPKCS1v15(key, variant.hash, h.Sum(nil), signature) == nil {
			return fmt.Sprintf("it is %s", variant.what)
		}
	}
	return ""
}
