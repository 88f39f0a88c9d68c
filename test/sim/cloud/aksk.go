// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

const signatureAlgorithm = "SDK-HMAC-SHA256"

// verifySignature checks SDK-HMAC-SHA256: an HMAC over method, path, query, signed headers and body.
func (c *Cloud) verifySignature(q *call) error {
	scheme, rest, _ := strings.Cut(q.Header.Get("Authorization"), " ")
	if scheme != signatureAlgorithm {
		return errors.New("neither token nor signature")
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		parts[k] = v
	}
	accessKey, scope, _ := strings.Cut(parts["Credential"], "/")
	if accessKey != c.identity.accessKey {
		return errors.New("access key unknown")
	}
	date, signed := q.Header.Get("X-Sdk-Date"), strings.Split(parts["SignedHeaders"], ";")
	hash := sha256.Sum256([]byte(canonicalRequest(q, signed)))
	toSign := strings.Join([]string{signatureAlgorithm, date, scope, hex.EncodeToString(hash[:])}, "\n")
	key := []byte("SDK" + c.identity.secretKey)
	for step := range strings.SplitSeq(scope, "/") {
		key = hmacSHA256(key, step)
	}
	if given, err := hex.DecodeString(parts["Signature"]); err != nil || !hmac.Equal(given, hmacSHA256(key, toSign)) {
		return errors.New("signature does not match")
	}
	return nil
}

func hmacSHA256(key []byte, data string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(data))
	return mac.Sum(nil)
}

// canonicalRequest follows the signer of the SDK, which signs the query of a POST without a body as its body.
func canonicalRequest(q *call, signed []string) string {
	values := q.URL.Query()
	query, payload := strings.ReplaceAll(values.Encode(), "+", "%20"), string(q.body)
	if q.Method == http.MethodPost && len(q.body) == 0 {
		query, payload = "", values.Encode()
	}
	var headers strings.Builder
	for _, name := range signed {
		value := q.Header.Get(name)
		if name == "host" {
			value = q.Host
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	path := q.URL.Path
	if !strings.HasSuffix(path, "/") {
		path += "/"
	}
	path = strings.NewReplacer("%2F", "/", "+", "%20").Replace(url.QueryEscape(path))
	hash := sha256.Sum256([]byte(payload))
	return strings.Join([]string{
		q.Method, path, query, headers.String(), strings.Join(signed, ";"), hex.EncodeToString(hash[:]),
	}, "\n")
}
