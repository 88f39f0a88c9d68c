// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// pastPatience is how long the page of a database waits for the cloud; it comes without plots then, and the next one has them.
const pastPatience = 2 * time.Second

// span is a while that is plotted.
type span struct {
	Label  string
	length time.Duration
	period time.Duration // one of Cloud Eye's
}

func spans() []span {
	return []span{{"24 hours", 24 * time.Hour, 5 * time.Minute}, {"14 days", 14 * 24 * time.Hour, time.Hour}}
}

// pasts are what was measured, one for each span.
type pasts []autopilot.Past

func (p *pages) askPasts(ctx context.Context, namespace, name string) (pasts, error) {
	var all pasts
	for _, s := range spans() {
		past, err := p.Past(ctx, namespace, name, s.period, p.Now().Add(-s.length))
		if err != nil {
			return nil, err
		}
		all = append(all, past)
	}
	return all, nil
}

// outlook says when the database turns read-only, in words.
func (v *view) outlook(label string, f autopilot.Forecast) string {
	in := func(t time.Time) string { return "in " + roughly(t.Sub(v.now)) }
	rate := fmt.Sprintf("%s GB per day, between %s and %s", amount(f.Middle), amount(f.Slow), amount(f.Fast))
	horizon := roughly(f.Horizon.Sub(v.now))
	text := "By the last " + label + ": "
	switch f.Outlook {
	case autopilot.OutlookReadOnly:
		return "The database is read-only at this fill."
	case autopilot.OutlookFills:
		text += fmt.Sprintf("read-only %s, if the volume does not grow. ", in(f.Likely))
		switch {
		case f.Latest.IsZero():
			text += fmt.Sprintf("It may be as early as %s, or not within %s", in(f.Earliest), horizon)
		case f.Latest.Sub(f.Earliest) < f.Likely.Sub(v.now)/20:
			text += "The rate did not vary"
		default:
			text += fmt.Sprintf("It may be as early as %s, or as late as %s", in(f.Earliest), in(f.Latest))
		}
	case autopilot.OutlookMayFill:
		text += fmt.Sprintf("most likely not read-only within %s. At its fastest it would be %s", horizon, in(f.Earliest))
	case autopilot.OutlookHolds:
		text += fmt.Sprintf("not read-only within %s. Farther ahead cannot be told", horizon)
	default:
		return text + "cannot tell; " + f.Why + "."
	}
	return text + ". The used space changes by " + rate + "."
}

// roughly is a time to come, no finer than anybody can know it.
func roughly(d time.Duration) string {
	for _, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		if d > 24*unit {
			return duration.HumanDuration(d.Round(unit))
		}
	}
	return duration.HumanDuration(max(d, time.Second))
}

// amount is a number with as many digits as a reader needs.
func amount(x float64) string {
	if x > -10 && x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
