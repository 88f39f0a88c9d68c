// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// CapSpan is the time span of the measurements from which the date of the cap is computed.
	CapSpan = 14 * 24 * time.Hour
	// CapPeriod is the period of their averages. The last day has 24 of them.
	CapPeriod = time.Hour
	// capEvery is how often the date is computed. Each time costs a share of a request.
	capEvery = 24 * time.Hour
	// capAhead is when a person should plan a larger cap or a clean-up.
	capAhead = 14 * 24 * time.Hour
	// capSoon is when a person must act, even over a weekend.
	capSoon = 72 * time.Hour
)

// CapForecast returns the forecast of CapForecastOf for the volume's cap.
func (c Case) CapForecast(used []Point) v1alpha1.CapForecast {
	return CapForecastOf(used, c.maxGB(), c.Now)
}

// CapForecastOf returns when a volume of maxGB would be read-only, from hourly averages of the used space in GB, oldest
// first: the earlier one of the forecasts from all of them and from their last day.
func CapForecastOf(used []Point, maxGB int, now time.Time) v1alpha1.CapForecast {
	found := v1alpha1.CapForecast{Time: *seconds(now), MaxGB: ClampInt32(maxGB)}
	var day []Point
	for i, p := range used {
		if now.Sub(p.Time) <= 25*time.Hour {
			day = used[i:]
			break
		}
	}
	volume := fmt.Sprintf("A volume of %d GB (spec.storage.maxGB)", maxGB)
	long, short := ForecastReadOnly(used, maxGB, now), ForecastReadOnly(day, maxGB, now)
	by, earliest := "14 days", long.Likely
	if !short.Likely.IsZero() && (earliest.IsZero() || short.Likely.Before(earliest)) {
		by, earliest = "day", short.Likely
	}
	switch {
	case long.Outlook == OutlookReadOnly || short.Outlook == OutlookReadOnly:
		found.ReadOnlyTime = seconds(now)
		found.Message = volume + " would be read-only at the present used space"
	case !earliest.IsZero():
		found.ReadOnlyTime = seconds(earliest)
		found.Message = fmt.Sprintf("%s would be read-only at %s, at the rate of the last %s", volume, at(earliest), by)
	case long.Outlook == OutlookUnknown:
		found.Message = "It is not known when the volume reaches spec.storage.maxGB: " + long.Why
	default:
		found.Message = fmt.Sprintf("%s would not be read-only before %s, at the rate of the last 14 days", volume, at(long.Horizon))
	}
	return found
}

// NeedsCapForecast reports whether the date of the cap should be computed: the last one is a day old, or the volume has
// grown or the cap has changed since.
func (c Case) NeedsCapForecast() bool {
	last := c.Status.CapForecast
	if c.Instance == nil || !c.Instance.Measurable() || len(c.Status.Intents()) > 0 {
		return false
	}
	if last == nil || int(last.MaxGB) != c.maxGB() || c.Now.Sub(last.Time.Time) >= capEvery {
		return true
	}
	grown, ok := lastChanged(c.Status.Changes, v1alpha1.KindVolume)
	return ok && grown.After(last.Time.Time)
}

// capWarning returns a warning if the volume will reach its cap within 14 days.
func (c Case) capWarning() []Warning {
	last := c.Status.CapForecast
	if last == nil || last.ReadOnlyTime == nil || c.Now.Sub(last.Time.Time) >= 2*capEvery {
		return nil
	}
	const advice = ". Raise maxGB or free space"
	switch ahead := last.ReadOnlyTime.Sub(c.Now); {
	case ahead < capSoon:
		return []Warning{{ReasonCapSoon, last.Message + advice}}
	case ahead < capAhead:
		return []Warning{{ReasonCapAhead, last.Message + advice}}
	}
	return nil
}
