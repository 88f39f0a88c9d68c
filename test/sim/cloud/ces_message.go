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
	subject, text := c.alarmText(&r.Rule, s, r.State, values, at, repeat)
	for _, a := range actions {
		if a.Type != "notification" {
			continue
		}
		for _, urn := range a.NotificationList {
			c.publish(urn, subject, text, c.opts.Now())
		}
	}
}

// SignedAlarm returns the body that SMN would post if the rule raised its alarm now, with that value as its last
// datapoint. The rule's own state does not matter.
func (c *Cloud) SignedAlarm(messageID, topicURN, ruleID string, value float64) ([]byte, error) {
	e := Envelope{MessageID: messageID, TopicURN: topicURN}
	if err := c.composeAlarm(&e, ruleID, value); err != nil {
		return nil, err
	}
	return c.Sign(e).JSON(), nil
}

func (c *Cloud) composeAlarm(e *Envelope, ruleID string, value float64) error {
	at := c.lock()
	defer c.mu.Unlock()
	r := c.rule(ruleID)
	if r == nil {
		return fmt.Errorf("compose message: no rule %s", ruleID)
	}
	s := c.find(r.Metric)
	if s == nil {
		return fmt.Errorf("compose message: no series of rule %s", ruleID)
	}
	e.Subject, e.Message = c.alarmText(&r.Rule, s, StateAlarm, []alarmValue{{at.Add(-c.raw).UnixMilli(), value}}, at, false)
	return nil
}

func (c *Cloud) alarmText(r *Rule, s *series, state RuleState, values []alarmValue, at time.Time, repeat bool) (subject, text string) {
	const clock = "01 02, 2006 15:04:05 GMT-07:00"
	cond, dim := r.Condition, r.Metric.Dimensions[0]
	level := []string{"Critical", "Major", "Minor", "Informational"}[r.Level-1]
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) + s.unit }
	period, filter, filterWord := fmt.Sprintf("%d minutes", cond.Period/60), cond.Filter, "Avg."
	if cond.Period == 1 {
		period, filter, filterWord = "1 minute", "Raw data", "Raw data"
	}
	what := fmt.Sprintf("The %s of Relational Database Service-%s Instances %q", s.title, s.in.Engine, s.resource)
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
			"AccountName": c.identity.domainName, "Namespace": "Relational Database Service", "DimensionName": s.in.Engine + " Instances",
			"ResourceName": s.resource, "MetricName": s.title, "IsAlarm": state == StateAlarm, "IsCycleTrigger": repeat,
			"AlarmLevel": level, "Region": c.opts.Region, "ResourceId": dim.Value, "AlarmRule": "", "AlarmTime": when,
			"CurrentData": number(values[len(values)-1].Value), "DataPoint": points, "DataPointTime": times,
			"AlarmRuleName": r.Name, "AlarmId": r.ID, "AlarmDesc": r.Description, "MonitoringRange": "Specific resources",
			"IsOriginalValue": cond.Period == 1, "Period": period, "Filter": filterWord, "EventContent": "", "IsIEC": false,
			"ComparisonOperator": cond.ComparisonOperator, "Value": number(cond.Value), "Unit": s.unit, "Count": cond.Count,
		},
	})
	encoded, err := json.Marshal(message)
	if err != nil { // numbers that JSON cannot hold
		return subject, err.Error()
	}
	return subject, string(encoded)
}
