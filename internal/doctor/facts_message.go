// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
)

var (
	messageIDForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
	timestampForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
)

// messageFacts returns the judges of the assumptions about SMN's messages, about what SMN does after one, and about the
// alarm in a notification.
func messageFacts() map[string]judge {
	return map[string]judge{
		"cert-host": proven(anyStored, ofMessage(func(x *examination, m *message) finding {
			u := m.link("signing_cert_url")
			if u == nil {
				return holds(false, "signing_cert_url is "+show(m.text("signing_cert_url")))
			}
			return holds(slices.Contains(app.CertHosts(x.Options.Options, x.api)(), u.Host), u.Host)
		})),
		"cert-pem": proven(anyStored, ofMessage(func(_ *examination, m *message) finding {
			switch {
			case m.lacksCertificate():
				return holds(false, m.problem)
			case !m.authentic:
				return unseen("The certificate was not fetched: " + m.problem)
			}
			return holds(true, "")
		})),
		"signed-text": proven(anyStored,
			ofMessage(func(_ *examination, m *message) finding { return signed(m, "line feed") })),
		"signature-algorithm": proven(anyStored,
			ofMessage(func(_ *examination, m *message) finding { return signed(m, "signed with SHA") })),
		"confirm-host": proven(confirmationStored, ofConfirmation(func(x *examination, m *message) finding {
			u := m.link("subscribe_url")
			if u == nil {
				return holds(false, "subscribe_url is "+show(m.text("subscribe_url")))
			}
			hosts, err := app.ConfirmHosts(x.Options.Options, x.api.Region())
			return holds(err == nil && slices.Contains(hosts, u.Host), u.Host)
		})),
		"confirm-path": ofConfirmation(func(_ *examination, m *message) finding {
			u := m.link("subscribe_url")
			if u == nil {
				return unseen("The message has no link")
			}
			return holds(u.Path == "/smn/subscription/confirm" && u.Query().Get("topic_urn") != "", u.Path)
		}),
		"confirm-answer": func(x *examination) finding {
			if x.confirmation() == nil || x.seen.subscription == nil {
				return unseen("The receiver has called no link")
			}
			return holds(x.seen.subscription.Status != otc.SubscriptionUnconfirmed, "")
		},
		"confirm-again": func(x *examination) finding {
			if x.seen.again == nil || x.confirmation() == nil && x.seen.confirmation == nil {
				return unseen(noConfirmation)
			}
			return holds(*x.seen.again, "")
		},
		"message-id": func(x *examination) finding {
			id := x.messageID()
			if id == "" {
				return unseen(noMessage)
			}
			return holds(messageIDForm.MatchString(id), id)
		},
		"timestamp-form": ofMessage(func(_ *examination, m *message) finding {
			return holds(timestampForm.MatchString(m.text("timestamp")), m.text("timestamp"))
		}),
		"timestamp-utc": func(x *examination) finding {
			if c := x.confirmation(); c != nil {
				return isUTC(c.SentTime.Time, c.ReceivedTime.Time)
			}
			return ofMessage(func(_ *examination, m *message) finding {
				sent, err := time.Parse(time.RFC3339, m.text("timestamp"))
				if err != nil {
					return holds(false, m.text("timestamp"))
				}
				return isUTC(sent, m.received)
			})(x)
		},
		"strings-only": ofMessage(func(_ *examination, m *message) finding {
			var others []string
			for key, value := range m.fields {
				if _, is := value.(string); !is {
					others = append(others, key)
				}
			}
			slices.Sort(others)
			return holds(len(others) == 0, strings.Join(others, ", "))
		}),
		"smn-headers": ofMessage(func(_ *examination, m *message) finding {
			named := slices.DeleteFunc(slices.Clone(m.headers), func(h string) bool { return strings.Contains(h, ":") })
			return holds(slices.Equal(named, []string{"X-Smn-Message-Id", "X-Smn-Message-Type", "X-Smn-Topic-Urn"}),
				strings.Join(named, ", "))
		}),
		"sends-again": func(x *examination) finding {
			if x.seen.repeated == nil {
				return unseen(x.raw(noNotification))
			}
			return holds(*x.seen.repeated, "")
		},
		"sent-again-same": func(x *examination) finding {
			if x.seen.repeated == nil || !*x.seen.repeated {
				return unseen(x.raw("No message was sent again"))
			}
			first, second := x.seen.notification.text("message_id"), x.seen.second.text("message_id")
			return holds(first == second, first+", then "+second)
		},
		"cloud-eye-publishes": func(x *examination) finding {
			switch {
			case x.alarm() != nil || x.seen.notification != nil:
				return holds(true, "")
			case x.seen.ruleAlarm == nil || x.results["subscription"].State != OK:
				return unseen("No alarm, or no confirmed subscription")
			}
			return holds(false, "the rule is in alarm, and no message arrived")
		},
		"payload-schema": proven(alarmStored, ofPayload(func(_ *examination, p map[string]any) finding {
			_, id := p["alarm_id"]
			_, status := p["alarm_status"]
			if id && status {
				return holds(true, "")
			}
			return holds(false, shape(p))
		})),
		"payload-status": ofField("alarm_status",
			func(_ *examination, v any) finding { return holds(v == "alarm", show(v)) }),
		"payload-time": proven(alarmStored, ofField("time", func(_ *examination, v any) finding {
			t, is := v.(float64)
			return holds(is && t > 1e11, show(v))
		})),
		"payload-rule": proven(alarmStored, ofField("alarm_id", func(x *examination, v any) finding {
			return holds(v == x.made.ID, fmt.Sprintf("%v for the rule %s", v, x.made.ID))
		})),
		"payload-dimension": proven(alarmStored, ofField("dimension", func(_ *examination, v any) finding {
			s, is := v.(string)
			return holds(is && strings.Contains(s, ":"), show(v))
		})),
		"payload-percent": func(x *examination) finding {
			if a := x.alarm(); a != nil && a.ValuePercent != "" {
				value, err := strconv.ParseFloat(a.ValuePercent, 64)
				if err == nil {
					return x.comparePercent(value)
				}
			}
			return ofPayload(payloadPercent)(x)
		},
	}
}

