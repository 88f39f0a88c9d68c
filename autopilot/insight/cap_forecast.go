// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// capEvery is how often the date is computed. Each time costs a share of a request.
	capEvery = 24 * time.Hour
	// capAhead is when a person should plan a larger cap or a clean-up.
	capAhead = 14 * 24 * time.Hour
	// capSoon is when a person must act, even over a weekend.
	capSoon = 72 * time.Hour
)

// CapForecastOf returns when the largest volume that the policy allows would be read-only: one of maxGB, or the present
// volume if that is larger. It is the earlier one of the forecasts from all hourly averages of the used space in GB,
// oldest first, and from their last day. No volume has had more used space than it has GB now.
func CapForecastOf(used []autopilot.Point, volumeGB, maxGB int, now time.Time) v1alpha1.CapForecast {
	volume := fmt.Sprintf("A volume of %d GB (spec.storage.maxGB)", maxGB)
	if volumeGB > maxGB {
		maxGB, volume = volumeGB, fmt.Sprintf("The volume of %d GB, which is larger than spec.storage.maxGB,", volumeGB)
	}
	found := v1alpha1.CapForecast{Time: *autopilot.Seconds(now), MaxGB: autopilot.ClampInt32(maxGB)}
	used = crediblePoints(used, float64(volumeGB), now)
	isRising := stillRises(used)
	used = dailyMaxima(used)
	var day []autopilot.Point
	for i, p := range used {
		if now.Sub(p.Time) <= 25*time.Hour {
			day = used[i:]
			break
		}
	}
	long, short := ForecastReadOnly(used, maxGB, now), ForecastReadOnly(day, maxGB, now)
	by, earliest := "over 14 days", long.Likely
	if isRising && !short.Likely.IsZero() && (earliest.IsZero() || short.Likely.Before(earliest)) {
		by, earliest = "over 24 hours", short.Likely
	}
	switch {
	case long.Outlook == OutlookReadOnly || short.Outlook == OutlookReadOnly:
		found.ReadOnlyTime = autopilot.Seconds(now)
		found.Message = volume + " would be read-only at the present used space"
	case !earliest.IsZero():
		found.ReadOnlyTime = autopilot.Seconds(earliest)
		found.Message = fmt.Sprintf("%s would be read-only at %s, by the growth %s",
			volume, autopilot.TimeText(earliest), by)
	case long.Outlook == OutlookUnknown:
		found.Message = "It is not known when the volume reaches spec.storage.maxGB: " + long.Why
	default:
		found.Message = fmt.Sprintf("%s would not be read-only before %s, by the growth over 14 days",
			volume, autopilot.TimeText(long.Horizon))
	}
	return found
}

// stillRises reports whether the highest value of the last 6 hours is above that of the 6 hours before. An import that
// ended half a day ago is no trend.
func stillRises(used []autopilot.Point) bool {
	highest := [2]float64{}
	for _, p := range used {
		if i := int(used[len(used)-1].Time.Sub(p.Time) / (6 * time.Hour)); i < len(highest) {
			highest[i] = max(highest[i], p.Value)
		}
	}
	return highest[0] > highest[1]
}

// dailyMaxima returns for each measurement the highest value of the 24 hours before it. So a volume that fills every
// day and is cleaned every night has no trend. The first 24 hours have no such value.
func dailyMaxima(used []autopilot.Point) []autopilot.Point {
	var maxima []autopilot.Point
	for i, p := range used {
		if p.Time.Sub(used[0].Time) < 24*time.Hour-autopilot.CapPeriod {
			continue
		}
		highest := p
		for n := i; n >= 0 && p.Time.Sub(used[n].Time) < 24*time.Hour; n-- {
			highest.Value = max(highest.Value, used[n].Value)
		}
		maxima = append(maxima, highest)
	}
	return maxima
}

// capWarning returns a warning if the largest volume that the policy allows will be read-only within 14 days.
func capWarning(c autopilot.Case) []autopilot.Warning {
	if c.Status.Insight == nil || c.Status.Insight.Cap == nil {
		return nil
	}
	last := c.Status.Insight.Cap
	if last.ReadOnlyTime == nil || int(last.MaxGB) != capOf(c) || c.Now.Sub(last.Time.Time) >= 2*capEvery {
		return nil // too old, or of another maxGB
	}
	const advice = ". Raise maxGB or free space"
	switch ahead := last.ReadOnlyTime.Sub(c.Now); {
	case ahead < capSoon:
		return []autopilot.Warning{{Reason: autopilot.ReasonCapSoon, Message: last.Message + advice}}
	case ahead < capAhead:
		return []autopilot.Warning{{Reason: autopilot.ReasonCapAhead, Message: last.Message + advice}}
	}
	return nil
}
