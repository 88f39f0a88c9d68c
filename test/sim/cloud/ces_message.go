// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// alarmMessage is the classic format of Cloud Eye, in the order of the one captured message of Open Telekom Cloud.
type alarmMessage struct {
	MessageType        string       `json:"message_type"`
	AlarmID            string       `json:"alarm_id"`
	AlarmName          string       `json:"alarm_name"`
	AlarmStatus        RuleState    `json:"alarm_status"`
	Time               int64        `json:"time"`
	Namespace          string       `json:"namespace"`
	MetricName         string       `json:"metric_name"`
	Dimension          string       `json:"dimension"`
	Period             int          `json:"period"`
	Filter             string       `json:"filter"`
	ComparisonOperator string       `json:"comparison_operator"`
	Value              float64      `json:"value"`
	Unit               string       `json:"unit"`
	Count              int          `json:"count"`
	AlarmValue         []alarmValue `json:"alarmValue"`
	SMSContent         string       `json:"sms_content"`
	Template           template     `json:"template_variable"`
}

type alarmValue struct {
	Time  int64   `json:"time"`
	Value float64 `json:"value"`
}

type template struct {
	AccountName, Namespace, DimensionName, ResourceName, MetricName string
	IsAlarm, IsCycleTrigger                                         bool
	AlarmLevel, Region, ResourceId, AlarmRule, CurrentData          string //nolint:revive // the cloud's spelling
	AlarmTime                                                       string
	DataPoint                                                       map[string]string
	DataPointTime                                                   []string
	AlarmRuleName, AlarmId, AlarmDesc, MonitoringRange              string //nolint:revive // the cloud's spelling
	IsOriginalValue                                                 bool
	Period, Filter, ComparisonOperator, Value, Unit                 string
	Count                                                           int
	EventContent                                                    string
	IsIEC                                                           bool
}

// notify sends the rule's state to its topics.
func (c *Cloud) notify(r *rule, s *series, points []point, k int64, repeat bool) {
	if r.State == StateAlarm {
		r.notified = k
	}
	if !r.ActionEnabled || c.settings.NoPublishByCloudEye {
		return
	}
	actions := r.AlarmActions
	if r.State == StateOK {
		actions = r.OKActions
	}
	values := make([]alarmValue, 0, len(points))
	for _, p := range points {
		values = append(values, alarmValue{c.tickTime(p.tick).UnixMilli(), p.value})
	}
	at := c.tickTime(k)
	subject, text := c.alarmText(&r.Rule, s.info(), r.State, values, at, repeat)
	for _, a := range actions {
		if a.Type != "notification" {
			continue
		}
		for _, urn := range a.NotificationList {
			c.publish(urn, subject, text, c.opts.Now())
		}
	}
}

// shown is what a message calls a series by.
type shown struct{ metric, unit, engine, resource string }

func (s *series) info() shown {
	return shown{s.title, s.unit, s.in.Engine, s.resource}
}

// AlarmMessage is the subject and message that Cloud Eye would publish for a rule with that state, value and datapoint time, as
// if evaluated at that time, whatever the rule's state is. With Sign it makes envelopes that come late or never happened.
func (c *Cloud) AlarmMessage(ruleID string, state RuleState, value float64, datapoint, at time.Time) (subject, text string, err error) {
	c.lock()
	defer c.mu.Unlock()
	r := c.rule(ruleID)
	if r == nil {
		return "", "", fmt.Errorf("compose message of rule %s: %w", ruleID, errors.New("no such rule"))
	}
	info := shown{metric: r.Metric.MetricName, unit: "%", engine: "MySQL", resource: "unknown"}
	if s := c.find(r.Metric); s != nil {
		info = s.info()
	}
	subject, text = c.alarmText(&r.Rule, info, state, []alarmValue{{datapoint.UnixMilli(), value}}, at, false)
	return subject, text, nil
}

