// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/autopilot/window"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// maxDeferral is how long a deferred change waits for the window. A window opens at least once a week, so an older
// request missed its window and needs a new alarm.
const maxDeferral = 7 * 24 * time.Hour

// UntilWindowOpens returns how long the policy's window stays closed; 0 means that a flavor may change now.
func (c Case) UntilWindowOpens() time.Duration {
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

// PendingDeferral returns the deferred change that still waits for the window, as the present policy sees it. It
// returns nil if the change is older than maxDeferral, if the flavor has changed since it was deferred, or if the
// policy has no window any more. It omits a metric that is off, or whose value is unknown or below the present threshold.
func (c Case) PendingDeferral() *v1alpha1.Deferred {
	w := c.Status.Deferred
	if w == nil || c.Spec.Flavor.Window == nil || c.Now.Sub(w.LastTime.Time) > maxDeferral {
		return nil
	}
	if last, ok := change.LastChanged(c.Status.Changes, v1alpha1.KindFlavor); ok && last.After(w.FirstTime.Time) {
		return nil
	}
	due := w.DeepCopy()
	due.Metrics, due.ValuePercent, due.MorePercents = nil, "", nil
	for i, text := range deferredValues(w) {
		row, unknown := LookupMetric(w.Metrics[i])
		if value, err := strconv.ParseFloat(text, 64); errors.Join(unknown, err) == nil && row.Enabled(c.Spec) &&
			value >= float64(row.ConfiguredThreshold(c.Spec)) {
			addDeferred(due, row.Metric, text)
		}
	}
	if len(due.Metrics) == 0 {
		return nil
	}
	return due
}

// deferredValues returns the value of each metric that has one.
func deferredValues(w *v1alpha1.Deferred) []string {
	values := slices.Concat([]string{w.ValuePercent}, w.MorePercents)
	return values[:min(len(values), len(w.Metrics))]
}

func addDeferred(w *v1alpha1.Deferred, m v1alpha1.Metric, percent string) {
	if w.Metrics = append(w.Metrics, m); len(w.Metrics) == 1 {
		w.ValuePercent = percent
		return
	}
	w.MorePercents = append(w.MorePercents, percent)
}

// DueDeferred returns an alarm for each metric of a deferred change whose window is open. It omits the metrics whose
// alarms are in force now.
func (c Case) DueDeferred(inForce []Alarm) []Alarm {
	w := c.PendingDeferral()
	if w == nil || c.UntilWindowOpens() > 0 {
		return nil
	}
	var due []Alarm
	for i, text := range deferredValues(w) {
		m := w.Metrics[i]
		percent, err := strconv.ParseFloat(text, 64)
		if err != nil || slices.ContainsFunc(inForce, func(a Alarm) bool { return a.Metric == m }) {
			continue
		}
		due = append(due, Alarm{
			Metric: m, State: v1alpha1.StateAlarm, StateTime: w.FirstTime.Time, DeferredTime: w.LastTime.Time,
			Evidence: Evidence{Time: w.LastTime.Time, Percent: percent},
		})
	}
	return due
}

// DeferToWindow returns the record of a change that waits for the window. The metrics of these alarms come first, those
// of an earlier deferral follow with their last values.
func (c Case) DeferToWindow(alarms []Alarm) *v1alpha1.Deferred {
	w := &v1alpha1.Deferred{FirstTime: *Seconds(c.Now), LastTime: *Seconds(c.Now)}
	for _, a := range alarms {
		addDeferred(w, a.Metric, strconv.FormatFloat(a.Evidence.Percent, 'f', 1, 64))
	}
	if last := c.PendingDeferral(); last != nil {
		w.FirstTime = last.FirstTime
		if c.Now.Sub(last.LastTime.Time) < FoldEvery { // writing it in every round would change the status each time
			w.LastTime = last.LastTime
		}
		for i, text := range deferredValues(last) {
			if !slices.Contains(w.Metrics, last.Metrics[i]) {
				addDeferred(w, last.Metrics[i], text)
			}
		}
	}
	return w
}
