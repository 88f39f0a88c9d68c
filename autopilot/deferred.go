// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/window"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// maxDeferral is how long a deferred change waits for the window. A window opens at least once a week, so an older
// request missed its window and needs a new alarm.
const maxDeferral = 7 * 24 * time.Hour

// untilWindowOpens returns how long the policy's window stays closed; 0 means that a flavor may change now.
func (c Case) untilWindowOpens() time.Duration {
	if c.Spec.Flavor.Window == nil {
		return 0
	}
	return window.UntilOpen(*c.Spec.Flavor.Window, c.Now)
}

// UntilWindowCloses returns how long a flavor may still change; 0 means that the window is closed. It returns false if
// the policy has no window.
func UntilWindowCloses(spec v1alpha1.Spec, now time.Time) (remaining time.Duration, ok bool) {
	if spec.Flavor.Window == nil {
		return 0, false
	}
	return window.UntilClose(*spec.Flavor.Window, now), true
}

// pendingDeferral returns the deferred change that still waits for the window. It returns nil if that change is older
// than maxDeferral, or if the flavor has changed since it was deferred.
func (c Case) pendingDeferral() *v1alpha1.Deferred {
	w := c.Status.Deferred
	if w == nil || c.Now.Sub(w.LastTime.Time) > maxDeferral {
		return nil
	}
	if last, ok := lastChanged(c.Status.Changes, v1alpha1.KindFlavor); ok && last.After(w.FirstTime.Time) {
		return nil
	}
	return w
}

// dueDeferred returns an alarm for each metric of a deferred change whose window is open. It omits the metrics whose
// alarms are in force now.
func (c Case) dueDeferred(inForce []Alarm) []Alarm {
	w := c.pendingDeferral()
	if w == nil || c.Instance == nil || c.ClaimedBy != "" || !c.Enabled || c.Mode == v1alpha1.ModeOff ||
		Validate(c.Spec, v1alpha1.KindFlavor) != nil || c.untilWindowOpens() > 0 {
		return nil
	}
	var due []Alarm
	for i, m := range w.Metrics {
		metric, err := LookupMetric(m)
		if err != nil || !metric.Enabled(c.Spec) ||
			slices.ContainsFunc(inForce, func(a Alarm) bool { return a.Metric == m }) {
			continue
		}
		due = append(due, Alarm{
			Metric: m, State: v1alpha1.StateAlarm, StateTime: w.FirstTime.Time, DeferredTime: w.LastTime.Time,
			Evidence: Evidence{Time: w.LastTime.Time, Percent: float64(metric.ConfiguredThreshold(c.Spec))},
		})
		if percent, err := strconv.ParseFloat(w.ValuePercent, 64); i == 0 && err == nil {
			due[len(due)-1].Evidence.Percent = percent
		}
	}
	return due
}

// deferToWindow returns the record of a change that waits for the window. The metrics of these alarms come first, those
// of an earlier deferral follow. The value is that of the first metric; the others are only known to have been over
// their threshold.
func (c Case) deferToWindow(alarms []Alarm) *v1alpha1.Deferred {
	w := &v1alpha1.Deferred{FirstTime: *seconds(c.Now), LastTime: *seconds(c.Now)}
	for _, a := range alarms {
		w.Metrics = append(w.Metrics, a.Metric)
	}
	if last := c.pendingDeferral(); last != nil {
		w.FirstTime = last.FirstTime
		if c.Now.Sub(last.LastTime.Time) < foldEvery { // writing it in every round would change the status each time
			w.LastTime = last.LastTime
		}
		for _, m := range last.Metrics {
			if !slices.Contains(w.Metrics, m) {
				w.Metrics = append(w.Metrics, m)
			}
		}
	}
	w.ValuePercent = strconv.FormatFloat(alarms[0].Evidence.Percent, 'f', 1, 64)
	return w
}
