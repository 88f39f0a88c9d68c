// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"
	"time"
)

func TestAnHourCountsWhatIsNotOlder(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 22, 12, 0, 30, 0, time.UTC)
	for name, tc := range map[string]struct {
		added []time.Duration // after the beginning
		asked time.Duration
		want  int
	}{
		"nothing":                           {nil, 0, 0},
		"at once":                           {[]time.Duration{0}, 0, 1},
		"several in a minute":               {[]time.Duration{0, 0, 20 * time.Second}, 25 * time.Second, 3},
		"all minutes of an hour":            {minutes(60), 59 * time.Minute, 60},
		"the oldest minute leaves":          {minutes(60), time.Hour, 59},
		"its place is used again":           {append(minutes(60), time.Hour), time.Hour, 60},
		"just under an hour":                {[]time.Duration{0}, time.Hour - 31*time.Second, 1},
		"an hour and more":                  {[]time.Duration{0}, time.Hour, 0},
		"a day later in the same minute":    {[]time.Duration{0, 24 * time.Hour}, 24 * time.Hour, 1},
		"a clock that was put back":         {[]time.Duration{5 * time.Minute}, 0, 0},
		"a clock that was put back an hour": {[]time.Duration{time.Hour, 0}, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h hour[string]
			for _, after := range tc.added {
				h.add("forged", begin.Add(after))
				h.add("stored", begin.Add(after))
			}
			if n := h.count("forged", begin.Add(tc.asked)); n != tc.want {
				t.Errorf("%d, want %d", n, tc.want)
			}
			if n := h.count("expired", begin.Add(tc.asked)); n != 0 {
				t.Errorf("%d of what never came", n)
			}
		})
	}
}

func minutes(n int) (all []time.Duration) {
	for i := range n {
		all = append(all, time.Duration(i)*time.Minute)
	}
	return all
}
