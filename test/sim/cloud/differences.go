// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Odd are ways in which the real cloud may differ from its manuals, where nobody has looked yet. Their zero values are what
// the manuals say or what is inferred from them.
type Odd struct {
	CertOnOtherHost      bool // signing certificates are on a host that is not SMN's
	CertIsDER            bool // they are no PEM files
	ConfirmOnOtherHost   bool // confirmation links lead to a host that is not the console's
	ConfirmOnOtherPath   bool // they have another path, and do not name the topic
	ConfirmRedirects     bool // they are answered with a redirect to a login, and confirm nothing
	SignsOtherText       bool // the last line of what is signed is not ended
	SignsSHA512          bool
	MessageIDIsUUID      bool // capitals and hyphens
	TimestampHasFraction bool
	TimestampIsLocal     bool // the time of the region, two hours ahead of UTC, called Z
	NullFields           bool // optional fields are there and null
	NoHeaders            bool // no X-SMN-… headers
	NeverSendsAgain      bool // whatever the endpoint answers
	NewIDWhenSentAgain   bool
	NoPublishByCloudEye  bool // a topic lets Cloud Eye publish only with a policy
	TemplatePayload      bool // Huawei Cloud's schema of 2025
	StatusInCapitals     bool // in the payload: ALARM, OK
	PayloadInSeconds     bool // times in the payload
	PayloadNamesRecord   bool // the payload's alarm_id is that of the record, not of the rule
	DimensionIsList      bool // in the payload
	PayloadIsFraction    bool // the payload's values are 0 to 1

	TopicExistsRefused     bool // creating a topic that exists is refused
	ConfirmsOnce           bool // Subscribe sends no confirmation again
	ConfirmedIsTwo         bool // the status of a confirmed subscription is listed as 2
	StateInCapitals        bool // of a rule, where it is listed
	UpdateTimeIsEvaluation bool // the listed update_time is that of the last evaluation
	RawRulesSleep          bool // rules of raw data are accepted and never evaluated
	MetricsAreFractions    bool // percentages are 0 to 1, as SQL Server's manual prints some
	DatapointsAreLocal     bool // their timestamps are two hours ahead
	NoUsedSpace            bool // rds048_disk_used_size has no data
	InstanceShowsStandby   bool // the data of an HA instance is that of its standby
}

