package smn

import (
	"bytes"
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
	if !json.Valid(data) {
		return nil, errors.New("not one JSON value")
	}
	if tooDeep(data) {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	rest := bytes.TrimLeft(data, space)
	if rest[0] != '{' {
		return nil, errors.New("not a JSON object")
	}
	fields := make(map[string]json.RawMessage, len(known))
	for rest = bytes.TrimLeft(rest[1:], space); rest[0] != '}'; rest = bytes.TrimLeft(rest, space+",") {
		var name, value []byte
		name, rest = cutValue(rest)
		value, rest = cutValue(bytes.TrimLeft(rest, space+":"))
		key, err := unquote(name)
		if err != nil {
			return nil, fmt.Errorf("read a key: %w", err)
		}
		if slices.Contains(known, key) {
			if _, twice := fields[key]; twice {
				return nil, fmt.Errorf("key %q twice", key)
			}
			fields[key] = value
			continue
		}
		for _, k := range known {
			if strings.EqualFold(k, key) {
				return nil, fmt.Errorf("a key that looks like %q", k)
			}
		}
	}
	return fields, nil
}

const space = " \t\r\n" // RFC 8259, section 2

// cutValue cuts off the value that valid JSON begins with. Something follows it, if only the bracket that it is in.
func cutValue(data []byte) (value, rest []byte) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += closingQuote(data[i:])
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default: // of a number, true, false or null; or between two values
			if depth == 0 {
				i += bytes.IndexAny(data[i:], ",]}"+space) - 1
			}
		}
		if depth == 0 {
			return data[:i+1], data[i+1:]
		}
	}
	return data, nil
}

// closingQuote is the place of the quote that ends the string which the data begins with.
func closingQuote(data []byte) int {
	i := 1
	for ; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// tooDeep walks valid JSON and counts brackets outside strings.
func tooDeep(data []byte) bool {
	depth, inString, escaped := 0, false, false
	for _, b := range data {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = b == '\\', b != '"'
		case b == '"':
			inString = true
		case b == '{', b == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case b == '}', b == ']':
			depth--
		}
	}
	return false
}

// parseString decodes a JSON string. A lone surrogate is refused: it would become U+FFFD, and what is verified would not be
// what was sent.
func parseString(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errors.New("not a string")
	}
	if loneSurrogate(raw) {
		return "", errors.New("half a surrogate pair")
	}
	return unquote(raw)
}

// unquote decodes a string of valid JSON.
func unquote(raw []byte) (s string, err error) {
	if bytes.IndexByte(raw, '\\') < 0 { // most are as they stand there
		return string(raw[1 : len(raw)-1]), nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", fmt.Errorf("decode: %w", err)
	}
	return s, nil
}

func loneSurrogate(raw []byte) bool {
	high := false // the last thing read was a high surrogate
	for i := 0; i < len(raw); i++ {
		unit := uint64(0)
		if raw[i] == '\\' && i+1 < len(raw) {
			if raw[i+1] == 'u' && i+5 < len(raw) {
				for _, c := range raw[i+2 : i+6] {
					unit = unit<<4 | uint64(hexDigit(c))
				}
				i += 5
			} else {
				i++
			}
		}
		low := unit >= 0xDC00 && unit <= 0xDFFF
		if high != low {
			return true
		}
		high = unit >= 0xD800 && unit <= 0xDBFF
	}
	return high
}

func hexDigit(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}
