// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// finding is what a run has observed about an assumption.
type finding struct {
	seen, holds bool
	text        string
}

// judge reads a finding from a finished examination.
type judge func(*examination) finding

func holds(is bool, text string) finding { return finding{true, is, text} }

func unseen(why string) finding { return finding{text: why} }

// Harmless reports whether the service works although the assumption is wrong.
func (a Assumption) Harmless() bool { return strings.HasPrefix(a.IfWrong, "Nothing") }

// judge returns the result line of an assumption.
func (x *examination) judge(a Assumption) Result {
	find := facts()[a.ID]
	if find == nil {
		return Result{Check: a.ID, State: Unseen, Text: "Not testable without harm to a database or hundreds of rules: " +
			a.Assumed}
	}
	f := find(x)
	if !f.seen {
		return Result{Check: a.ID, State: Unseen, Text: f.text}
	}
	text := a.Assumed
	if f.text != "" {
		text += ". Seen: " + f.text
	}
	switch {
	case f.holds:
		return Result{Check: a.ID, State: OK, Text: "It holds: " + text}
	case a.Harmless():
		return Result{Check: a.ID, State: Differs, Text: "It does not hold: " + text, Do: a.IfWrong}
	}
	return Result{Check: a.ID, State: Failed, Text: "It does not hold: " + text, Do: a.IfWrong}
}

const (
	noMessage      = "No message arrived"
	onlyListen     = "Doctor sees the messages themselves only with --listen"
	noNotification = "No alarm arrived"
	noConfirmation = "No confirmation arrived"
	noRule         = "No rule was created"
	noData         = "No data was read"
)

var (
	messageIDForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
	timestampForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)
)