// Differences are the ways in which the cloud can be made to differ from what is assumed of the real one, each by the id of the
// assumption that it breaks.
func Differences() map[string]func(*Settings) {
	return map[string]func(*Settings){
		"cert-host":           func(s *Settings) { s.CertOnOtherHost = true },
		"cert-pem":            func(s *Settings) { s.CertIsDER = true },
		"confirm-host":        func(s *Settings) { s.ConfirmOnOtherHost = true },
		"confirm-path":        func(s *Settings) { s.ConfirmOnOtherPath = true },
		"confirm-answer":      func(s *Settings) { s.ConfirmRedirects = true },
		"confirm-again":       func(s *Settings) { s.ConfirmsOnce = true },
		"signed-text":         func(s *Settings) { s.SignsOtherText = true },
		"signature-algorithm": func(s *Settings) { s.SignsSHA512 = true },
		"message-id":          func(s *Settings) { s.MessageIDIsUUID = true },
		"timestamp-form":      func(s *Settings) { s.TimestampHasFraction = true },
		"timestamp-utc":       func(s *Settings) { s.TimestampIsLocal = true },
		"strings-only":        func(s *Settings) { s.NullFields = true },
		"smn-headers":         func(s *Settings) { s.NoHeaders = true },
		"sends-again":         func(s *Settings) { s.NeverSendsAgain = true },
		"sent-again-same":     func(s *Settings) { s.NewIDWhenSentAgain = true },
		"cloud-eye-publishes": func(s *Settings) { s.NoPublishByCloudEye = true },
		"payload-schema":      func(s *Settings) { s.TemplatePayload = true },
		"payload-status":      func(s *Settings) { s.StatusInCapitals = true },
		"payload-time":        func(s *Settings) { s.PayloadInSeconds = true },
		"payload-rule":        func(s *Settings) { s.PayloadNamesRecord = true },
		"payload-dimension":   func(s *Settings) { s.DimensionIsList = true },
		"payload-percent":     func(s *Settings) { s.PayloadIsFraction = true },
		"topic-exists":        func(s *Settings) { s.TopicExistsRefused = true },
		"subscription-exists": func(s *Settings) { s.ExistsAsCode = true },
		"subscription-status": func(s *Settings) { s.ConfirmedIsTwo = true },
		"listed-as-sent":      func(s *Settings) { s.Normalizes = true },
		"rule-new":            func(s *Settings) { s.NewRule = StateInsufficientData },
		"rule-rewritten":      func(s *Settings) { s.RewrittenRule = StateOK },
		"rule-states":         func(s *Settings) { s.StateInCapitals = true },
		"rule-update-time":    func(s *Settings) { s.UpdateTimeIsEvaluation = true },
		"rule-pages":          func(s *Settings) { s.StartInclusive = true },
		"rule-raw":            func(s *Settings) { s.RawRulesSleep = true },
		"metric-percent":      func(s *Settings) { s.MetricsAreFractions = true },
		"metric-delay":        func(s *Settings) { s.MetricDelay = time.Hour },
		"metric-used-space":   func(s *Settings) { s.NoUsedSpace = true },
		"datapoint-utc":       func(s *Settings) { s.DatapointsAreLocal = true },
		"instance-dimension":  func(s *Settings) { s.NoInstanceLevelData = true },
		"instance-primary":    func(s *Settings) { s.InstanceShowsStandby = true },
		"catalogue-cloud-eye": func(s *Settings) { s.NoCESInCatalog = true },
		"storage-full-listed": func(s *Settings) { s.HideStorageFull = true },
		"resize-list":         func(s *Settings) { s.NoResizeList = true },
		"enlarge-when-full":   func(s *Settings) { s.RefuseEnlargeWhenFull = true },
	}
}

// localAhead is how far the region's own time is ahead of UTC in summer.
const localAhead = 2 * time.Hour

// uuid is an id of 32 hex digits in another form.
func uuid(id string) string {
	id = strings.ToUpper(id)
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}

// nullFields adds the optional fields of a message that it has not, as null.
func nullFields(body []byte) []byte {
	var missing []string
	for _, key := range []string{"subject", "subscribe_url", "unsubscribe_url"} {
		if !strings.Contains(string(body), `"`+key+`"`) {
			missing = append(missing, `"`+key+`":null`)
		}
	}
	if len(missing) == 0 {
		return body
	}
	return slices.Concat([]byte("{"+strings.Join(missing, ",")+","), body[1:])
}

// oddPayload is an alarm as it is published.
func (o Odd) oddPayload(m alarmMessage) any {
	if o.TemplatePayload {
		return fields{"version": "v1", "data": m.Template}
	}
	if !o.StatusInCapitals && !o.PayloadInSeconds && !o.PayloadNamesRecord && !o.DimensionIsList && !o.PayloadIsFraction {
		return m
	}
	var out fields
	encoded, _ := json.Marshal(m)     // as it was marshalled before
	_ = json.Unmarshal(encoded, &out) // what was just encoded
	if o.StatusInCapitals {
		out["alarm_status"] = strings.ToUpper(string(m.AlarmStatus))
	}
	if o.PayloadInSeconds {
		out["time"] = m.Time / 1000
	}
	if o.PayloadNamesRecord {
		out["alarm_id"] = "ah" + strings.TrimPrefix(m.AlarmID, "al")
	}
	if name, value, _ := strings.Cut(m.Dimension, ":"); o.DimensionIsList {
		out["dimension"] = []Dimension{{name, value}}
	}
	if o.PayloadIsFraction {
		values := slices.Clone(m.AlarmValue)
		for i := range values {
			values[i].Value /= 100
		}
		out["alarmValue"] = values
	}
	return out
}
