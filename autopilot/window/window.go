// SPDX-License-Identifier: Apache-2.0

// Package window computes when a maintenance window opens, in the window's own time zone. Time is an argument; the
// package knows neither decisions nor Kubernetes clients.
package window

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Never is the wait that UntilOpen returns for a window that does not open within two weeks, or that is invalid. A week
// is short enough that the caller checks a corrected time zone database before long.
const Never = 7 * 24 * time.Hour

// Validate returns an error that names the wrong field, or nil if the window can be evaluated.
func Validate(w v1alpha1.Window) error {
	_, err := parse(w)
	return err
}

// UntilOpen returns how long the window stays closed; 0 means that it is open. The window is open while the clock of
// its zone shows a time in it, once for each of its days. If that clock skips the whole window, the window does not
// open on that day. If the clock is set back and reaches the start twice, the window opens the second time. An invalid
// window returns Never.
func UntilOpen(w v1alpha1.Window, now time.Time) time.Duration {
	h, err := parse(w)
	if err != nil {
		return Never
	}
	opens, closes := h.next(now)
	if closes.IsZero() {
		return Never
	}
	return max(0, opens.Sub(now))
}

// UntilClose returns how long the window stays open; 0 means that it is closed. An invalid window is closed.
func UntilClose(w v1alpha1.Window, now time.Time) time.Duration {
	h, err := parse(w)
	if err != nil {
		return 0
	}
	opens, closes := h.next(now)
	if now.Before(opens) || closes.IsZero() {
		return 0
	}
	return closes.Sub(now)
}

// hours is a parsed window.
type hours struct {
	days       []v1alpha1.Day // empty means every day
	start, end time.Duration  // since midnight of the day on which the window opens; end is after start
	zone       *time.Location
}

// parse returns the window in a form that can be evaluated. The error begins with the name of the wrong field.
func parse(w v1alpha1.Window) (hours, error) {
	h := hours{days: w.Days}
	for _, day := range w.Days {
		if !slices.Contains(weekdays(), day) {
			return h, fmt.Errorf("days: %q is not a day such as Mon", day)
		}
	}
	var err error
	if h.start, err = parseClock("start", w.Start); err != nil {
		return h, err
	}
	if h.end, err = parseClock("end", w.End); err != nil {
		return h, err
	}
	if h.end <= h.start {
		h.end += 24 * time.Hour
	}
	if w.TimeZone == "" || w.TimeZone == "Local" { // Go reads them as UTC and as the zone of the machine
		return h, fmt.Errorf("timeZone: unknown time zone %q", w.TimeZone)
	}
	if h.zone, err = time.LoadLocation(w.TimeZone); err != nil {
		return h, fmt.Errorf("timeZone: %w", err)
	}
	return h, nil
}

// parseClock returns the time since midnight of a text of the form HH:MM.
func parseClock(field, text string) (time.Duration, error) {
	at, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not HH:MM", field, text)
	}
	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute, nil
}

func weekdays() []v1alpha1.Day {
	return []v1alpha1.Day{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}
}

// next returns when the present or next window opens and closes; zero times if there is none within two weeks.
func (h hours) next(now time.Time) (opens, closes time.Time) {
	year, month, today := now.In(h.zone).Date()
	for day := -1; day <= 14; day++ { // yesterday's window may reach over midnight
		date := time.Date(year, month, today+day, 0, 0, 0, 0, time.UTC)
		if len(h.days) > 0 && !slices.Contains(h.days, weekdays()[date.Weekday()]) {
			continue
		}
		if opens, closes := h.on(date); now.Before(closes) && opens.Before(closes) {
			return opens, closes
		}
	}
	return time.Time{}, time.Time{}
}

// on returns when the window of a date opens and closes. The date is a midnight in UTC. Both times are equal if the
// window does not open on that date.
func (h hours) on(date time.Time) (opens, closes time.Time) {
	starts := instants(date.Add(h.start), h.zone)
	opens = starts[len(starts)-1]
	for _, closes = range instants(date.Add(h.end), h.zone) {
		if !closes.Before(opens) {
			return opens, closes
		}
	}
	return opens, opens
}

// instants returns when the clock of a zone reaches a date and time, or skips it. The result has one entry, or two if
// the clock is set back over that time. The date and time are given as if they were in UTC.
func instants(shown time.Time, zone *time.Location) []time.Time {
	var found []time.Time
	t := shown.Add(-24 * time.Hour).In(zone)
	before := true // whether the clock, just before t, showed an earlier time than shown
	for {
		_, offset := t.Zone()
		_, until := t.ZoneBounds() // the offset is valid until then
		at := shown.Add(-time.Duration(offset) * time.Second)
		if before || at.After(t) {
			if at.Before(t) {
				at = t
			}
			before = !until.IsZero() && !at.Before(until)
			if !before {
				found = append(found, at)
			}
		}
		if until.IsZero() || until.After(shown.Add(24*time.Hour)) {
			return found
		}
		t = until
	}
}
