// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// maxDeferral is how long a deferred change waits for the window.
const maxDeferral = 7 * 24 * time.Hour

// untilWindowOpens is how long it takes until a flavor may change; 0 is now.
func (c Case) untilWindowOpens() time.Duration {
	w := c.Spec.Flavor.Window
	if w == nil {
		return 0
	}
	return untilWindowOpens(*w, c.Now)
}

// untilWindowOpens is how long it takes until the window opens; 0 while it is open. It is open while the clock of its zone
// shows a time in it, once for each of its days: where that clock is put forward over all of it, not that day, and where it
// is put back into it, from the last time that it comes to the start. A window that cannot be read never opens.
func untilWindowOpens(w v1alpha1.Window, now time.Time) time.Duration {
	h, err := readWindow(w)
	if err != nil {
		return maxDeferral
	}
	return h.untilOpen(now)
}

// hours are a window that was read.
type hours struct {
	days       []v1alpha1.Day // none: every day
	start, end time.Duration  // since midnight of the day on which it opens; the end is after the start
	zone       *time.Location
}

// readWindow reads a window. The error names the field.
func readWindow(w v1alpha1.Window) (hours, error) {
	h := hours{days: w.Days}
	for _, day := range w.Days {
		if !slices.Contains(weekdays(), day) {
			return h, fmt.Errorf("days: %q is no day, such as Mon", day)
		}
	}
	for _, field := range []struct {
		path, text string
		to         *time.Duration
	}{{"start", w.Start, &h.start}, {"end", w.End, &h.end}} {
		at, err := time.Parse("15:04", field.text)
		if err != nil {
			return h, fmt.Errorf("%s: %q is not HH:MM", field.path, field.text)
		}
		*field.to = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	}
	if h.end <= h.start {
		h.end += 24 * time.Hour
	}
	var err error
	if w.TimeZone == "" || w.TimeZone == "Local" { // Go takes them for UTC and for the zone of the machine
		return h, fmt.Errorf("timeZone: unknown time zone %q", w.TimeZone)
	}
	if h.zone, err = time.LoadLocation(w.TimeZone); err != nil {
		return h, fmt.Errorf("timeZone: %w", err)
	}
	return h, nil
}

// weekdays are in Go's order.
func weekdays() []v1alpha1.Day {
	return []v1alpha1.Day{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}
}

// untilOpen is how long the window is still closed; 0 while it is open.
func (h hours) untilOpen(now time.Time) time.Duration {
	year, month, today := now.In(h.zone).Date()
	for day := -1; day <= 14; day++ { // from yesterday, whose window may reach over midnight, to the week after next
		date := time.Date(year, month, today+day, 0, 0, 0, 0, time.UTC)
		if len(h.days) > 0 && !slices.Contains(h.days, weekdays()[date.Weekday()]) {
			continue
		}
		if opens, closes := h.windowOf(date); now.Before(closes) && opens.Before(closes) {
			return max(0, opens.Sub(now))
		}
	}
	return maxDeferral
}

// windowOf is when the window of that date, a midnight in UTC, opens and closes. Both are the same where it does not open.
func (h hours) windowOf(date time.Time) (opens, closes time.Time) {
	starts := instantsOf(date.Add(h.start), h.zone)
	opens = starts[len(starts)-1]
	for _, closes = range instantsOf(date.Add(h.end), h.zone) {
		if !closes.Before(opens) {
			return opens, closes
		}
	}
	return opens, opens
}

// instantsOf is when the clock of a zone comes to that date and time, or past it where it is put forward over it: mostly
// once. Where it is put back it comes to some times twice. The date and time are given as if they were in UTC.
func instantsOf(shown time.Time, zone *time.Location) []time.Time {
	var found []time.Time
	t, less := shown.Add(-24*time.Hour).In(zone), true // less: the clock showed less just before t
	for {
		_, offset := t.Zone()
		_, until := t.ZoneBounds() // until then it goes on as it does at t
		at := shown.Add(-time.Duration(offset) * time.Second)
		if less || at.After(t) {
			if at.Before(t) {
				at = t
			}
			less = !until.IsZero() && !at.Before(until)
			if !less {
				found = append(found, at)
			}
		}
		if until.IsZero() || until.After(shown.Add(24*time.Hour)) {
			return found
		}
		t = until
	}
}

// pendingDeferral is the deferred change that still waits for the window; nil where it is too old or the flavor changed since.
func (c Case) pendingDeferral() *v1alpha1.Deferred {
	w := c.Status.Deferred
	if w == nil || c.Now.Sub(w.LastTime.Time) > maxDeferral {
		return nil
	}
	if last, ok := lastChanged(c.Status.Changes, v1alpha1.KindFlavor); ok && last.After(w.FirstTime.Time) {
		return nil
	}
	return w
}

// dueDeferred are the metrics of a deferred change whose window is open, as if their alarms were in force; those that are in
// force are left out.
func (c Case) dueDeferred(inForce []Alarm) []Alarm {
	w := c.pendingDeferral()
	if w == nil || c.Instance == nil || c.Shared || !c.Enabled || c.Mode == v1alpha1.ModeOff || Validate(c.Spec, v1alpha1.KindFlavor) != nil || c.untilWindowOpens() > 0 {
		return nil
	}
	var due []Alarm
	for i, m := range w.Metrics {
		metric, err := LookupMetric(m)
		if err != nil || !metric.Enabled(c.Spec) || slices.ContainsFunc(inForce, func(a Alarm) bool { return a.Metric == m }) {
			continue
		}
		due = append(due, Alarm{
			Metric: m, State: v1alpha1.StateAlarm, StateTime: w.FirstTime.Time, DeferredTime: w.LastTime.Time,
			Evidence: Evidence{Time: w.LastTime.Time, Percent: float64(metric.ConfiguredThreshold(c.Spec))},
		})
		if percent, err := strconv.ParseFloat(w.ValuePercent, 64); i == 0 && err == nil {
			due[len(due)-1].Evidence.Percent = percent
		}
	}
	return due
}

// deferToWindow keeps the change that these alarms ask for until the window opens, and behind it what was deferred before. The value is
// that of the first metric; of the others it is known only that they were over their threshold.
func (c Case) deferToWindow(alarms []Alarm) *v1alpha1.Deferred {
	w := &v1alpha1.Deferred{FirstTime: *seconds(c.Now), LastTime: *seconds(c.Now)}
	if last := c.pendingDeferral(); last != nil {
		w.FirstTime = last.FirstTime
		if c.Now.Sub(last.LastTime.Time) < foldEvery {
			w.LastTime = last.LastTime // not written with every look
		}
	}
	for _, a := range alarms {
		w.Metrics = append(w.Metrics, a.Metric)
	}
	if last := c.pendingDeferral(); last != nil {
		for _, m := range last.Metrics {
			if !slices.Contains(w.Metrics, m) {
				w.Metrics = append(w.Metrics, m)
			}
		}
	}
	w.ValuePercent = strconv.FormatFloat(alarms[0].Evidence.Percent, 'f', 1, 64)
	return w
}

// untilDeferred is when a deferred change is to be looked at.
func (c Case) untilDeferred(w *v1alpha1.Deferred) time.Duration {
	if w == nil {
		return 0
	}
	return c.untilWindowOpens()
}
