// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/insight"
)

// pastPatience is how long the page of a database waits for the cloud. After that, it comes without plots, and the next
// request shows them.
const pastPatience = 2 * time.Second

// span is the time range of a plot.
type span struct {
	Label  string
	length time.Duration
	period time.Duration // of an average; Cloud Eye offers fixed ones
}

func spans() []span {
	return []span{{"24 hours", 24 * time.Hour, 5 * time.Minute}, {"14 days", 14 * 24 * time.Hour, time.Hour}}
}

// pasts holds the measurements of each span.
type pasts []autopilot.Past

func (p *pages) askPasts(ctx context.Context, namespace, name string) (pasts, error) {
	var all pasts
	for _, s := range spans() {
		past, err := p.Past(ctx, namespace, name, s.period, p.Now().Add(-s.length))
		if err != nil {
			return nil, err
		}
		all = append(all, drawable(past))
	}
	return all, nil
}

// outlook describes when the database becomes read-only.
func (v *view) outlook(label string, f insight.Forecast) string {
	in := func(t time.Time) string { return "in " + roughly(t.Sub(v.now)) }
	rate := fmt.Sprintf("%s GB per day, between %s and %s", amount(f.Middle), amount(f.Slow), amount(f.Fast))
	horizon := roughly(f.Horizon.Sub(v.now))
	text := "At the rate of the last " + label + ": "
	switch f.Outlook {
	case insight.OutlookReadOnly:
		return "The database is read-only at this level."
	case insight.OutlookFills:
		text += fmt.Sprintf("read-only %s, if the volume does not grow. ", in(f.Likely))
		switch {
		case f.Latest.IsZero():
			text += fmt.Sprintf("It may be as early as %s, or not within %s", in(f.Earliest), horizon)
		case f.Latest.Sub(f.Earliest) < f.Likely.Sub(v.now)/20:
			text += "The rate did not vary"
		default:
			text += fmt.Sprintf("It may be as early as %s, or as late as %s", in(f.Earliest), in(f.Latest))
		}
	case insight.OutlookMayFill:
		text += fmt.Sprintf("most likely not read-only within %s. At its fastest it would be %s", horizon, in(f.Earliest))
	case insight.OutlookHolds:
		text += fmt.Sprintf("not read-only within %s. There is no forecast beyond that", horizon)
	default:
		return text + "no forecast; " + f.Why + "."
	}
	return text + ". The used space changes by " + rate + "."
}

// roughly returns a duration rounded to the precision of a forecast.
func roughly(d time.Duration) string {
	for _, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		if d > 24*unit {
			return duration.HumanDuration(d.Round(unit))
		}
	}
	return duration.HumanDuration(max(d, time.Second))
}

// amount returns x with one digit after the point if it is below 10, else with none.
func amount(x float64) string {
	if x > -10 && x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}
