// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

type alarmValue struct {
	Time  int64   `json:"time"`
	Value float64 `json:"value"`
}

// notify publishes the state of a rule to its topics.
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

// shown holds the names of a series in a message.
type shown struct{ metric, unit, engine, resource string }

func (s *series) info() shown {
	return shown{s.title, s.unit, s.in.Engine, s.resource}
}

// AlarmMessage returns the subject and message that Cloud Eye would publish for a rule with that state, value and
// datapoint, if it evaluated the rule at that time. The rule's own state does not matter. With Sign, a test makes late
// or invented messages.
func (c *Cloud) AlarmMessage(ruleID string, state RuleState, value float64, datapoint, at time.Time) (subject, text string, err error) {
	c.lock()
	defer c.mu.Unlock()
	r := c.rule(ruleID)
	if r == nil {
		return "", "", fmt.Errorf("compose message: no rule %s", ruleID)
	}
	info := shown{metric: r.Metric.MetricName, unit: "%", engine: "MySQL", resource: "unknown"}
	if s := c.find(r.Metric); s != nil {
		info = s.info()
	}
	subject, text = c.alarmText(&r.Rule, info, state, []alarmValue{{datapoint.UnixMilli(), value}}, at, false)
	return subject, text, nil
}

// SignedAlarm returns the body that SMN would post if the rule raised its alarm now, with the last datapoint.
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
	// This is the format of the one captured message of Open Telekom Cloud. json.Marshal escapes > as the cloud does.
	message := c.settings.oddPayload(fields{
		"message_type": "alarm", "alarm_id": r.ID, "alarm_name": r.Name, "alarm_status": state, "time": at.UnixMilli(),
		"namespace": r.Metric.Namespace, "metric_name": r.Metric.MetricName, "dimension": dim.Name + ":" + dim.Value,
		"period": cond.Period, "filter": filter, "comparison_operator": cond.ComparisonOperator, "value": cond.Value,
		"unit": cond.Unit, "count": cond.Count, "alarmValue": values, "sms_content": sms,
		"template_variable": fields{
			"AccountName": c.identity.domainName, "Namespace": "Relational Database Service", "DimensionName": info.engine + " Instances",
			"ResourceName": info.resource, "MetricName": info.metric, "IsAlarm": state == StateAlarm, "IsCycleTrigger": repeat,
			"AlarmLevel": level, "Region": c.opts.Region, "ResourceId": dim.Value, "AlarmRule": "", "AlarmTime": when,
			"CurrentData": number(values[len(values)-1].Value), "DataPoint": points, "DataPointTime": times,
			"AlarmRuleName": r.Name, "AlarmId": r.ID, "AlarmDesc": r.Description, "MonitoringRange": "Specific resources",
			"IsOriginalValue": cond.Period == 1, "Period": period, "Filter": filterWord, "EventContent": "", "IsIEC": false,
			"ComparisonOperator": cond.ComparisonOperator, "Value": number(cond.Value), "Unit": info.unit, "Count": cond.Count,
		},
	})
	encoded, err := json.Marshal(message)
	if err != nil { // numbers that JSON cannot hold
		return subject, err.Error()
	}
	return subject, string(encoded)
}
