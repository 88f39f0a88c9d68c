// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// scanner walks over JSON (RFC 8259) once, and hands out what it finds as it stands there. It takes what encoding/json takes,
// down to maxDepth; a fuzz test compares them.
type scanner struct {
	data []byte
	at   int
}

var (
	errNotJSON = errors.New("not one JSON value")
	errDepth   = fmt.Errorf("nested deeper than %d", maxDepth)
)

// next is the next byte, or 0 at the end: no value begins with that, and none holds it.
func (s *scanner) next() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

// skip steps over the byte, and the space behind it, if it comes next.
func (s *scanner) skip(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	s.space()
	return true
}

func (s *scanner) space() {
	for c := s.next(); c == ' ' || c == '\n' || c == '\r' || c == '\t'; c = s.next() {
		s.at++
	}
}

// value returns the next value, which is inside so many brackets.
func (s *scanner) value(depth int) ([]byte, error) {
	start := s.at
	var err error
	switch c := s.next(); {
	case c == '{':
		err = s.object(depth, func(_, _ []byte) error { return nil })
	case c == '[':
		err = s.array(depth, func([]byte) error { return nil })
	case c == '"':
		err = s.text()
	case c == '-' || isDigit(c):
		err = s.number()
	default:
		err = s.literal()
	}
	end := s.at
	s.space()
	return s.data[start:end:end], err
}

// object calls field with each name, in its quotes, and value of the object that begins here.
func (s *scanner) object(depth int, field func(name, value []byte) error) error {
	return s.list(depth, '}', func() error {
		name := s.at
		if err := s.text(); err != nil {
			return err
		}
		end := s.at
		s.space()
		if !s.skip(':') {
			return errNotJSON
		}
		value, err := s.value(depth + 1)
		if err != nil {
			return err
		}
		return field(s.data[name:end], value)
	})
}

// array calls element with each value of the array that begins here.
func (s *scanner) array(depth int, element func(value []byte) error) error {
	return s.list(depth, ']', func() error {
		value, err := s.value(depth + 1)
		if err != nil {
			return err
		}
		return element(value)
	})
}

// list calls item at each item of the list in brackets that begins here.
func (s *scanner) list(depth int, end byte, item func() error) error {
	if depth == maxDepth {
		return errDepth
	}
	s.at++
	s.space()
	if s.next() == end {
		s.at++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.next() == end {
			s.at++
			return nil
		}
		if !s.skip(',') {
			return errNotJSON
		}
	}
}

// text steps over a string. Most bytes of a message are in one.
func (s *scanner) text() error {
	if s.next() != '"' {
		return errNotJSON
	}
	for i := s.at + 1; i < len(s.data); i++ {
		c := s.data[i]
		switch {
		case c == '"':
			s.at = i + 1
			return nil
		case c < ' ':
			return errNotJSON
		case c != '\\':
			continue
		}
		if i++; i == len(s.data) {
			return errNotJSON
		}
		if s.data[i] != 'u' {
			if strings.IndexByte(`"\/bfnrt`, s.data[i]) < 0 {
				return errNotJSON
			}
			continue
		}
		for range 4 {
			if i++; i == len(s.data) || !isHex(s.data[i]) {
				return errNotJSON
			}
		}
	}
	return errNotJSON
}

func (s *scanner) number() error {
	if s.next() == '-' {
		s.at++
	}
	if s.next() == '0' {
		s.at++
	} else if !s.digits() {
		return errNotJSON
	}
	if s.next() == '.' {
		if s.at++; !s.digits() {
			return errNotJSON
		}
	}
	if c := s.next(); c == 'e' || c == 'E' {
		s.at++
		if c := s.next(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return errNotJSON
		}
	}
	return nil
}

// digits steps over digits and reports whether there was one.
func (s *scanner) digits() bool {
	start := s.at
	for isDigit(s.next()) {
		s.at++
	}
	return s.at > start
}

func (s *scanner) literal() error {
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.data[s.at:], []byte(word)) {
			s.at += len(word)
			return nil
		}
	}
	return errNotJSON
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// unquote decodes a string of valid JSON. A lone surrogate is refused: it would become U+FFFD, and what is verified would not
// be what was sent.
func unquote(raw []byte) (string, error) {
	rest := raw[1 : len(raw)-1]
	if bytes.IndexByte(rest, '\\') < 0 {
		return string(rest), nil
	}
	var out strings.Builder
	out.Grow(len(rest))
	for i := bytes.IndexByte(rest, '\\'); i >= 0; i = bytes.IndexByte(rest, '\\') {
		out.Write(rest[:i])
		c := rest[i+1]
		if rest = rest[i+2:]; c != 'u' {
			out.WriteByte(unescape(c))
			continue
		}
		r := hexRune(rest)
		if rest = rest[4:]; utf16.IsSurrogate(r) {
			if !bytes.HasPrefix(rest, []byte(`\u`)) {
				return "", errHalf
			}
			if r = utf16.DecodeRune(r, hexRune(rest[2:])); r == unicode.ReplacementChar {
				return "", errHalf
			}
			rest = rest[6:]
		}
		out.WriteRune(r)
	}
	out.Write(rest)
	return out.String(), nil
}

var errHalf = errors.New("half a surrogate pair")

// unescape is what stands for that letter behind a backslash.
func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// hexRune is what four hex digits stand for; the scanner has seen them.
func hexRune(data []byte) rune {
	n, _ := strconv.ParseUint(string(data[:4]), 16, 16)
	return rune(n)
}
