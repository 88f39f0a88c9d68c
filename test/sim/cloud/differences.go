// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Odd holds ways in which the real cloud may differ from its manuals, and which nobody has checked yet. A zero value is
// what the manuals say, or what follows from them. The tag is the id of the assumption in docs/cloud-facts.md that a
// difference breaks.
type Odd struct {
	CertOnOtherHost      bool `breaks:"cert-host"`      // signing certificates are on a host that is not SMN's
	CertIsDER            bool `breaks:"cert-pem"`       // they are no PEM files
	ConfirmOnOtherHost   bool `breaks:"confirm-host"`   // confirmation links lead to a host that is not the console's
	ConfirmOnOtherPath   bool `breaks:"confirm-path"`   // they have another path, and do not name the topic
	ConfirmRedirects     bool `breaks:"confirm-answer"` // they are answered with a redirect to a login, and confirm nothing
	SignsOtherText       bool `breaks:"signed-text"`    // the last line of what is signed is not ended
	SignsSHA512          bool `breaks:"signature-algorithm"`
	MessageIDIsUUID      bool `breaks:"message-id"` // capitals and hyphens
	TimestampHasFraction bool `breaks:"timestamp-form"`
	TimestampIsLocal     bool `breaks:"timestamp-utc"` // the time of the region, two hours ahead of UTC, called Z
	NullFields           bool `breaks:"strings-only"`  // optional fields are there and null
	NoHeaders            bool `breaks:"smn-headers"`   // no X-SMN-… headers
	NeverSendsAgain      bool `breaks:"sends-again"`   // whatever the endpoint answers
	NewIDWhenSentAgain   bool `breaks:"sent-again-same"`
	NoPublishByCloudEye  bool `breaks:"cloud-eye-publishes"` // a topic lets Cloud Eye publish only with a policy
	TemplatePayload      bool `breaks:"payload-schema"`      // Huawei Cloud's schema of 2025
	StatusInCapitals     bool `breaks:"payload-status"`      // in the payload: ALARM, OK
	PayloadInSeconds     bool `breaks:"payload-time"`        // times in the payload
	PayloadNamesRecord   bool `breaks:"payload-rule"`        // the payload's alarm_id is that of the record, not of the rule
	DimensionIsList      bool `breaks:"payload-dimension"`   // in the payload
	PayloadIsFraction    bool `breaks:"payload-percent"`     // the payload's values are 0 to 1

	TopicExistsRefused     bool `breaks:"topic-exists"`        // creating a topic that exists is refused
	ConfirmsOnce           bool `breaks:"confirm-again"`       // Subscribe sends no confirmation again
	ConfirmedIsTwo         bool `breaks:"subscription-status"` // the status of a confirmed subscription is listed as 2
	StateInCapitals        bool `breaks:"rule-states"`         // of a rule, where it is listed
	UpdateTimeIsEvaluation bool `breaks:"rule-update-time"`    // the listed update_time is that of the last evaluation
	RawRulesSleep          bool `breaks:"rule-raw"`            // rules of raw data are accepted and never evaluated
	MetricsAreFractions    bool `breaks:"metric-percent"`      // percentages are 0 to 1, as SQL Server's manual prints some
	DatapointsAreLocal     bool `breaks:"datapoint-utc"`       // their timestamps are two hours ahead
	NoUsedSpace            bool `breaks:"metric-used-space"`   // rds048_disk_used_size has no data
	InstanceShowsStandby   bool `breaks:"instance-primary"`    // the data of an HA instance is that of its standby
}

// Differences returns functions that make the cloud differ from what is assumed of the real one. The key is the id of
// the assumption that a function breaks.
func Differences() map[string]func(*Settings) {
	all := map[string]func(*Settings){
		"rule-new":       func(s *Settings) { s.NewRule = StateInsufficientData },
		"rule-rewritten": func(s *Settings) { s.RewrittenRule = StateOK },
		"metric-delay":   func(s *Settings) { s.MetricDelay = time.Hour },
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		if id := field.Tag.Get("breaks"); id != "" {
			all[id] = func(s *Settings) { reflect.ValueOf(s).Elem().FieldByIndex(field.Index).SetBool(true) }
		}
	}
	return all
}

// localAhead is how far the region's own time is ahead of UTC in summer.
const localAhead = 2 * time.Hour

// nullFields adds the missing optional fields of a message as null.
func nullFields(body []byte) []byte {
	out := fields{"subject": nil, "subscribe_url": nil, "unsubscribe_url": nil}
	_ = json.Unmarshal(body, &out) // never fails, because the caller has encoded the body
	body, _ = json.Marshal(out)
	return body
}

// oddPayload returns the payload of an alarm with the differences. It may modify the message.
func (o Odd) oddPayload(m fields) fields {
	if o.TemplatePayload {
		return fields{"version": "v1", "data": m["template_variable"]}
	}
	if o.StatusInCapitals {
		m["alarm_status"] = strings.ToUpper(string(m["alarm_status"].(RuleState)))
	}
	if o.PayloadInSeconds {
		m["time"] = m["time"].(int64) / 1000
	}
	if o.PayloadNamesRecord {
		m["alarm_id"] = "ah" + strings.TrimPrefix(m["alarm_id"].(string), "al")
	}
	if name, value, _ := strings.Cut(m["dimension"].(string), ":"); o.DimensionIsList {
		m["dimension"] = []Dimension{{name, value}}
	}
	if o.PayloadIsFraction {
		values := slices.Clone(m["alarmValue"].([]alarmValue))
		for i := range values {
			values[i].Value /= 100
		}
		m["alarmValue"] = values
	}
	return m
}
