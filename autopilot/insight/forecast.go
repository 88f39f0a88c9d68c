// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
)

const (
	// forecastBuckets is the number of intervals into which the measurements are grouped, so that a short burst has
	// little weight.
	forecastBuckets = 24
	// forecastFewest is the minimum number of measurements. With fewer, or with half of the buckets empty, there is no
	// forecast.
	forecastFewest = 12
	// forecastReach limits a forecast to so many times the time span of the measurements.
	forecastReach = 7
	// forecastStale is how many intervals between two measurements, in addition to staleGrace, the newest one may be
	// old.
	forecastStale = 3
	// forecastRarely is the share of rates that are slower than Slow, and the share that are faster than Fast.
	forecastRarely = 0.1
)

// staleGrace is twice the delay that Cloud Eye's data may have (docs/cloud-facts.md#metrics).
const staleGrace = 20 * time.Minute

// Outlook is the future of a volume that does not grow.
type Outlook string

// The outlooks.
const (
	OutlookUnknown  Outlook = "Unknown"  // there is no forecast, and Why gives the reason
	OutlookReadOnly Outlook = "ReadOnly" // the database is read-only now
	OutlookFills    Outlook = "Fills"    // read-only at the time Likely
	OutlookMayFill  Outlook = "MayFill"  // read-only at the time Earliest at a rare rate, else not before Horizon
	OutlookHolds    Outlook = "Holds"    // not read-only before Horizon
)

// Forecast is when a database becomes read-only if its volume does not grow and the used space changes as it did
// before.
type Forecast struct {
	Outlook Outlook
	Why     string // set with OutlookUnknown
	// Slow, Middle and Fast are rates in GB per day: the slowest tenth of all rates, the median, and the fastest tenth.
	Slow, Middle, Fast float64
	// Earliest, Likely and Latest belong to Fast, Middle and Slow. Zero means not before Horizon.
	Earliest, Likely, Latest time.Time
	Horizon                  time.Time // the end of the forecast
}

// ForecastReadOnly returns the forecast for measurements of the used space in GB, oldest first. It derives the rates
// from all pairs of buckets, so that a changing rate leads to different times. It does not modify the measurements.
func ForecastReadOnly(used []autopilot.Point, sizeGB int, now time.Time) Forecast {
	unknown := func(format string, args ...any) Forecast {
		return Forecast{Outlook: OutlookUnknown, Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case sizeGB <= 0:
		return unknown("the size of the volume is not known")
	case len(used) == 0:
		return unknown("Cloud Eye has no measurement")
	}
	first, last := used[0], used[len(used)-1]
	span := last.Time.Sub(first.Time)
	if last.Value >= autopilot.ReadOnlyAt(sizeGB) {
		return Forecast{Outlook: OutlookReadOnly}
	}
	if len(used) < forecastFewest {
		return unknown("it takes %d measurements, and there are %d", forecastFewest, len(used))
	}
	if span <= 0 {
		return unknown("all measurements are of the same time")
	}
	if age := now.Sub(last.Time); age > staleGrace+forecastStale*span/time.Duration(len(used)-1) {
		return unknown("the newest measurement is from %s", autopilot.TimeText(last.Time))
	}
	parts := gather(used, first.Time, span)
	rates, from := ratesOf(parts), parts[len(parts)-1]
	if rates == nil {
		return unknown("more than half of the measurements are missing")
	}
	f := Forecast{
		Slow: quantile(rates, forecastRarely), Middle: quantile(rates, 0.5), Fast: quantile(rates, 1-forecastRarely),
		Horizon: last.Time.Add(forecastReach * span),
	}
	reach := func(perDay float64) time.Time {
		days := (autopilot.ReadOnlyAt(sizeGB) - from.Value) / perDay
		if perDay <= 0 || days > f.Horizon.Sub(from.Time).Hours()/24 {
			return time.Time{}
		}
		return from.Time.Add(time.Duration(days * 24 * float64(time.Hour)))
	}
	f.Earliest, f.Likely, f.Latest = reach(f.Fast), reach(f.Middle), reach(f.Slow)
	switch {
	case !f.Likely.IsZero():
		f.Outlook = OutlookFills
	case !f.Earliest.IsZero():
		f.Outlook = OutlookMayFill
	default:
		f.Outlook = OutlookHolds
	}
	return f
}

// gather returns the median of each bucket that has measurements, oldest first. The buckets divide the time span that
// begins at first. No point may be earlier.
func gather(points []autopilot.Point, first time.Time, span time.Duration) []autopilot.Point {
	buckets := make([][]autopilot.Point, forecastBuckets)
	for _, p := range points {
		i := min(int(forecastBuckets*p.Time.Sub(first)/span), forecastBuckets-1)
		buckets[i] = append(buckets[i], p)
	}
	var middles []autopilot.Point
	for _, b := range buckets {
		if len(b) == 0 {
			continue
		}
		slices.SortFunc(b, func(x, y autopilot.Point) int { return cmp.Compare(x.Value, y.Value) })
		middles = append(middles, b[len(b)/2])
	}
	slices.SortFunc(middles, func(x, y autopilot.Point) int { return x.Time.Compare(y.Time) })
	return middles
}

// ratesOf returns the rates between all parts that are at least a quarter of the time span apart, in GB per day,
// slowest first. It returns nil if too many buckets are empty.
func ratesOf(parts []autopilot.Point) []float64 {
	if len(parts) < forecastBuckets/2 {
		return nil
	}
	far := parts[len(parts)-1].Time.Sub(parts[0].Time) / 4
	var rates []float64
	for i, a := range parts {
		for _, b := range parts[i+1:] {
			if d := b.Time.Sub(a.Time); d >= far {
				rates = append(rates, (b.Value-a.Value)/(d.Hours()/24))
			}
		}
	}
	slices.Sort(rates)
	return rates
}

// quantile returns the value below which that share of the sorted values lies.
func quantile(sorted []float64, q float64) float64 {
	return sorted[int(math.Round(q*float64(len(sorted)-1)))]
}
