// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// EvidenceAge is the age at which a measurement is too old to decide on. If Cloud Eye does not answer, it also
	// limits the age of a signal.
	EvidenceAge = 30 * time.Minute
	// SettleTime is how long after a signal a state ok of Cloud Eye may still be older than the signal.
	SettleTime = 2 * time.Minute
	// SettleRequeue is when a state that may be older than the signal is read again.
	SettleRequeue = 30 * time.Second
	// ClockSkew is the assumed difference between the cloud's clock and ours.
	ClockSkew = 2 * time.Minute
	// overdueAfter is how much longer than a rule's own periods a volume may be full without an alarm.
	overdueAfter = 10 * time.Minute
	// aheadAtMost is how far in the future a measurement may be dated.
	aheadAtMost = 5 * time.Minute
)

// Evidence is a measurement of Cloud Eye. The zero value means that there is none; missing data counts as neither low
// nor high.
type Evidence struct {
	Time    time.Time
	Percent float64 // for storage: the percentage that Cloud Eye reports
	UsedGB  float64 // storage only
	Missing string  // why Cloud Eye has no sound value, for each source; then it is that of a message, or there is none
}

// Present reports whether there is a measurement.
func (e Evidence) Present() bool { return !e.Time.IsZero() }

// Alarm holds what is known about the alarm of one metric when a decision is made.
type Alarm struct {
	Metric v1alpha1.Metric
	// State is the state in Cloud Eye now. It is empty if Cloud Eye did not answer.
	State     v1alpha1.State
	StateTime time.Time
	Signal    *v1alpha1.Signal // the newest stored signal, or nil
	Evidence  Evidence         // read from Cloud Eye for this decision
	// DeferredTime is when the alarm of a deferred change was last in force. It is zero for all other alarms.
	DeferredTime time.Time
}

// InForce reports whether the alarm is in force: Cloud Eye reports it now or, if Cloud Eye does not answer, a signal
// reported it within the last 30 minutes. A signal alone only starts a check.
func (a Alarm) InForce(now time.Time) bool {
	if a.State != "" {
		return a.State == v1alpha1.StateAlarm
	}
	return a.Signalled() && now.Sub(a.Signal.AlarmTime.Time) < EvidenceAge
}

// GrowthTime returns when our last growth was completed, as RecentGrowth does; zero for all metrics but storage. The
// growth rewrote the rule, and Cloud Eye does not document the state of a rewritten rule. So the evidence decides
// whether the alarm lasts.
func (c Case) GrowthTime(a Alarm) time.Time {
	if HelpedBy(a.Metric) != v1alpha1.KindVolume {
		return time.Time{}
	}
	return RecentGrowth(c.Status.Changes, c.Now)
}

// OverdueSince returns since when the used space is over the threshold; zero if it is not, and for all metrics but
// storage. If Cloud Eye never evaluates the rule, or there is no rule, the measured used space still triggers growth.
func (c Case) OverdueSince(a Alarm) time.Time {
	if since := c.Status.OverThresholdSince; since != nil && Row(a.Metric).InGB() {
		return since.Time
	}
	return time.Time{}
}

// IsOverdue reports whether Cloud Eye should have raised the alarm by now, by its own data.
func (a Alarm) IsOverdue(c Case) bool {
	return !c.OverdueSince(a).IsZero() && a.untilOverdue(c) <= 0 && a.Evidence.Present() && c.IsFull(a.Evidence)
}

// untilOverdue returns how long the used space of a volume over its threshold still waits for Cloud Eye's alarm.
func (a Alarm) untilOverdue(c Case) time.Duration {
	return c.OverdueSince(a).Add(overdueAfter + patience(c.Spec, a.Metric)).Sub(c.Now)
}

// OverdueRequeue returns when to read the used space again of a volume over its threshold; 0 for all others. A value
// that cannot be read is read again soon, because nothing else may report the full volume.
func (a Alarm) OverdueRequeue(c Case) time.Duration {
	if c.OverdueSince(a).IsZero() {
		return 0
	}
	return max(a.untilOverdue(c), DataRequeue)
}

// SetEvidence enters the measurement of a metric into its alarm. If Cloud Eye has measured the used space, SetEvidence
// also updates what the status derives from it.
func (c *Case) SetEvidence(m v1alpha1.Metric, e Evidence) {
	c.Alarms = slices.Clone(c.Alarms)
	for i := range c.Alarms {
		if c.Alarms[i].Metric == m {
			c.Alarms[i].Evidence = e
		}
	}
	if e.Missing != "" { // an older message must not end what a newer measurement has shown
		e = Evidence{}
	}
	if Row(m).InGB() {
		c.Status.Used, c.Status.ReadOnly = c.UsedSpace(e), c.ReadOnly(e)
		c.Status.OverThresholdSince = c.OverThresholdSince(e)
	}
}

