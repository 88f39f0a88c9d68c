// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Point is one measurement.
type Point struct {
	Time  time.Time
	Value float64
}

const (
	forecastBuckets = 24  // that the measurements are gathered in, so that a short burst weighs little
	forecastFewest  = 12  // measurements, and half of the buckets: with less nothing is said
	forecastReach   = 7   // times as far ahead as the measurements reach back, and no farther
	forecastStale   = 3   // distances between two measurements that the newest may be old, and staleGrace
	forecastRarely  = 0.1 // of the rates are slower than the slow one, and faster than the fast one
)

// staleGrace is how late Cloud Eye's data may be (docs/cloud-facts.md#metrics), twice over.
const staleGrace = 20 * time.Minute

// Outlook is what can be said of a volume that is not grown.
type Outlook string

// The outlooks.
const (
	OutlookUnknown  Outlook = "Unknown"  // it cannot be told; Why says why
	OutlookReadOnly Outlook = "ReadOnly" // it is read-only now
	OutlookFills    Outlook = "Fills"    // read-only at Likely
	OutlookMayFill  Outlook = "MayFill"  // read-only at Earliest if it goes as fast as it sometimes does; more likely not before Horizon
	OutlookHolds    Outlook = "Holds"    // not before Horizon
)

// Forecast says when a database turns read-only if its volume is not grown and the used space goes on as it did.
type Forecast struct {
	Outlook Outlook
	Why     string // of OutlookUnknown
	// GB per day: as slow as in the slowest tenth of all spells, the middle, as fast as in the fastest tenth.
	Slow, Middle, Fast float64
	// Earliest, Likely and Latest belong to Fast, Middle and Slow. Zero is not before Horizon.
	Earliest, Likely, Latest time.Time
	Horizon                  time.Time // farther the measurements do not allow to look
}

// ReadOnlyAt is the used space in GB at which a database with a volume of that many GB turns read-only.
func ReadOnlyAt(sizeGB int) float64 {
	if sizeGB >= largeVolume {
		return float64(sizeGB - largeReadOnly)
	}
	return min(float64(sizeGB-readOnlyFree), float64(readOnlyUsed*sizeGB)/100)
}

// ForecastReadOnly takes measurements of the used space in GB, oldest first. It compares every part of them with every
// later part: where those rates differ, so do the times it names.
func ForecastReadOnly(used []Point, sizeGB int, now time.Time) Forecast {
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
	if readOnly(sizeGB, last.Value) {
		return Forecast{Outlook: OutlookReadOnly}
	}
	if len(used) < forecastFewest {
		return unknown("it takes %d measurements, and there are %d", forecastFewest, len(used))
	}
	if span <= 0 {
		return unknown("all measurements are of the same time")
	}
	if age := now.Sub(last.Time); age > staleGrace+forecastStale*span/time.Duration(len(used)-1) {
		return unknown("the newest measurement is %s old", age.Round(time.Minute))
	}
	parts := gather(used)
	rates, from := ratesOf(parts), parts[len(parts)-1]
	if rates == nil {
		return unknown("more than half of the measurements are missing")
	}
	f := Forecast{
		Slow: quantile(rates, forecastRarely), Middle: quantile(rates, 0.5), Fast: quantile(rates, 1-forecastRarely),
		Horizon: last.Time.Add(forecastReach * span),
	}
	reach := func(perDay float64) time.Time {
		days := (ReadOnlyAt(sizeGB) - from.Value) / perDay
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

// gather returns the middle of each bucket that has measurements, oldest first.
func gather(points []Point) []Point {
	first, span := points[0].Time, points[len(points)-1].Time.Sub(points[0].Time)
	buckets := make([][]Point, forecastBuckets)
	for _, p := range points {
		i := min(int(forecastBuckets*p.Time.Sub(first)/span), forecastBuckets-1)
		buckets[i] = append(buckets[i], p)
	}
	var middles []Point
	for _, b := range buckets {
		if len(b) == 0 {
			continue
		}
		slices.SortFunc(b, func(x, y Point) int { return cmp.Compare(x.Value, y.Value) })
		middles = append(middles, b[len(b)/2])
	}
	slices.SortFunc(middles, func(x, y Point) int { return x.Time.Compare(y.Time) })
	return middles
}

// ratesOf are those from each part to each later one that is at least a quarter of the whole away, in GB per day, slowest
// first; nil where too much is missing.
func ratesOf(parts []Point) []float64 {
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

func quantile(sorted []float64, q float64) float64 {
	return sorted[int(math.Round(q*float64(len(sorted)-1)))]
}
