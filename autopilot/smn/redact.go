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

// cutOut stands for what is taken out of a message that is kept.
const cutOut = "cut-out"

// Redact returns a body without what would let somebody act with it: the signature and the tokens of links. What is no JSON
// object is not kept at all.
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

// withoutToken keeps of a link's query only what says which subscription it is about.
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

// DescribeSignature says what a signature that Verify refuses was made of, if that is only another algorithm or another end of the
// text; empty where it is not. It accepts nothing.
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
