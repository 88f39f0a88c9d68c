// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// NewSize returns the size in GB that the volume should have for the used space of an alarm, at most maxGB. It is the
// present size if that is large enough, or if the volume is larger than maxGB.
func (c Case) NewSize(a Alarm, maxGB int) int {
	has, s := c.Instance.VolumeGB, c.Spec.Storage
	g := growth{
		stepGB: nextStep(has, s, c.Status.Changes, c.Now), maxGB: maxGB,
		thresholdPercent: int(s.ThresholdPercent), readOnly: c.IsReadOnly(a),
	}
	return g.newSize(has, c.usedAtLeast(a))
}

// usedAtLeast returns the used space of an alarm in GB. If its measurement is from before the database became
// read-only, at least the limit counts as used, so that the growth does not wait for the next measurement.
func (c Case) usedAtLeast(a Alarm) float64 {
	used, readOnly := a.Evidence.UsedGB, c.ReadOnly(a.Evidence)
	if c.IsReadOnly(a) && Seconds(a.Evidence.Time).Before(&readOnly.SinceTime) {
		return max(used, ReadOnlyAt(c.Instance.VolumeGB))
	}
	return used
}

// IsFull reports whether the used space is at or over the threshold of the present volume.
func (c Case) IsFull(e Evidence) bool {
	return c.Instance != nil && atThreshold(c.Instance.VolumeGB, e.UsedGB, int(c.Spec.Storage.ThresholdPercent))
}

// IsNearlyReadOnly reports whether the database is read-only, or becomes so with 2 GB more.
func (c Case) IsNearlyReadOnly(e Evidence) bool {
	return c.ReadOnly(Evidence{}) != nil || e.Present() && NearlyReadOnly(c.Instance.VolumeGB, e.UsedGB)
}

// ReadOnly returns status.readOnly after a measurement of the used space was read. The cloud makes a database read-only
// at one limit and writable again at a lower one, and it does not report that. So the status keeps it.
func (c Case) ReadOnly(e Evidence) *v1alpha1.ReadOnly {
	was := c.Status.ReadOnly
	if c.Instance == nil || c.Instance.VolumeGB == 0 {
		return was
	}
	isFull := c.Instance.Status == StatusStorageFull
	isWritable := e.Present() && writable(c.Instance.VolumeGB, e.UsedGB) // also after a growth since the measurement
	isAtLimit := e.Present() && readOnlyNow(c.sizeAt(e.Time), e.UsedGB)
	switch {
	case was == nil && isFull:
		return &v1alpha1.ReadOnly{SinceTime: *Seconds(c.Now)}
	case was == nil && isAtLimit && !isWritable:
		return &v1alpha1.ReadOnly{SinceTime: *Seconds(earlier(e.Time, c.Now))}
	case was != nil && !isFull && isWritable && Seconds(e.Time).After(was.SinceTime.Time):
		return nil
	}
	return was
}

// IsReadOnly reports whether the database is read-only when a decision on its storage is made. After a growth it is not
// known before the next measurement, whoever made the growth.
func (c Case) IsReadOnly(a Alarm) bool {
	grown, ok := change.LastChanged(c.Status.Changes, v1alpha1.KindVolume)
	isMeasured := !ok || !a.Evidence.Present() || a.Evidence.Time.After(grown)
	return Row(a.Metric).InGB() && isMeasured && c.ReadOnly(a.Evidence) != nil
}

// earlier returns the earlier time. A measurement may be dated minutes ahead.
func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}
