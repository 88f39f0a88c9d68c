// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// lookEvery is the least time between two looks at a database. Each look costs up to three requests.
	lookEvery = time.Hour
	// changeSpan is how long after the last change of a flavor its load is still read.
	changeSpan = 3 * time.Hour
)

// Due says which parts of the history a look has to read.
type Due struct {
	Cause bool // of a growth that was requested or is held
	Load  bool // of a flavor that was requested, or whose first hour is over
	Cap   bool // for the date of the cap
}

// Any reports whether a part is due.
func (d Due) Any() bool { return d != Due{} }

// DueNow returns what a look has to read now. There is at most one look an hour, whether it succeeds or not. Nothing is
// read of an instance that another object manages.
func DueNow(c autopilot.Case) (d Due) {
	if c.Instance == nil || !c.Instance.Measurable() || c.Claim.By != "" {
		return d
	}
	last := v1alpha1.Insight{}
	if c.Status.Insight != nil {
		last = *c.Status.Insight
	}
	if c.Now.Sub(last.LookTime.Time) < lookEvery {
		return d
	}
	before, after := hoursDue(c, last.Flavor)
	return Due{Cause: causeDue(c, last.Cause), Load: before || after, Cap: capDue(c, last.Cap)}
}

// causeDue reports whether a growth was requested or is held for which no cause was read successfully.
func causeDue(c autopilot.Case, last *v1alpha1.Cause) bool {
	isOlder := func(t time.Time) bool { return last == nil || last.FailedTime != nil || isBefore(last.Time.Time, t) }
	if slices.ContainsFunc(c.Status.Intents(), func(i *v1alpha1.Intent) bool {
		return i.Kind == v1alpha1.KindVolume && isOlder(i.DecisionTime.Time)
	}) {
		return true
	}
	// A culprit is read again every hour, so that its warning ends with it.
	isHeld := slices.ContainsFunc(c.Status.Held, func(h v1alpha1.Held) bool { return h.Kind == v1alpha1.KindVolume })
	if (isHeld || isCulprit(last)) && isOlder(c.Now.Add(-lookEvery)) {
		return true
	}
	i := autopilot.LastGrowth(c.Status.Changes)
	return i >= 0 && c.Now.Sub(c.Status.Changes[i].CompletionTime.Time) < changeSpan &&
		isOlder(decidedAt(c.Status.Changes[i]))
}

// capDue reports whether the date of the cap is a day old or could not be read, or is of another size. While a volume
// grows, its date is not read.
func capDue(c autopilot.Case, last *v1alpha1.CapForecast) bool {
	if slices.ContainsFunc(c.Status.Intents(), func(i *v1alpha1.Intent) bool { return i.Kind == v1alpha1.KindVolume }) {
		return false
	}
	return last == nil || last.FailedTime != nil || int(last.MaxGB) != capOf(c) || c.Now.Sub(last.Time.Time) >= capEvery
}

// capOf returns the size in GB for which the date is computed: the cap, or the volume if that is larger.
func capOf(c autopilot.Case) int { return max(c.MaxGB(), c.Instance.VolumeGB) }

// isBefore reports whether a time that is stored in seconds is before another one.
func isBefore(stored, t time.Time) bool { return stored.Before(t.Truncate(time.Second)) }

// decidedAt returns when a change was decided. A change from an earlier version may lack that time.
func decidedAt(ch v1alpha1.Change) time.Time {
	if ch.DecisionTime != nil {
		return ch.DecisionTime.Time
	}
	return autopilot.StartTime(ch)
}

// flavorChange is a change of flavor that we requested.
type flavorChange struct {
	to        string
	metrics   []v1alpha1.Metric // whose alarms led to it
	decided   time.Time
	completed time.Time // zero if it is not completed
}

// lastFlavor returns the change of flavor that we requested last. ok is false if none is pending, and none has ended
// within changeSpan.
func lastFlavor(c autopilot.Case) (f flavorChange, ok bool) {
	for _, i := range c.Status.Intents() {
		if i.Kind == v1alpha1.KindFlavor {
			return flavorChange{to: i.To, metrics: i.Metrics, decided: i.DecisionTime.Time}, true
		}
	}
	ours := c.OurFlavorChanges()
	if len(ours) == 0 || c.Now.Sub(ours[0].CompletionTime.Time) >= changeSpan {
		return f, false
	}
	f = flavorChange{to: ours[0].To, metrics: ours[0].Metrics, decided: decidedAt(ours[0])}
	if ours[0].Outcome == v1alpha1.OutcomeCompleted {
		f.completed = ours[0].CompletionTime.Time
	}
	return f, true
}

// isOf reports whether a stored insight is about this change, and not about an earlier one to the same flavor.
func (f flavorChange) isOf(stored *v1alpha1.FlavorInsight) bool {
	return stored != nil && stored.To == f.to && !isBefore(stored.Time.Time, f.decided)
}

// hoursDue reports whether the hour before the decision on the last flavor has to be read, and whether the first hour
// with it.
func hoursDue(c autopilot.Case, last *v1alpha1.FlavorInsight) (before, after bool) {
	f, ok := lastFlavor(c)
	if !ok {
		return false, false
	}
	isNew := !f.isOf(last)
	isOver := !f.completed.IsZero() && c.Now.Sub(f.completed) >= LoadSpan+loadDelay
	before = isNew || last.FailedTime != nil && last.Before == nil
	return before, isOver && (isNew || last.After == nil)
}

