// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// field is one field of an object.
type field struct {
	key  string
	raw  []byte // the value as it stands there; nil where the object has no such field
	text string // what it decodes to, where that was asked for
}

// fields are those of an object that are known: so few that looking through them costs less than a map.
type fields []field

// get is the field of a known key.
func (f fields) get(key string) field {
	for i := range f {
		if f[i].key == key {
			return f[i]
		}
	}
	return field{}
}

func (f fields) has(key string) bool    { return f.get(key).raw != nil }
func (f fields) text(key string) string { return f.get(key).text }

// parseObject splits one JSON object into its known fields. encoding/json alone would match "TYPE" and "ſubject", take the
// last of two equal keys, and turn broken text into U+FFFD; each of these lets two readers see two messages.
func parseObject(data []byte, known ...string) (fields, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not valid UTF-8")
	}
	s := &scanner{data: data}
	s.space()
	if s.next() != '{' {
		return nil, errors.New("not a JSON object")
	}
	found := make(fields, len(known))
	for i, key := range known {
		found[i].key = key
	}
	err := s.object(0, func(name, value []byte) error { return found.set(name, value) })
	if err != nil {
		return nil, err
	}
	if s.space(); s.at < len(data) {
		return nil, errNotJSON
	}
	return found, nil
}

// set takes in a field by its name as it stands there.
func (f fields) set(name, value []byte) error {
	plain := name[1 : len(name)-1]
	if bytes.IndexByte(plain, '\\') >= 0 {
		key, err := unquote(name)
		if err != nil {
			return nil //nolint:nilerr // no key of ours
		}
		plain = []byte(key)
	}
	for i := range f {
		if string(plain) != f[i].key {
			continue
		}
		if f[i].raw != nil {
			return fmt.Errorf("key %q twice", plain)
		}
		f[i].raw = value
		return nil
	}
	for i := range f {
		if strings.EqualFold(f[i].key, string(plain)) {
			return fmt.Errorf("a key that looks like %q", f[i].key)
		}
	}
	return nil
}

// parseString decodes a JSON string.
func parseString(raw []byte) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errors.New("not a string")
	}
	return unquote(raw)
}
