// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// parseObject splits one JSON object into its known fields. encoding/json alone would match "TYPE" and "ſubject", take the
// last of two equal keys, and turn broken text into U+FFFD; each of these lets two readers see two messages.
func parseObject(data []byte, known []string) (map[string]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not valid UTF-8")
	}
	s := &scanner{data: data}
	s.space()
	if s.next() != '{' {
		return nil, errors.New("not a JSON object")
	}
	fields := make(map[string]json.RawMessage, len(known))
	err := s.object(0, func(name, value []byte) error {
		key, err := unquote(name)
		if err != nil {
			return nil //nolint:nilerr // no key of ours
		}
		if slices.Contains(known, key) {
			if _, twice := fields[key]; twice {
				return fmt.Errorf("key %q twice", key)
			}
			fields[key] = value
			return nil
		}
		for _, k := range known {
			if strings.EqualFold(k, key) {
				return fmt.Errorf("a key that looks like %q", k)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.space(); s.at < len(data) {
		return nil, errNotJSON
	}
	return fields, nil
}

// parseString decodes a JSON string.
func parseString(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errors.New("not a string")
	}
	return unquote(raw)
}