// LoadSince returns the begin of the series for the load: the hour before the decision on the last flavor, its first
// hour or, if neither is due, the last hour. It goes back at most a day, so that one request returns the series.
func LoadSince(c autopilot.Case) time.Time {
	var last *v1alpha1.FlavorInsight
	if c.Status.Insight != nil {
		last = c.Status.Insight.Flavor
	}
	since := c.Now.Add(-LoadSpan)
	f, _ := lastFlavor(c)
	switch before, after := hoursDue(c, last); {
	case before:
		since = f.decided.Add(-LoadSpan)
	case after:
		since = f.completed
	}
	if oldest := c.Now.Add(-causeSpan); since.Before(oldest) {
		return oldest
	}
	return since
}

// History is what a look has read. A part that is not due has neither measurements nor an error.
type History struct {
	Cause, Load       autopilot.Series
	Used              []autopilot.Point // hourly averages of autopilot.CapSpan
	CauseErr, LoadErr error
	UsedErr           error
}

// Update returns status.insight after a look. A part that could not be read keeps what was found before, with the time
// of the failure. Update is a pure function.
func Update(c autopilot.Case, d Due, h History) *v1alpha1.Insight {
	next := c.Status.Insight.DeepCopy()
	if next == nil {
		next = &v1alpha1.Insight{}
	}
	now := *autopilot.Seconds(c.Now)
	next.LookTime = now
	failed := func(err error) *metav1.Time {
		if err == nil {
			return nil
		}
		return &now
	}
	if d.Cause {
		if h.CauseErr == nil {
			found := CauseOf(*c.Instance, h.Cause, c.Now)
			next.Cause = &found
		} else if next.Cause == nil {
			next.Cause = &v1alpha1.Cause{Name: v1alpha1.CauseUnknown, Time: now,
				Message: "The cause is not known: Cloud Eye's history could not be read"}
		}
		next.Cause.FailedTime = failed(h.CauseErr)
	}
	if d.Load {
		updateFlavor(c, next, h, failed(h.LoadErr))
	}
	if d.Cap {
		if h.UsedErr == nil {
			found := CapForecastOf(h.Used, c.Instance.VolumeGB, c.MaxGB(), c.Now)
			next.Cap = &found
		} else if next.Cap == nil {
			next.Cap = &v1alpha1.CapForecast{MaxGB: autopilot.ClampInt32(capOf(c)), Time: now,
				Message: "It is not known when the volume reaches spec.storage.maxGB: Cloud Eye's history could not be read"}
		}
		next.Cap.FailedTime = failed(h.UsedErr)
	}
	return next
}

// updateFlavor enters the load of the hours that are due. The findings belong to the hour before the decision.
func updateFlavor(c autopilot.Case, next *v1alpha1.Insight, h History, failed *metav1.Time) {
	f, ok := lastFlavor(c)
	if !ok {
		return
	}
	before, after := hoursDue(c, next.Flavor)
	if !f.isOf(next.Flavor) {
		next.Flavor = &v1alpha1.FlavorInsight{To: f.to, Time: *autopilot.Seconds(c.Now)}
	}
	found := next.Flavor
	found.FailedTime = failed
	if failed != nil {
		return
	}
	found.Time = *autopilot.Seconds(c.Now)
	if before {
		found.Before, found.Findings = LoadOf(h.Load, f.decided), Findings(*c.Instance, h.Load, f.metrics, f.decided)
	}
	if after {
		found.After = LoadOf(h.Load, f.completed.Add(LoadSpan))
	}
}

// Warnings returns the warnings that follow from status.insight.
func Warnings(c autopilot.Case) []autopilot.Warning {
	if c.Instance == nil {
		return nil
	}
	return slices.Concat(causeWarning(c), capWarning(c))
}

// credible returns the series without values that cannot be true: a used space, or files written in a minute, that are
// larger than the volume. A series without a value of the last 30 minutes is left out, because a cause that it names
// would be shown as the present one.
func credible(s autopilot.Series, inst autopilot.Instance, now time.Time) autopilot.Series {
	clean := make(autopilot.Series)
	for metric, points := range s {
		most := math.MaxFloat64
		switch {
		case inst.VolumeGB <= 0:
		case metric == usedSpaceGB:
			most = float64(inst.VolumeGB)
		case metric == tempBytesPerMin:
			most = float64(inst.VolumeGB) * 1e9
		}
		clean[metric] = crediblePoints(points, most, now)
		if n := len(clean[metric]); n > 0 && now.Sub(clean[metric][n-1].Time) > causeStale {
			delete(clean, metric)
		}
	}
	return clean
}

// crediblePoints returns the points that can be true.
func crediblePoints(points []autopilot.Point, most float64, now time.Time) []autopilot.Point {
	var clean []autopilot.Point
	for _, p := range points {
		if p.IsCredible(most, now) {
			clean = append(clean, p)
		}
	}
	return clean
}
