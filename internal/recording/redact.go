// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// redactor replaces values by placeholders. The same value has the same placeholder in the whole recording.
type redactor struct {
	*vocabulary
	known map[string]string // value → placeholder; the empty one stays empty
}

// placeholder returns the placeholder of a value, such as redacted-hex32-7. It names the form of the value.
func (r *redactor) placeholder(value string) string {
	p, known := r.known[value]
	if !known {
		p = fmt.Sprintf("redacted-%s-%d", r.forms.Of(value), len(r.known))
		r.known[value] = p
	}
	return p
}

// body returns a JSON body without private values, or nil if it is not JSON: nobody knows what another text contains.
func (r *redactor) body(raw []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil
	}
	out, _ := json.Marshal(r.tree("", v, false)) // what was just decoded
	return out
}

// tree redacts a decoded value under a key. secret redacts all values below it.
func (r *redactor) tree(key string, v any, secret bool) any {
	switch v := v.(type) {
	case map[string]any:
		// Two objects of IAM have the name of a secret, and contain the project and the catalogue.
		secret = secret || r.secretKey.MatchString(key) && key != "auth" && key != "token"
		if ns, is := v["namespace"].(string); is && !strings.HasPrefix(ns, "SYS.") {
			secret = true // a metric of the tenant's own
		}
		out := make(map[string]any, len(v))
		for k, inner := range v {
			out[r.key(k, key == "tags" || key == "metadata" || key == "labels")] = r.tree(k, inner, secret)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = r.tree(key, inner, secret)
		}
		return out
	case string:
		if secret {
			return r.placeholder(v)
		}
		return r.value(key, v)
	case json.Number:
		if secret || r.secretKey.MatchString(key) || len(v) > 15 {
			return json.Number("0")
		}
	}
	return v
}

// key returns the name of a field. A name that no API can have, and each name inside of tags, is a value of the tenant.
func (r *redactor) key(name string, tags bool) string {
	_, known := r.known[name]
	if r.public.MatchString(name) || !tags && !known && r.fieldName.MatchString(name) && !r.suspicious(name) {
		return name
	}
	return r.placeholder(name)
}

// value returns a string under a key.
func (r *redactor) value(key, s string) string {
	_, known := r.known[s]
	public := r.public.MatchString(s)
	switch {
	case r.secretKey.MatchString(key) || known && !public:
		return r.placeholder(s)
	case public || strings.HasPrefix(r.forms.Of(s), "time"), r.publicKey.MatchString(key) && !r.suspicious(s):
		return s
	case r.textKey.MatchString(key):
		return r.text(s)
	}
	return r.segments(s)
}

// segments redacts each part of a URL, a URN or a marker of a page. Parts are what stands between delimiters.
func (r *redactor) segments(s string) string {
	return r.part.ReplaceAllStringFunc(s, func(part string) string {
		if r.public.MatchString(part) {
			return part
		}
		return r.placeholder(part)
	})
}

// text redacts a sentence of the cloud: what is quoted, what has the form of an id, and each value that was seen
// before.
func (r *redactor) text(s string) string {
	var seen []string
	for value := range r.known {
		if len(value) >= 4 && !r.public.MatchString(value) {
			seen = append(seen, value)
		}
	}
	slices.SortFunc(seen, func(a, b string) int { return len(b) - len(a) }) // a name may contain another one
	for _, value := range seen {
		s = strings.ReplaceAll(s, value, r.known[value])
	}
	return r.quoted.ReplaceAllStringFunc(s, func(word string) string {
		bare := strings.TrimRight(word, ".-")
		_, known := r.known[bare]
		if !known && (r.plain.MatchString(bare) || r.public.MatchString(bare) || r.forms.placeholder.MatchString(bare)) {
			return word
		}
		return r.placeholder(bare) + word[len(bare):]
	})
}