// OverThresholdSince returns status.overThresholdSince after a measurement of the used space was read. Without a
// measurement it does not change.
func (c Case) OverThresholdSince(e Evidence) *metav1.Time {
	since := c.Status.OverThresholdSince
	if !e.Present() || c.Instance == nil || c.Instance.VolumeGB == 0 {
		return since
	}
	if !c.IsFull(e) {
		return nil
	}
	grown, ok := change.LastChanged(c.Status.Changes, v1alpha1.KindVolume)
	if since == nil || ok && grown.After(since.Time) {
		return Seconds(c.Now)
	}
	return since
}

// UsedSpace returns status.used after a measurement of the used space was read. It keeps a value that still shows the
// same for half an hour, so that a quiet sweep does not write every status.
func (c Case) UsedSpace(e Evidence) *v1alpha1.UsedSpace {
	was := c.Status.Used
	if !e.Present() || c.Instance == nil || was != nil && !e.Time.After(was.Time.Time) {
		return was
	}
	if was != nil && e.Time.Sub(was.Time.Time) < EvidenceAge {
		stored, ok := was.Value()
		if ok && math.Abs(stored-e.UsedGB) < float64(c.Instance.VolumeGB)/100 {
			return was
		}
	}
	return &v1alpha1.UsedSpace{GB: strconv.FormatFloat(e.UsedGB, 'f', 1, 64), Time: *Seconds(e.Time)}
}

// patience returns how long a value must last until Cloud Eye's rule of that metric raises its alarm.
func patience(spec v1alpha1.Spec, m v1alpha1.Metric) time.Duration {
	rule := Row(m).Rule(spec, 0) // count and period are the same for every volume
	return time.Duration(rule.Count) * max(time.Minute,
		time.Duration(rule.PeriodSeconds)*time.Second) // a period of 1 means raw data, which comes every minute
}

// Settling reports whether the state ok of Cloud Eye may be older than the signal.
func (a Alarm) Settling(now time.Time) bool {
	return a.State == v1alpha1.StateOK && a.Signalled() && now.Sub(a.Signal.AlarmTime.Time) < SettleTime
}

func (a Alarm) Signalled() bool { return a.Signal != nil && a.Signal.State == v1alpha1.StateAlarm }

// current reports whether the signal belongs to the alarm that is in force now. A signal that is older than the state
// belongs to an earlier alarm.
func (a Alarm) current() bool {
	return a.Signalled() && (a.State != v1alpha1.StateAlarm || !a.Signal.AlarmTime.Time.Before(a.StateTime.Add(-SettleTime)))
}

// Since returns when the alarm began, for messages and latencies: the earlier of the times in Cloud Eye and in the
// signal.
func (a Alarm) Since(c Case) time.Time {
	if since := c.OverdueSince(a); a.State != v1alpha1.StateAlarm && !since.IsZero() {
		return since
	}
	if a.current() && (a.State != v1alpha1.StateAlarm || a.StateTime.IsZero() ||
		a.Signal.AlarmTime.Time.Before(a.StateTime)) {
		return a.Signal.AlarmTime.Time
	}
	return a.StateTime
}

// SignalFor returns the stored signal of a rule. It returns nil if the newest signal of its metric belongs to another
// rule.
func SignalFor(in v1alpha1.Intake, r v1alpha1.Rule) *v1alpha1.Signal {
	if s := SignalOf(in, r.Metric); s != nil && s.AlarmID == r.AlarmID {
		return s
	}
	return nil
}

// LastUpdate returns when the state or the signal last changed. A cached measurement from before may be out of date.
func (a Alarm) LastUpdate() time.Time {
	if a.Signal != nil && a.Signal.ReceivedTime.After(a.StateTime) {
		return a.Signal.ReceivedTime.Time
	}
	return a.StateTime
}

// MessageID returns the id of the message of the present alarm, or an empty text.
func (a Alarm) MessageID() string {
	if a.current() {
		return a.Signal.MessageID
	}
	return ""
}

// UsedSpaceDue reports whether the used space may stand in for a storage alarm that is not in force, so that it must
// be read.
func (c Case) UsedSpaceDue(a Alarm) bool {
	s := c.Status
	return c.Instance != nil && c.Instance.HasKnownEngine() && (c.IsSweep || a.InForce(c.Now) || !c.GrowthTime(a).IsZero() || s.OverThresholdSince != nil ||
		c.ReadOnly(Evidence{}) != nil || c.awaitsAttempt(v1alpha1.KindVolume))
}

// Micro returns a time with the precision of a MicroTime in JSON.
func Micro(t time.Time) *metav1.MicroTime {
	return new(metav1.NewMicroTime(t.Truncate(time.Microsecond)))
}

// Seconds returns a time with the precision of a Time in JSON.
func Seconds(t time.Time) *metav1.Time {
	return new(metav1.NewTime(t.Truncate(time.Second)))
}
