// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of a message. Beyond them it is malformed, and its alarm is unreadable.
const (
	// maxDepth is the depth of nesting. Cloud Eye's alarms have 3 levels.
	maxDepth = 8
	// maxSubject is in bytes. SMN allows 512 characters.
	maxSubject = 2048
	// maxDimensions is in bytes: four dimensions, each with a name and a value.
	maxDimensions = 4 * (32 + 1 + 256 + 1)
	// maxURL is in bytes.
	maxURL = 2048
	// maxSignature is in characters of base64, 1.5 times the signature of the longest key. A longer one is forged.
	maxSignature = maxKeyBits / 4
)

// The errors of parseObject do not contain text of the message, because they are logged.
var (
	errNotJSON = errors.New("not one JSON value")
	errDepth   = fmt.Errorf("nested deeper than %d", maxDepth)
)

// fields holds the values of an object's known keys as sent. A key that the object lacks is not in it.
type fields map[string]jsontext.Value

// parseObject returns the known fields of one JSON object. It ignores all other keys and their values, down to
// maxDepth. It rejects a known key that occurs twice, and a key that equals a known one by case folding only.
// encoding/json accepts both, so two readers could see two different messages in one body.
func parseObject(data []byte, known ...string) (fields, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not valid UTF-8")
	}
	dec := newDecoder(data)
	if begin, err := dec.ReadToken(); err != nil || begin.Kind() != '{' {
		return nil, errors.New("not a JSON object")
	}
	found := make(fields, len(known))
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, errNotJSON
		}
		key := name.String() // before the next read, which invalidates the token
		value, err := readValue(dec)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, key) })
		switch {
		case i < 0:
			continue
		case key != known[i]:
			return nil, fmt.Errorf("a key that looks like %q", known[i])
		case found[key] != nil:
			return nil, fmt.Errorf("key %q twice", key)
		}
		found[key] = value.Clone()
	}
	if _, err := dec.ReadToken(); err != nil { // the closing brace
		return nil, errNotJSON
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errNotJSON
	}
	return found, nil
}

// newDecoder returns a tokenizer for data, which is valid UTF-8. It accepts duplicate keys and lone surrogates, because
// only known fields must be free of them: parseObject and parseString check these.
func newDecoder(data []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func readValue(dec *jsontext.Decoder) (jsontext.Value, error) {
	value, err := dec.ReadValue()
	if err != nil {
		return nil, errNotJSON
	}
	if kind := value.Kind(); kind == '{' || kind == '[' {
		err = checkDepth(value)
	}
	return value, err
}

// checkDepth returns an error if the value of an object's field is nested so deep that the object exceeds maxDepth.
func checkDepth(value jsontext.Value) error {
	dec := newDecoder(value)
	for {
		switch _, err := dec.ReadToken(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errNotJSON
		case dec.StackDepth() == maxDepth:
			return errDepth
		}
	}
}

// parseString decodes a JSON string. It rejects a lone surrogate: decoding would replace it by U+FFFD, and the verified
// text would not be the text that was sent.
func parseString(value jsontext.Value) (string, error) {
	if value.Kind() != '"' {
		return "", errors.New("not a string")
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "", errors.New("half a surrogate pair")
	}
	return string(text), nil
}

// Alphabets of the fields.
const (
	digits     = "0123456789"
	lower      = "abcdefghijklmnopqrstuvwxyz"
	upper      = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters    = lower + upper
	hex        = digits + "abcdef"
	identifier = letters + digits + "_"
)

func hasForm(s string, least, most int, alphabet string) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, alphabet) == ""
}

func isName(s string, most int, alphabet string) bool {
	return s != "" && strings.Contains(letters, s[:1]) && hasForm(s, 1, most, alphabet)
}

func isPrintable(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}