// SignedAlarm is the body that SMN would post if the rule raised its alarm now, by the datapoint before.
func (c *Cloud) SignedAlarm(messageID, topicURN, ruleID string, value float64) ([]byte, error) {
	at := c.opts.Now()
	_, text, err := c.AlarmMessage(ruleID, StateAlarm, value, at.Add(-c.raw), at)
	if err != nil {
		return nil, err
	}
	return c.Sign(Envelope{MessageID: messageID, TopicURN: topicURN, Message: text}).JSON(), nil
}

func (c *Cloud) alarmText(r *Rule, info shown, state RuleState, values []alarmValue, at time.Time, repeat bool) (subject, text string) {
	const clock = "01 02, 2006 15:04:05 GMT-07:00"
	cond, dim := r.Condition, r.Metric.Dimensions[0]
	level := []string{"Critical", "Major", "Minor", "Informational"}[r.Level-1]
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + info.unit }
	period, filter, filterWord := fmt.Sprintf("%d minutes", cond.Period/60), cond.Filter, "Avg."
	if cond.Filter != "average" {
		filterWord = cond.Filter
	}
	if cond.Period == 1 {
		period, filter, filterWord = "1 minute", "Raw data", "Raw data"
	}
	what := fmt.Sprintf("The %s of Relational Database Service-%s Instances %q", info.metric, info.engine, info.resource)
	when := at.UTC().Format(clock)
	sms := fmt.Sprintf("[%s][%s Alarm]Dear customer: %s (ID: %s) %s %s %s for %d consecutive periods of %s, at %s triggered an alarm, "+
		"You can log in to the Cloud Eye console to view details.",
		c.opts.Region, level, what, dim.Value, filterWord, cond.ComparisonOperator, number(cond.Value), cond.Count, period, when)
	subject = fmt.Sprintf("[%s Alarm]From Cloud Eye: %s has triggered an alarm.", level, what)
	if state == StateOK {
		sms = fmt.Sprintf("[%s][%s Ok]Dear customer: %s (ID: %s), at %s changed to OK from Alarm, "+
			"You can log in to the Cloud Eye console to view details.", c.opts.Region, level, what, dim.Value, when)
		subject = fmt.Sprintf("[%s Ok]From Cloud Eye: %s has changed to OK from Alarm.", level, what)
	}
	points, times := map[string]string{}, []string{}
	for _, v := range values {
		t := time.UnixMilli(v.Time).UTC().Format(clock)
		points[t] = number(v.Value)
		times = append(times, t)
	}
	message := alarmMessage{ // json.Marshal escapes > as \u003e, as the cloud does
		MessageType: "alarm", AlarmID: r.ID, AlarmName: r.Name, AlarmStatus: state, Time: at.UnixMilli(),
		Namespace: r.Metric.Namespace, MetricName: r.Metric.MetricName, Dimension: dim.Name + ":" + dim.Value,
		Period: cond.Period, Filter: filter, ComparisonOperator: cond.ComparisonOperator, Value: cond.Value, Unit: cond.Unit,
		Count: cond.Count, AlarmValue: values, SMSContent: sms,
		Template: template{
			AccountName: c.identity.domainName, Namespace: "Relational Database Service", DimensionName: info.engine + " Instances",
			ResourceName: info.resource, MetricName: info.metric, IsAlarm: state == StateAlarm, IsCycleTrigger: repeat,
			AlarmLevel: level, Region: c.opts.Region, ResourceId: dim.Value, CurrentData: number(values[len(values)-1].Value), AlarmTime: when,
			DataPoint: points, DataPointTime: times, AlarmRuleName: r.Name, AlarmId: r.ID, AlarmDesc: r.Description,
			MonitoringRange: "Specific resources", IsOriginalValue: cond.Period == 1, Period: period, Filter: filterWord,
			ComparisonOperator: cond.ComparisonOperator, Value: number(cond.Value), Unit: info.unit, Count: cond.Count,
		},
	}
	encoded, err := json.Marshal(c.settings.oddPayload(message))
	if err != nil { // numbers that JSON cannot hold
		return subject, err.Error()
	}
	return subject, string(encoded)
}
