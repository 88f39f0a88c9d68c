// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/smn"
)

// message is a message of doctor's topic, or a malformed one, as doctor's own receiver got it. Its fields are parsed
// leniently, because the message may differ from the expected form.
type message struct {
	received  time.Time
	headers   []string // the names of SMN's own headers, and the content type
	body      string   // without signature and tokens
	fields    map[string]any
	malformed bool   // it is not in SMN's form
	authentic bool   // the receiver has verified the signature
	refused   bool   // by doctor, on purpose
	problem   string // why the receiver does not accept it
	variant   string // how it is signed instead of the expected way, if that is known
}

func newMessage(received time.Time, headers []string, body string) *message {
	m := &message{received: received, headers: headers, body: body}
	_ = json.Unmarshal([]byte(body), &m.fields) // invalid JSON has no fields
	return m
}

// smnHeaders returns the names of SMN's own headers, and the content type.
func smnHeaders(h http.Header) (names []string) {
	for name := range h {
		if strings.HasPrefix(name, "X-Smn-") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	const contentType = "Content-Type"
	if kind := h.Get(contentType); kind != "" {
		names = append(names, contentType+": "+kind)
	}
	return names
}

// text returns a field's text. It is empty if the field is missing or no text.
func (m *message) text(key string) string {
	s, _ := m.fields[key].(string)
	return s
}

// The kinds of messages, which are part of file names.
const (
	kindConfirmation = "confirmation"
	kindNotification = "notification"
	kindOther        = "other"
)

func (m *message) kind() string {
	switch m.text("type") {
	case string(smn.TypeConfirmation):
		return kindConfirmation
	case string(smn.TypeNotification):
		return kindNotification
	}
	return kindOther
}

// link returns a field as URL, or nil if it is none.
func (m *message) link(key string) *url.URL {
	u, err := url.Parse(m.text(key))
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}

// shape describes the message for programmers: size, headers, fields and their kinds.
func (m *message) shape() string {
	return fmt.Sprintf("%d bytes; %s; %s", len(m.body), strings.Join(m.headers, ", "), shape(m.fields))
}

// shape returns the names of the fields and their kinds.
func shape(fields map[string]any) string {
	var named []string
	for key, value := range fields {
		kind := "text"
		switch value.(type) {
		case nil:
			kind = "null"
		case bool:
			kind = "true or false"
		case float64:
			kind = "number"
		case []any:
			kind = "list"
		case map[string]any:
			kind = "object"
		}
		named = append(named, key+" ("+kind+")")
	}
	slices.Sort(named)
	return strings.Join(named, ", ")
}

// lacksCertificate reports whether the receiver could not fetch or accept the signing certificate.
func (m *message) lacksCertificate() bool { return strings.Contains(m.problem, "signing certificate") }

// payload returns Cloud Eye's alarm, or nil if it is no JSON object.
func (m *message) payload() (fields map[string]any) {
	_ = json.Unmarshal([]byte(m.text("message")), &fields)
	return fields
}
