// SPDX-License-Identifier: Apache-2.0

package smn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrUnreadable is an authentic message whose text is not an alarm that can be read.
var ErrUnreadable = errors.New("unreadable alarm")

// ErrTemplate is the newer schema of Huawei Cloud, {"version":"v1","data":…}. It names neither rule nor metric, so
// nothing can be decided from it (docs/cloud-facts.md, Alarm payload).
var ErrTemplate = fmt.Errorf("%w: it uses a notification content template, which names no alarm rule", ErrUnreadable)

// Alarm is what Cloud Eye says in the message of a notification, as far as it is meant for machines
// (docs/cloud-facts.md, Alarm payload).
type Alarm struct {
	ID         string // of the rule
	Status     string // alarm or ok; message_type is "alarm" in both
	Namespace  string
	Metric     string
	Dimensions []Dimension
	Time       time.Time // when the state changed
	// Value and ValueTime are the newest datapoint; ValueTime is zero where there is none that can be read.
	Value     float64 // percent
	ValueTime time.Time
}

// Dimension says what a metric belongs to.
type Dimension struct{ Name, Value string }

// Bounds of what is believed: Cloud Eye sends percent and milliseconds.
const (
	maxValue = 100
	minMilli = 946684800000  // 2000-01-01
	maxMilli = 4102444800000 // 2100-01-01
)

// ParseAlarm reads the message of a notification. Unknown fields are ignored; the texts among them are localised.
// Errors are ErrUnreadable.
func ParseAlarm(message string) (Alarm, error) {
	found, err := parseObject([]byte(message),
		"alarm_id", "alarm_status", "namespace", "metric_name", "dimension", "time", "alarmValue", "version", "data")
	if err != nil {
		return Alarm{}, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if !found.has("alarm_id") && found.has("version") && found.has("data") {
		return Alarm{}, ErrTemplate
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
		s, err := parseString(found.get(f.key).raw)
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
	var err error
	if a.Time, err = parseMillis(found.get("time").raw); err != nil {
		return a, fmt.Errorf("time: %w", err)
	}
	a.Value, a.ValueTime = newestValue(found.get("alarmValue").raw)
	return a, nil
}

// newestValue returns the newest datapoint. Its time is zero if there is none, or if any of them is odd: the alarm is
// true without it, and an older datapoint would not be what Cloud Eye saw.
func newestValue(raw []byte) (value float64, at time.Time) {
	if len(raw) == 0 || raw[0] != '[' {
		return 0, time.Time{}
	}
	points := scanner{data: raw}
	err := points.array(0, func(p []byte) error {
		point, err := parseObject(p, "time", "value")
		if err != nil {
			return err
		}
		t, err := parseMillis(point.get("time").raw)
		if err != nil {
			return err
		}
		v, err := strconv.ParseFloat(string(point.get("value").raw), 64)
		if err != nil || v < 0 || v > maxValue {
			return errors.New("not a percentage")
		}
		if t.After(at) {
			value, at = v+0, t // +0 makes 0 of −0
		}
		return nil
	})
	if err != nil {
		return 0, time.Time{}
	}
	return value, at
}

// parseMillis reads a number of JSON, which the scanner has seen: of all that JSON can hold only digits are a number here.
func parseMillis(raw []byte) (time.Time, error) {
	ms, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || ms < minMilli || ms > maxMilli {
		return time.Time{}, errors.New("not milliseconds of this century")
	}
	return time.UnixMilli(ms).UTC(), nil
}