// facts returns the judge of each assumption by its ID. An assumption without one is not testable.
func facts() map[string]judge {
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
		"topic-exists": func(x *examination) finding {
			switch {
			case x.topicURN == "":
				return unseen("No topic was created")
			case x.seen.topicAgain != nil:
				return holds(false, x.seen.topicAgain.Error())
			}
			return holds(true, "")
		},
		"subscription-exists": func(x *examination) finding {
			if !x.seen.subscribedTwice {
				return unseen("No subscription was created")
			}
			return holds(x.seen.existsCode == "", x.seen.existsCode)
		},
		"subscription-status": func(x *examination) finding {
			if x.seen.subscription == nil || x.confirmation() == nil ||
				x.seen.subscription.Status == otc.SubscriptionUnconfirmed {
				return unseen("No subscription was confirmed")
			}
			return holds(x.seen.subscription.Status == otc.SubscriptionConfirmed, fmt.Sprint(x.seen.subscription.Status))
		},
		"listed-as-sent": func(x *examination) finding {
			if x.seen.subscription == nil && x.seen.ruleNew == nil {
				return unseen("Nothing was listed")
			}
			var differ []string
			if s := x.seen.subscription; s != nil && s.Endpoint != x.PublicURL.String() {
				differ = append(differ, "the endpoint is "+s.Endpoint)
			}
			if r := x.seen.ruleNew; r != nil {
				listed := *r
				listed.State, listed.UpdateTime = "", time.Time{}
				if was, is := fmt.Sprintf("%+v", x.made), fmt.Sprintf("%+v", listed); was != is {
					differ = append(differ, fmt.Sprintf("the rule is %s, and was %s", is, was))
				}
			}
			return holds(len(differ) == 0, strings.Join(differ, "; "))
		},
		"rule-new": func(x *examination) finding { return ruleIs(x.seen.ruleNew, v1alpha1.StateOK) },
		"rule-rewritten": func(x *examination) finding {
			return ruleIs(x.seen.ruleRewritten, v1alpha1.StateAlarm)
		},
		"rule-states": func(x *examination) finding {
			if x.seen.ruleNew == nil {
				return unseen(noRule)
			}
			return holds(slices.Contains([]string{"ok", "alarm", "insufficient_data"}, x.seen.ruleNew.State),
				show(x.seen.ruleNew.State))
		},
		"rule-update-time": func(x *examination) finding {
			if x.seen.ruleLater == nil {
				return unseen(noRule)
			}
			before, later := x.seen.ruleAlarm.UpdateTime, x.seen.ruleLater.UpdateTime
			return holds(later.Equal(before), fmt.Sprintf("%s, and %s later", before.Format(time.RFC3339), later.Sub(before)))
		},
		"rule-raw": func(x *examination) finding {
			if x.seen.waited == 0 || x.seen.ruleAlarm == nil && x.data.util.Time.IsZero() {
				return unseen("No rule was created, or its metric has no data")
			}
			return holds(x.seen.ruleAlarm != nil, "in alarm after "+x.seen.waited.Truncate(time.Second).String())
		},
		"metric-percent": ofStorage(func(x *examination, p otc.Datapoint) finding { return x.comparePercent(p.Average) }),
		"metric-delay": ofStorage(func(x *examination, p otc.Datapoint) finding {
			late := x.data.read.Sub(p.Time)
			return holds(late <= 12*time.Minute, fmt.Sprintf("the newest value is %s old", late.Truncate(time.Second)))
		}),
		"metric-used-space": func(x *examination) finding {
			if x.data.util.Time.IsZero() && x.data.used.Time.IsZero() {
				return unseen(noData)
			}
			return holds(!x.data.used.Time.IsZero(), fmt.Sprintf("%.1f GB", x.data.used.Average))
		},
		"datapoint-utc": ofStorage(func(x *examination, p otc.Datapoint) finding {
			return holds(p.Time.Sub(x.data.read) < 2*time.Minute, fmt.Sprintf("the newest value is of %s, read at %s",
				p.Time.Format(time.RFC3339), x.data.read.UTC().Format(time.RFC3339)))
		}),
		"instance-dimension": func(x *examination) finding {
			if !x.data.ofInstance && !x.data.ofNode {
				return unseen("Cloud Eye lists no data of the database")
			}
			return holds(x.data.ofInstance, x.data.dimension)
		},
		"instance-primary": func(x *examination) finding {
			d := x.data
			switch {
			case d.cpu.Time.IsZero() || d.primary.Time.IsZero() || d.standby.Time.IsZero():
				return unseen("Cloud Eye has no data of an HA instance and both its nodes")
			case math.Abs(d.primary.Average-d.standby.Average) < 1:
				return unseen("Both nodes have the same load at present")
			}
			return holds(math.Abs(d.cpu.Average-d.primary.Average) < math.Abs(d.cpu.Average-d.standby.Average), fmt.Sprintf(
				"CPU %.1f of the instance, %.1f of the primary, %.1f of the standby", d.cpu.Average, d.primary.Average,
				d.standby.Average))
		},
		"catalogue-cloud-eye": func(x *examination) finding {
			if x.api == nil {
				return unseen("The login failed")
			}
			_, how := x.api.Endpoint("ces")
			return holds(how != otc.Derived, how)
		},
		"resize-list": func(x *examination) finding {
			if !x.data.resizeKnown {
				return unseen("No database was examined")
			}
			return holds(x.data.resized, "")
		},
	}
}

// comparePercent reports whether a value of the storage metric is in percent. It compares the value with the used
// space. Without the used space, a value up to 1 may be either percent or a fraction of 1.
func (x *examination) comparePercent(value float64) finding {
	truth, known := x.data.percent()
	switch {
	case known && math.Abs(value-truth) <= 5:
		return holds(true, fmt.Sprintf("%.1f, where %.1f %% are used", value, truth))
	case known:
		return holds(false, fmt.Sprintf("%v, where %.1f %% are used", value, truth))
	case value > 1 && value <= 100:
		return holds(true, fmt.Sprintf("%.1f", value))
	}
	return unseen("Without the used space, the value may be percent or a fraction of 1")
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

// ofStorage judges the newest value of the storage metric.
func ofStorage(find func(*examination, otc.Datapoint) finding) judge {
	return func(x *examination) finding {
		if x.data.util.Time.IsZero() {
			return unseen(noData)
		}
		return find(x, x.data.util)
	}
}

func ruleIs(r *otc.Rule, want v1alpha1.State) finding {
	if r == nil {
		return unseen(noRule)
	}
	return holds(strings.EqualFold(r.State, string(want)), r.State)
}

// show returns a value as JSON, cut after 120 characters.
func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(text[:min(len(text), 120)])
}
