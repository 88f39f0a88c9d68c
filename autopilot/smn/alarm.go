// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrUnreadable reports that the text of a message is not a readable alarm.
var ErrUnreadable = errors.New("unreadable alarm")

// Alarm holds the machine-readable part of Cloud Eye's message in a notification (docs/cloud-facts.md, Alarm payload).
type Alarm struct {
	ID         string // of the rule
	Name       string // of the rule; empty if the message has none of the documented form
	Status     string // alarm or ok; message_type is "alarm" for both
	Namespace  string
	Metric     string
	Dimensions []Dimension
	Time       time.Time // of the change of state
	// Value and ValueTime are of the newest datapoint. ValueTime is zero if the alarm has no valid one.
	Value     float64 // percent
	ValueTime time.Time
}

// Dimension is the object of a metric, such as an instance or a node.
type Dimension struct{ Name, Value string }

// Limits of valid numbers. Cloud Eye sends percentages and milliseconds.
const (
	maxValue = 100           // percent
	minMilli = 946684800000  // 2000-01-01
	maxMilli = 4102444800000 // 2100-01-01
)

// ParseAlarm reads the message of a notification. It ignores unknown fields, of which some are localised texts. Errors
// are ErrUnreadable.
func ParseAlarm(message string) (Alarm, error) {
	found, err := parseObject([]byte(message),
		"alarm_id", "alarm_name", "alarm_status", "namespace", "metric_name", "dimension", "time", "alarmValue")
	if err != nil {
		return Alarm{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	a, err := readAlarm(found)
	if err != nil {
		return Alarm{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return a, nil
}

func readAlarm(found fields) (Alarm, error) {
	var a Alarm
	var dimension string
	for _, f := range []struct {
		key  string
		into *string
		form func(string) bool
	}{
		{"alarm_id", &a.ID, func(s string) bool { return strings.HasPrefix(s, "al") && hasForm(s, 3, 64, letters+digits) }},
		{"alarm_status", &a.Status, func(s string) bool { return hasForm(s, 1, 32, letters+"_") }},
		{"namespace", &a.Namespace, func(s string) bool { return hasForm(s, 1, 64, identifier+".") }},
		{"metric_name", &a.Metric, func(s string) bool { return isName(s, 64, identifier) }},
		{"dimension", &dimension, func(s string) bool { return len(s) <= maxDimensions }},
	} {
		s, err := parseString(found[f.key])
		if err != nil {
			return a, fmt.Errorf("%s: %w", f.key, err)
		}
		if !f.form(s) {
			return a, fmt.Errorf("%s has an unexpected form", f.key)
		}
		*f.into = s
	}
	for pair := range strings.SplitSeq(dimension, ",") {
		key, value, _ := strings.Cut(pair, ":")
		if !isName(key, 32, identifier) || !hasForm(value, 1, 256, identifier+"-") || len(a.Dimensions) == 4 {
			return a, errors.New("dimension has an unexpected form")
		}
		a.Dimensions = append(a.Dimensions, Dimension{key, value})
	}
	a.Status = strings.ToLower(a.Status)
	if name, err := parseString(found["alarm_name"]); err == nil && hasForm(name, 1, 128, identifier+"-") {
		a.Name = name
	}
	var err error
	if a.Time, err = parseMillis(found["time"]); err != nil {
		return a, fmt.Errorf("time: %w", err)
	}
	a.Value, a.ValueTime = newestValue(found["alarmValue"])
	return a, nil
}

// newestValue returns the newest datapoint. Its time is zero if there is none or if any datapoint is invalid: an older
// one would not be the value that Cloud Eye saw, and the alarm is valid without a value.
func newestValue(list jsontext.Value) (value float64, at time.Time) {
	if list.Kind() != '[' {
		return 0, time.Time{}
	}
	dec := newDecoder(list)
	_, err := dec.ReadToken() // the opening bracket
	for err == nil && dec.PeekKind() != ']' {
		var v float64
		var t time.Time
		v, t, err = readDatapoint(dec)
		if t.After(at) {
			value, at = v, t
		}
	}
	if err != nil {
		return 0, time.Time{}
	}
	return value, at
}

func readDatapoint(dec *jsontext.Decoder) (value float64, at time.Time, err error) {
	text, err := dec.ReadValue()
	if err != nil {
		return 0, time.Time{}, err
	}
	point, err := parseObject(text, "time", "value")
	if err != nil {
		return 0, time.Time{}, err
	}
	if at, err = parseMillis(point["time"]); err != nil {
		return 0, time.Time{}, err
	}
	value, err = strconv.ParseFloat(string(point["value"]), 64)
	if err != nil || value < 0 || value > maxValue {
		return 0, time.Time{}, errors.New("not a percentage")
	}
	return value + 0, at, nil // adding 0 turns −0 into 0
}

func parseMillis(number jsontext.Value) (time.Time, error) {
	ms, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil || ms < minMilli || ms > maxMilli {
		return time.Time{}, errors.New("not milliseconds of this century")
	}
	return time.UnixMilli(ms).UTC(), nil
}
