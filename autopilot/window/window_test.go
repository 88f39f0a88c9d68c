// SPDX-License-Identifier: Apache-2.0

package window

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestUntilOpenFollowsTheClockOfTheZone(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	berlin := func(day v1alpha1.Day, start, end string) v1alpha1.Window {
		return v1alpha1.Window{Days: []v1alpha1.Day{day}, Start: start, End: end, TimeZone: "Europe/Berlin"}
	}
	for _, tc := range []struct {
		name  string
		w     v1alpha1.Window
		now   string
		opens time.Duration // TestWindowIsOpenOnlyWhileTheClockShowsIt tries the skipped hours
	}{
		{"open", berlin("Sat", "01:00", "05:00"), "2026-11-21T02:00:00+01:00", 0},
		{"at its start", berlin("Sat", "01:00", "05:00"), "2026-11-21T01:00:00+01:00", 0},
		{"at its end", berlin("Sat", "01:00", "05:00"), "2026-11-21T05:00:00+01:00", 7*24*time.Hour - 4*time.Hour},
		{"an hour before its start", berlin("Sat", "01:00", "05:00"), "2026-11-21T00:00:00+01:00", time.Hour},
		{"open by the clock of its zone", berlin("Sat", "01:00", "05:00"), "2026-11-21T00:30:00Z", 0},
		{"over midnight, in the evening", berlin("Sat", "22:00", "02:00"), "2026-11-21T23:00:00+01:00", 0},
		{"over midnight, in the morning", berlin("Sat", "22:00", "02:00"), "2026-11-22T01:59:00+01:00", 0},
		{"over midnight, at its end",
			berlin("Sat", "22:00", "02:00"), "2026-11-22T02:00:00+01:00", 7*24*time.Hour - 4*time.Hour},
		{"a whole day", berlin("Sat", "00:00", "00:00"), "2026-11-21T23:59:00+01:00", 0},
		{"the wait includes the repeated hour",
			berlin("Sun", "04:00", "05:00"), "2026-10-25T02:00:00+02:00", 3 * time.Hour},
		{"wholly within a skipped hour, so only a week later",
			berlin("Sun", "02:00", "03:00"), "2027-03-27T12:00:00+01:00", 7*24*time.Hour + 13*time.Hour},
		{"begins within a repeated hour, so at its second time",
			berlin("Sun", "02:30", "03:30"), "2026-10-25T02:45:00+02:00", 45 * time.Minute},
		{"ends within a repeated hour, so at its first time",
			berlin("Sun", "01:30", "02:30"), "2026-10-25T02:15:00+01:00", 7*24*time.Hour - 45*time.Minute},
		{"the whole repeated hour is open twice", berlin("Sun", "02:00", "03:00"), "2026-10-25T02:59:00+01:00", 0},
		{"on a skipped day, so only a week later",
			v1alpha1.Window{Days: []v1alpha1.Day{"Fri"}, Start: "01:00", End: "05:00", TimeZone: "Pacific/Apia"}, "2011-12-31T02:00:00+14:00", 6*24*time.Hour - time.Hour},
		{"every day",
			v1alpha1.Window{Start: "01:00", End: "05:00", TimeZone: "Europe/Berlin"}, "2026-11-18T00:00:00+01:00", time.Hour},
		{"always",
			v1alpha1.Window{Start: "00:00", End: "00:00", TimeZone: "Europe/Berlin"}, "2026-11-18T00:00:00+01:00", 0},
		{"zone Local",
			v1alpha1.Window{Start: "00:00", End: "00:00", TimeZone: "Local"}, "2026-11-18T01:00:00+01:00", Never},
		{"without a zone", v1alpha1.Window{Start: "00:00", End: "00:00"}, "2026-11-18T01:00:00+01:00", Never},
	} {
		if got := UntilOpen(tc.w, at(tc.now)); got != tc.opens {
			t.Errorf("%s: opens in %s, want %s", tc.name, got, tc.opens)
		}
	}
}

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
