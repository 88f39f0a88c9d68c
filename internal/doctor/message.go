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

// message is a captured one, read without any demands: it may be otherwise than the receiver wants it.
type message struct {
	v1alpha1.CapturedMessage
	fields map[string]any
}

func newMessage(c v1alpha1.CapturedMessage) *message {
	m := &message{CapturedMessage: c}
	_ = json.Unmarshal([]byte(c.Body), &m.fields) // no JSON: no fields
	return m
}

// text is a field's, or empty.
func (m *message) text(key string) string {
	s, _ := m.fields[key].(string)
	return s
}

// malformedResult is of what is not in SMN's form.
const malformedResult = "malformed"

// kind is for a file's name.
func (m *message) kind() string {
	switch m.text("type") {
	case "SubscriptionConfirmation":
		return "confirmation"
	case "Notification":
		return "notification"
	}
	return "other"
}

// link is a field that is one; nil where it is none.
func (m *message) link(key string) *url.URL {
	u, err := url.Parse(m.text(key))
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}

// certHost is where the certificate of its signature is.
func (m *message) certHost() string {
	if u := m.link("signing_cert_url"); u != nil {
		return u.Host
	}
	return "no host"
}

// shape is what a program must know that reads it: size, headers, fields and their kinds.
func (m *message) shape() string {
	return fmt.Sprintf("%d bytes; %s; %s", len(m.Body), strings.Join(m.Headers, ", "), shape(m.fields))
}

// shape names the fields of an object, and of what kind each is.
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

// authentic reports whether the receiver found the signature to be right.
func (m *message) authentic() bool {
	return m.Result == "confirmed" || m.Result == "unconfirmed" || m.Result == "stored" || m.Result == "duplicate" || m.Result == "stale" ||
		m.Result == "ignored" || m.Result == "unreadable" || m.Result == "unavailable" && !m.lacksCertificate()
}

func (m *message) lacksCertificate() bool { return strings.Contains(m.Error, "signing certificate") }

// payload is what Cloud Eye says; nil where that is no object.
func (m *message) payload() (fields map[string]any) {
	_ = json.Unmarshal([]byte(m.text("message")), &fields)
	return fields
}
