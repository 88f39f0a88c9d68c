// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/internal/app"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// finding is what was seen of an assumption.
type finding struct {
	seen, holds bool
	text        string
}

func holds(is bool, format string, args ...any) finding {
	return finding{true, is, fmt.Sprintf(format, args...)}
}

func unseen(why string) finding { return finding{text: why} }

// Harmless reports whether the service meets it all the same.
func (a Assumption) Harmless() bool { return strings.HasPrefix(a.IfWrong, "Nothing") }

// judge says whether an assumption holds.
func (x *examination) judge(a Assumption) Result {
	look := facts()[a.ID]
	if look == nil {
		return Result{Check: a.ID, State: Unseen, Text: "It cannot be seen without harm to a database, or without hundreds of rules: " + a.Assumed}
	}
	switch f := look(x); {
	case !f.seen:
		return Result{Check: a.ID, State: Unseen, Text: f.text}
	case f.holds:
		return Result{Check: a.ID, State: OK, Text: strings.TrimSuffix("It holds: "+a.Assumed+". Seen: "+f.text, ". Seen: ")}
	case a.Harmless():
		return Result{Check: a.ID, State: Differs, Text: fmt.Sprintf("It does not hold: %s. Seen: %s", a.Assumed, f.text), Do: a.IfWrong}
	default:
		return Result{Check: a.ID, State: Failed, Text: fmt.Sprintf("It does not hold: %s. Seen: %s", a.Assumed, f.text), Do: a.IfWrong}
	}
}

const (
	noMessage      = "No message came"
	noNotification = "No alarm came"
	noConfirmation = "No confirmation came"
	noRule         = "No rule was made"
	noData         = "No data was read"
)

