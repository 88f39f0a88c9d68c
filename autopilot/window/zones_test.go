// SPDX-License-Identifier: Apache-2.0

package window

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// clockChange is a moment at which the clock of a zone is changed.
type clockChange struct {
	zone          string
	where         *time.Location
	at            time.Time
	before, after time.Duration // offset from UTC
}

func (u clockChange) shift() time.Duration { return (u.after - u.before).Abs() }

// clockChanges returns changes of each kind: by an hour, half an hour, two hours and a day, forward and back, at midnight
// and at other times, east and west of Greenwich.
func clockChanges(t *testing.T) (found []clockChange) {
	t.Helper()
	for _, of := range []struct {
		zone string
		year int
	}{
		{"Europe/Berlin", 2026}, {"America/New_York", 2026}, {"America/Sao_Paulo", 2018}, {"Africa/Cairo", 2026},
		{"Australia/Lord_Howe", 2026}, {"Asia/Pyongyang", 2018}, {"Antarctica/Troll", 2026}, {"Pacific/Apia", 2011},
	} {
		where, err := time.LoadLocation(of.zone)
		if err != nil {
			t.Fatal(err)
		}
		_, at := time.Date(of.year, 1, 1, 0, 0, 0, 0, where).ZoneBounds()
		for ; !at.IsZero() && at.Year() == of.year; _, at = at.ZoneBounds() {
			_, before := at.Add(-1).Zone()
			_, after := at.Zone()
			found = append(found,
				clockChange{of.zone, where, at, time.Duration(before) * time.Second, time.Duration(after) * time.Second})
		}
	}
	return found
}

// isShown reports whether the clock of the zone shows a time within the window, and to which date that opening belongs.
func isShown(w v1alpha1.Window, start, end time.Duration, at time.Time) (date time.Time, in bool) {
	y, m, d := at.Date()
	date = time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	h, min, s := at.Clock()
	clock := time.Duration(h)*time.Hour + time.Duration(min)*time.Minute + time.Duration(s)*time.Second
	on := func(date time.Time) bool {
		return len(w.Days) == 0 || slices.Contains(w.Days, v1alpha1.Day(date.Weekday().String()[:3]))
	}
	switch yesterday := date.AddDate(0, 0, -1); {
	case start < end:
		return date, on(date) && start <= clock && clock < end
	case on(date) && start <= clock:
		return date, true
	default:
		return yesterday, on(yesterday) && clock < end
	}
}

// At every change of a clock, a window is open only while the clock shows a time within it, once for each of its days. It
// lasts no longer than its end minus its start, plus the shift if the clock is set back.
func TestWindowIsOpenOnlyWhileTheClockShowsIt(t *testing.T) {
	const step = 15 * time.Minute
	day := 24 * time.Hour
	for _, u := range clockChanges(t) {
		low := u.at.UTC().Add(min(u.before, u.after)) // the clock shows low and high at the change
		high := low.Add(u.shift())
		if u.shift() >= day {
			high = low.Add(time.Hour) // a whole date is skipped, so any hour of it will do
		}
		var times []time.Duration
		for _, at := range []time.Time{low.Add(-step), low, low.Add(step), high.Add(-step), high, high.Add(step)} {
			if of := at.Sub(at.Truncate(day)); !slices.Contains(times, of) {
				times = append(times, of)
			}
		}
		weekday := func(at time.Time) v1alpha1.Day { return v1alpha1.Day(at.Weekday().String()[:3]) }
		for _, days := range [][]v1alpha1.Day{nil, {weekday(low)}, {weekday(low.Add(-day))}} {
			for _, start := range times {
				for _, end := range times {
					if days != nil && (days[0] == weekday(low)) != (start < end) {
						continue // a window over midnight belongs to the day before
					}
					w := v1alpha1.Window{Days: days, Start: hhmm(start), End: hhmm(end), TimeZone: u.zone}
					u.check(t, w, start, end, step)
				}
			}
		}
		if t.Failed() {
			return // one zone is enough to find the fault
		}
	}
}

func hhmm(d time.Duration) string { return time.Time{}.Add(d).Format("15:04") }

func (u clockChange) check(t *testing.T, w v1alpha1.Window, start, end, step time.Duration) {
	t.Helper()
	name := fmt.Sprintf("%s %v %s–%s, clock changed at %s by %s", u.zone, w.Days, w.Start, w.End, u.at.In(u.where), u.after-u.before)
	written := end - start
	if written <= 0 {
		written += 24 * time.Hour
	}
	limit := written + max(0, u.before-u.after)
	h, err := parse(w)
	if err != nil {
		t.Fatal(err)
	}
	type span struct{ first, last time.Time }
	spans := map[time.Time]span{}
	for at := u.at.Add(-36 * time.Hour).In(u.where); at.Before(u.at.Add(36 * time.Hour)); at = at.Add(step) {
		opens, _ := h.next(at)
		date, in := isShown(w, start, end, at)
		switch {
		case opens.After(at) && in && u.after > u.before:
			t.Fatalf("%s: closed at %s", name, at)
		case opens.After(at):
			continue
		case !in:
			t.Fatalf("%s: open at %s", name, at)
		}
		s, again := spans[date]
		if again && at.Sub(s.last) != step {
			t.Fatalf("%s: open a second time, at %s", name, at)
		}
		if !again {
			s.first = at
		}
		s.last = at
		spans[date] = s
		if long := at.Sub(s.first) + step; long > limit {
			t.Fatalf("%s: open for %s", name, long)
		}
	}
}