// payloadPercent judges the newest value of an alarm.
func payloadPercent(x *examination, p map[string]any) finding {
	points, _ := p["alarmValue"].([]any)
	if len(points) == 0 {
		return unseen("The alarm has no alarmValue")
	}
	point, _ := points[len(points)-1].(map[string]any)
	value, _ := point["value"].(float64)
	return x.comparePercent(value)
}

// isUTC reports whether the time of signing is UTC. No zone is less than half an hour away from it.
func isUTC(sent, received time.Time) finding {
	return holds(received.Sub(sent).Abs() < 20*time.Minute,
		fmt.Sprintf("signed %s, received %s", sent.UTC().Format(time.RFC3339), received.UTC().Format(time.RFC3339)))
}

// messageID returns the id of an accepted message or, if there is none, of a message that arrived.
func (x *examination) messageID() string {
	if a := x.alarm(); a != nil {
		return a.MessageID
	}
	if c := x.confirmation(); c != nil {
		return c.MessageID
	}
	if len(x.seen.messages) > 0 {
		return x.seen.messages[0].text("message_id")
	}
	return ""
}

// raw returns why no message could be judged. Only doctor's own receiver keeps messages.
func (x *examination) raw(why string) string {
	if x.Listen == nil {
		return onlyListen
	}
	return why
}

func confirmationStored(x *examination) bool { return x.confirmation() != nil }

func alarmStored(x *examination) bool { return x.alarm() != nil }

func anyStored(x *examination) bool { return confirmationStored(x) || alarmStored(x) }

// proven returns a judge of what the receiver checks. The receiver stores only messages that pass, so a stored one
// proves the assumption if the message itself was not seen.
func proven(stored func(*examination) bool, find judge) judge {
	return func(x *examination) finding {
		f := find(x)
		if f.seen || !stored(x) {
			return f
		}
		return holds(true, "the receiver accepted a message")
	}
}

// signed reports whether a message has the expected signature. part is the text by which a variant differs from it.
func signed(m *message, part string) finding {
	switch {
	case m.authentic:
		return holds(true, "")
	case m.variant != "": // with another algorithm, or without a line feed
		return holds(!strings.Contains(m.variant, part), m.variant)
	}
	return unseen("The signature was not verified: " + m.problem)
}

// ofMessage judges the notification or, if none arrived, the confirmation or any other message.
func ofMessage(find func(*examination, *message) finding) judge {
	return func(x *examination) finding {
		m := cmp.Or(x.seen.notification, x.seen.confirmation)
		if m == nil && len(x.seen.messages) > 0 {
			m = x.seen.messages[0]
		}
		if m == nil {
			return unseen(x.raw(noMessage))
		}
		return find(x, m)
	}
}

func ofConfirmation(find func(*examination, *message) finding) judge {
	return func(x *examination) finding {
		if x.seen.confirmation == nil {
			return unseen(x.raw(noConfirmation))
		}
		return find(x, x.seen.confirmation)
	}
}

func ofPayload(find func(*examination, map[string]any) finding) judge {
	return func(x *examination) finding {
		if x.seen.notification == nil {
			return unseen(x.raw(noNotification))
		}
		p := x.seen.notification.payload()
		if p == nil {
			return holds(false, "the message is no JSON object")
		}
		return find(x, p)
	}
}

func ofField(key string, find func(*examination, any) finding) judge {
	return ofPayload(func(x *examination, p map[string]any) finding {
		if p[key] == nil {
			return unseen("The alarm has no " + key)
		}
		return find(x, p[key])
	})
}