// facts are how each assumption is seen. Those that are missing cannot be.
func facts() map[string]func(*examination) finding {
	return map[string]func(*examination) finding{
		"cert-host": ofAny(func(x *examination, m *message) finding {
			u := m.link("signing_cert_url")
			if u == nil {
				return holds(false, "signing_cert_url is %q", m.text("signing_cert_url"))
			}
			return holds(slices.Contains(app.CertHosts(x.Options.Options, x.api)(), u.Host), "%s", u.Host)
		}),
		"cert-pem": ofAny(func(_ *examination, m *message) finding {
			if !m.authentic() && !m.lacksCertificate() {
				return unseen("The certificate was not fetched: " + m.Error)
			}
			if m.lacksCertificate() {
				return holds(false, "%s", m.Error)
			}
			return holds(true, "")
		}),
		"signed-text":         ofAny(func(_ *examination, m *message) finding { return signed(m, "line feed") }),
		"signature-algorithm": ofAny(func(_ *examination, m *message) finding { return signed(m, "signed with SHA") }),
		"confirm-host": ofConfirmation(func(x *examination, m *message) finding {
			u := m.link("subscribe_url")
			if u == nil {
				return holds(false, "subscribe_url is %q", m.text("subscribe_url"))
			}
			hosts, err := app.ConfirmHosts(x.Options.Options, x.api.Region())
			return holds(err == nil && slices.Contains(hosts, u.Host), "%s", u.Host)
		}),
		"confirm-path": ofConfirmation(func(_ *examination, m *message) finding {
			u := m.link("subscribe_url")
			if u == nil {
				return unseen("There is no link")
			}
			return holds(u.Path == "/smn/subscription/confirm" && u.Query().Get("topic_urn") != "", "%s", u.Path)
		}),
		"confirm-answer": ofConfirmation(func(_ *examination, m *message) finding {
			switch m.Result {
			case "confirmed":
				return holds(true, "")
			case "unconfirmed":
				return holds(false, "%s", m.Error)
			}
			return unseen("The link was not called: " + m.Error)
		}),
		"confirm-again": func(x *examination) finding {
			if x.seen.again == nil || x.seen.confirmation == nil {
				return unseen(noConfirmation)
			}
			return holds(*x.seen.again, "")
		},
		"message-id": ofAny(func(_ *examination, m *message) finding {
			return holds(regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(m.text("message_id")), "%s", m.text("message_id"))
		}),
		"timestamp-form": ofAny(func(_ *examination, m *message) finding {
			return holds(regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`).MatchString(m.text("timestamp")), "%s", m.text("timestamp"))
		}),
		"timestamp-utc": ofAny(func(_ *examination, m *message) finding {
			sent, err := time.Parse(time.RFC3339, m.text("timestamp"))
			if err != nil {
				return holds(false, "%s", m.text("timestamp"))
			}
			return holds(m.ReceivedTime.Sub(sent).Abs() < 20*time.Minute, "signed %s, received %s", m.text("timestamp"), m.ReceivedTime.UTC().Format(time.RFC3339))
		}),
		"strings-only": ofAny(func(_ *examination, m *message) finding {
			var odd []string
			for key, value := range m.fields {
				if _, is := value.(string); !is {
					odd = append(odd, key)
				}
			}
			slices.Sort(odd)
			return holds(len(odd) == 0, "%s", strings.Join(odd, ", "))
		}),
		"smn-headers": ofAny(func(_ *examination, m *message) finding {
			named := slices.DeleteFunc(slices.Clone(m.Headers), func(h string) bool { return strings.Contains(h, ":") })
			return holds(slices.Equal(named, []string{"X-Smn-Message-Id", "X-Smn-Message-Type", "X-Smn-Topic-Urn"}), "%s", strings.Join(named, ", "))
		}),
		"sends-again": func(x *examination) finding {
			if x.seen.repeated == nil {
				return unseen(noNotification)
			}
			return holds(*x.seen.repeated, "")
		},
		"sent-again-same": func(x *examination) finding {
			if x.seen.repeated == nil || !*x.seen.repeated {
				return unseen("Nothing was sent again")
			}
			first, second := x.seen.notification, x.seen.second
			return holds(first.text("message_id") == second.text("message_id"), "%s, then %s", first.text("message_id"), second.text("message_id"))
		},
		"cloud-eye-publishes": func(x *examination) finding {
			c := x.seen.confirmation
			switch {
			case x.seen.notification != nil:
				return holds(true, "")
			case x.seen.ruleAlarm == nil || c == nil || c.Result != "confirmed":
				return unseen("No alarm, or no confirmed subscription")
			}
			return holds(false, "the rule is in alarm, and no message came")
		},
		"payload-schema": ofPayload(func(_ *examination, p map[string]any) finding {
			_, id := p["alarm_id"]
			_, status := p["alarm_status"]
			if id && status {
				return holds(true, "")
			}
			return holds(false, "%s", shape(p))
		}),
		"payload-status": ofPayload(func(_ *examination, p map[string]any) finding {
			s, is := p["alarm_status"].(string)
			if !is {
				return unseen("There is no alarm_status")
			}
			return holds(s == "alarm", "%q", s)
		}),
		"payload-time": ofPayload(func(_ *examination, p map[string]any) finding {
			t, is := p["time"].(float64)
			if _, there := p["time"]; !there {
				return unseen("There is no time")
			}
			return holds(is && t > 1e11, "%v", show(p["time"]))
		}),
		"payload-rule": ofPayload(func(x *examination, p map[string]any) finding {
			if p["alarm_id"] == nil {
				return unseen("There is no alarm_id")
			}
			return holds(p["alarm_id"] == x.made.ID, "%v for the rule %s", p["alarm_id"], x.made.ID)
		}),
		"payload-dimension": ofPayload(func(_ *examination, p map[string]any) finding {
			if p["dimension"] == nil {
				return unseen("There is no dimension")
			}
			s, is := p["dimension"].(string)
			return holds(is && strings.Contains(s, ":"), "%s", show(p["dimension"]))
		}),
		"payload-percent": ofPayload(func(x *examination, p map[string]any) finding {
			points, _ := p["alarmValue"].([]any)
			if len(points) == 0 {
				return unseen("There is no alarmValue")
			}
			point, _ := points[len(points)-1].(map[string]any)
			value, _ := point["value"].(float64)
			return x.comparePercent(value)
		}),
		"topic-exists": func(x *examination) finding {
			if x.topicURN == "" {
				return unseen("No topic was made")
			}
			return holds(x.seen.topicAgain == nil, "%s", errorText(x.seen.topicAgain))
		},
		"subscription-exists": func(x *examination) finding {
			if !x.seen.subscribedTwice {
				return unseen("Nothing was subscribed")
			}
			return holds(x.seen.existsCode == "", "%s", x.seen.existsCode)
		},
		"subscription-status": func(x *examination) finding {
			c := x.seen.confirmation
			if x.seen.subscription == nil || c == nil || c.Result != "confirmed" {
				return unseen("No subscription was confirmed")
			}
			return holds(x.seen.subscription.Status == otc.SubscriptionConfirmed, "%d", x.seen.subscription.Status)
		},
		"listed-as-sent": func(x *examination) finding {
			var differ []string
			if s := x.seen.subscription; s != nil && s.Endpoint != x.PublicURL.String() {
				differ = append(differ, fmt.Sprintf("the endpoint is %s", s.Endpoint))
			}
			if r := x.seen.ruleNew; r != nil {
				sent, shown := x.made, *r
				shown.State, shown.UpdateTime = "", time.Time{}
				if a, b := fmt.Sprintf("%+v", sent), fmt.Sprintf("%+v", shown); a != b {
					differ = append(differ, fmt.Sprintf("the rule is %s, and was %s", b, a))
				}
			}
			if x.seen.subscription == nil && x.seen.ruleNew == nil {
				return unseen("Nothing was listed")
			}
			return holds(len(differ) == 0, "%s", strings.Join(differ, "; "))
		},
		"rule-new": ofRule(func(x *examination) *otc.Rule { return x.seen.ruleNew }, func(_ *examination, r *otc.Rule) finding {
			return holds(strings.EqualFold(r.State, string(v1alpha1.StateOK)), "%s", r.State)
		}),
		"rule-rewritten": ofRule(func(x *examination) *otc.Rule { return x.seen.ruleRewritten }, func(_ *examination, r *otc.Rule) finding {
			return holds(strings.EqualFold(r.State, string(v1alpha1.StateAlarm)), "%s", r.State)
		}),
		"rule-states": ofRule(func(x *examination) *otc.Rule { return x.seen.ruleNew }, func(_ *examination, r *otc.Rule) finding {
			return holds(slices.Contains([]string{"ok", "alarm", "insufficient_data"}, r.State), "%q", r.State)
		}),
		"rule-update-time": ofRule(func(x *examination) *otc.Rule { return x.seen.ruleLater }, func(x *examination, r *otc.Rule) finding {
			return holds(r.UpdateTime.Equal(x.seen.ruleAlarm.UpdateTime), "%s, and %s later", x.seen.ruleAlarm.UpdateTime.Format(time.RFC3339), r.UpdateTime.Sub(x.seen.ruleAlarm.UpdateTime))
		}),
		"rule-raw": func(x *examination) finding {
			if x.seen.waited == 0 || x.seen.ruleAlarm == nil && x.data.util.Time.IsZero() {
				return unseen("No rule was made, or its metric has no data")
			}
			return holds(x.seen.ruleAlarm != nil, "in alarm after %s", x.seen.waited.Truncate(time.Second))
		},
		"metric-percent": func(x *examination) finding {
			if x.data.util.Time.IsZero() {
				return unseen(noData)
			}
			return x.comparePercent(x.data.util.Average)
		},
		"metric-delay": func(x *examination) finding {
			if x.data.util.Time.IsZero() {
				return unseen(noData)
			}
			late := x.data.read.Sub(x.data.util.Time)
			return holds(late <= 12*time.Minute, "the newest value is %s old", late.Truncate(time.Second))
		},
		"metric-used-space": func(x *examination) finding {
			if x.data.util.Time.IsZero() && x.data.used.Time.IsZero() {
				return unseen(noData)
			}
			return holds(!x.data.used.Time.IsZero(), "%.1f GB", x.data.used.Average)
		},
		"datapoint-utc": func(x *examination) finding {
			if x.data.util.Time.IsZero() {
				return unseen(noData)
			}
			ahead := x.data.util.Time.Sub(x.data.read)
			return holds(ahead < 2*time.Minute, "the newest value is of %s, read at %s", x.data.util.Time.Format(time.RFC3339), x.data.read.UTC().Format(time.RFC3339))
		},
		"instance-dimension": func(x *examination) finding {
			if !x.data.ofInstance && !x.data.ofNode {
				return unseen("Cloud Eye lists no data of the database")
			}
			return holds(x.data.ofInstance, "%s", x.data.dimension)
		},
		"instance-primary": func(x *examination) finding {
			d := x.data
			switch {
			case d.cpu.Time.IsZero() || d.primary.Time.IsZero() || d.standby.Time.IsZero():
				return unseen("There is no data of the instance and of both nodes of an HA instance")
			case math.Abs(d.primary.Average-d.standby.Average) < 1:
				return unseen("Both nodes have the same load just now")
			}
			return holds(math.Abs(d.cpu.Average-d.primary.Average) < math.Abs(d.cpu.Average-d.standby.Average),
				"CPU %.1f of the instance, %.1f of the primary, %.1f of the standby", d.cpu.Average, d.primary.Average, d.standby.Average)
		},
		"catalogue-cloud-eye": func(x *examination) finding {
			if x.api == nil {
				return unseen("The cloud did not let us in")
			}
			_, how := x.api.Endpoint("ces")
			return holds(how != otc.Derived, "%s", how)
		},
		"resize-list": func(x *examination) finding {
			if !x.data.resizeKnown {
				return unseen("No database was looked at")
			}
			return holds(x.data.resized, "")
		},
	}
}

// comparePercent says whether a value of the storage metric is percent, by the used space.
func (x *examination) comparePercent(value float64) finding {
	truth, known := x.data.percent()
	switch {
	case known && math.Abs(value-truth) <= 5:
		return holds(true, "%.1f, where %.1f %% are used", value, truth)
	case known:
		return holds(false, "%v, where %.1f %% are used", value, truth)
	case value > 1 && value <= 100:
		return holds(true, "%.1f", value)
	}
	return unseen("Without the used space, it cannot be told from a fraction")
}

func signed(m *message, by string) finding {
	switch {
	case m.authentic():
		return holds(true, "")
	case strings.Contains(m.Error, "it is signed with") || strings.Contains(m.Error, "it is signed without"):
		_, how, _ := strings.Cut(m.Error, "it is ")
		return holds(!strings.Contains(m.Error, by), "%s", how)
	}
	return unseen("The signature was not verified: " + m.Error)
}

// ofAny looks at a notification or, where none came, a confirmation.
func ofAny(look func(*examination, *message) finding) func(*examination) finding {
	return func(x *examination) finding {
		m := x.seen.notification
		if m == nil {
			m = x.seen.confirmation
		}
		if m == nil && len(x.seen.messages) > 0 {
			m = x.seen.messages[0]
		}
		if m == nil {
			return unseen(noMessage)
		}
		return look(x, m)
	}
}

func ofConfirmation(look func(*examination, *message) finding) func(*examination) finding {
	return func(x *examination) finding {
		if x.seen.confirmation == nil {
			return unseen(noConfirmation)
		}
		return look(x, x.seen.confirmation)
	}
}

func ofPayload(look func(*examination, map[string]any) finding) func(*examination) finding {
	return func(x *examination) finding {
		if x.seen.notification == nil {
			return unseen(noNotification)
		}
		p := x.seen.notification.payload()
		if p == nil {
			return holds(false, "the message is no JSON object")
		}
		return look(x, p)
	}
}

func ofRule(which func(*examination) *otc.Rule, look func(*examination, *otc.Rule) finding) func(*examination) finding {
	return func(x *examination) finding {
		r := which(x)
		if r == nil {
			return unseen(noRule)
		}
		return look(x, r)
	}
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(text[:min(len(text), 120)])
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
