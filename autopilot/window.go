package autopilot

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// wishSpan is how long a wish waits for the window.
const wishSpan = 7 * 24 * time.Hour

// opens is how long it takes until a flavor may change; 0 is now.
func (c Case) opens() time.Duration {
	w := c.Spec.Flavor.Window
	if w == nil {
		return 0
	}
	return Opens(*w, c.Now)
}

// Opens is how long it takes until the window opens; 0 while it is open. The window is in wall clock time of its zone:
// on the day a clock is changed, it is as much shorter or longer. A window that cannot be read never opens.
func Opens(w v1alpha1.Window, now time.Time) time.Duration {
	where, err := zone(w.TimeZone)
	if err != nil {
		return wishSpan
	}
	local := now.In(where)
	for day := -1; day <= 7; day++ { // from yesterday, whose window may reach over midnight
		date := local.AddDate(0, 0, day)
		if !slices.Contains(w.Days, v1alpha1.Day(date.Weekday().String()[:3])) {
			continue
		}
		start, end := clock(date, w.Start), clock(date, w.End)
		if !end.After(start) {
			end = clock(date.AddDate(0, 0, 1), w.End)
		}
		if now.Before(end) {
			return max(0, start.Sub(now))
		}
	}
	return wishSpan
}

// zone is the time zone of that name, but not the zone of the machine that happens to run this.
func zone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New("unknown time zone Local")
	}
	return time.LoadLocation(name)
}

// clock is that time of day on that date, in its zone.
func clock(date time.Time, at string) time.Time {
	t, err := time.Parse("15:04", at)
	if err != nil {
		return time.Time{}
	}
	return time.Date(date.Year(), date.Month(), date.Day(), t.Hour(), t.Minute(), 0, 0, date.Location())
}

// wishKept is the wish that still waits; nil where it is too old or the flavor changed since.
func (c Case) wishKept() *v1alpha1.Deferred {
	w := c.Status.Deferred
	if w == nil || c.Now.Sub(w.LastTime.Time) > wishSpan {
		return nil
	}
	if last, ok := lastChanged(c.Status.Changes, v1alpha1.KindFlavor); ok && last.After(w.FirstTime.Time) {
		return nil
	}
	return w
}

// wishDue are the metrics of a wish whose window is open, as if their alarms were in force; those that are in force are
// left out.
func (c Case) wishDue(inForce []Alarm) []Alarm {
	w := c.wishKept()
	if w == nil || c.Instance == nil || c.Shared || !c.Enabled || c.Mode == v1alpha1.ModeOff || Validate(c.Spec) != nil || c.opens() > 0 {
		return nil
	}
	var due []Alarm
	for i, m := range w.Metrics {
		if !Enabled(c.Spec, m) || slices.ContainsFunc(inForce, func(a Alarm) bool { return a.Metric == m }) {
			continue
		}
		due = append(due, Alarm{
			Metric: m, State: v1alpha1.StateAlarm, StateTime: w.FirstTime.Time, Wished: w.LastTime.Time,
			Evidence: Evidence{Time: w.LastTime.Time, Percent: float64(given(c.Spec, m))},
		})
		if percent, err := strconv.ParseFloat(w.ValuePercent, 64); i == 0 && err == nil {
			due[len(due)-1].Evidence.Percent = percent
		}
	}
	return due
}

// deferWish keeps the wish of these alarms until the window opens, and behind it what was wished for before. The value is
// that of the first metric; of the others it is known only that they were over their threshold.
func (c Case) deferWish(alarms []Alarm) *v1alpha1.Deferred {
	w := &v1alpha1.Deferred{FirstTime: *seconds(c.Now), LastTime: *seconds(c.Now)}
	if last := c.wishKept(); last != nil {
		w.FirstTime = last.FirstTime
		if c.Now.Sub(last.LastTime.Time) < foldEvery {
			w.LastTime = last.LastTime // not written with every look
		}
	}
	for _, a := range alarms {
		w.Metrics = append(w.Metrics, a.Metric)
	}
	if last := c.wishKept(); last != nil {
		for _, m := range last.Metrics {
			if !slices.Contains(w.Metrics, m) {
				w.Metrics = append(w.Metrics, m)
			}
		}
	}
	w.ValuePercent = strconv.FormatFloat(alarms[0].Evidence.Percent, 'f', 1, 64)
	return w
}

// untilWindow is when a kept wish is to be looked at.
func (c Case) untilWindow(w *v1alpha1.Deferred) time.Duration {
	if w == nil {
		return 0
	}
	return c.opens()
}
