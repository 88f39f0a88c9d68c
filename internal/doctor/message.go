package doctor

import (
	"encoding/json"
	"net/url"
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
