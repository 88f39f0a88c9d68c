// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// message is a captured message. Its fields are parsed leniently, because the message may differ from the expected
// form.
type message struct {
	v1alpha1.CapturedMessage
	fields map[string]any
}

func newMessage(c v1alpha1.CapturedMessage) *message {
	m := &message{CapturedMessage: c}
	_ = json.Unmarshal([]byte(c.Body), &m.fields) // invalid JSON has no fields
	return m
}

// text returns a field's text. It is empty if the field is missing or no text.
func (m *message) text(key string) string {
	s, _ := m.fields[key].(string)
	return s
}

// malformedResult is the result of a message that is not in SMN's form.
const malformedResult = "malformed"

// kind returns the message's type for a file name.
func (m *message) kind() string {
	switch m.text("type") {
	case "SubscriptionConfirmation":
		return "confirmation"
	case "Notification":
		return "notification"
	}
	return "other"
}

// link returns a field as URL, or nil if it is none.
func (m *message) link(key string) *url.URL {
	u, err := url.Parse(m.text(key))
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}

// certHost returns the host of the signing certificate.
func (m *message) certHost() string {
	if u := m.link("signing_cert_url"); u != nil {
		return u.Host
	}
	return "no host"
}

// shape describes the message for programmers: size, headers, fields and their kinds.
func (m *message) shape() string {
	return fmt.Sprintf("%d bytes; %s; %s", len(m.Body), strings.Join(m.Headers, ", "), shape(m.fields))
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

// authentic reports whether the receiver has verified the signature.
func (m *message) authentic() bool {
	return m.Result == "unavailable" && !m.lacksCertificate() ||
		slices.Contains([]string{"confirmed", "unconfirmed", "stored", "duplicate", "stale", "ignored", "unreadable"},
			m.Result)
}

// lacksCertificate reports whether the receiver could not fetch or accept the signing certificate.
func (m *message) lacksCertificate() bool { return strings.Contains(m.Error, "signing certificate") }

// payload returns Cloud Eye's alarm, or nil if it is no JSON object.
func (m *message) payload() (fields map[string]any) {
	_ = json.Unmarshal([]byte(m.text("message")), &fields)
	return fields
}
