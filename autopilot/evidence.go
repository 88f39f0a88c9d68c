// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// evidenceAge is the age at which a measurement is too old to decide on. If Cloud Eye does not answer, it also
	// limits the age of a signal.
	evidenceAge = 30 * time.Minute
	// settleTime is how long after a signal a state ok of Cloud Eye may still be older than the signal.
	settleTime = 2 * time.Minute
	// settleRequeue is when a state that may be older than the signal is read again.
	settleRequeue = 30 * time.Second
	// clockSkew is the assumed difference between the cloud's clock and ours.
	clockSkew = 2 * time.Minute
	// overdueAfter is how much longer than a rule's own periods a volume may be full without an alarm.
	overdueAfter = 10 * time.Minute
)

// Evidence is a measurement of Cloud Eye. The zero value means that there is none; missing data counts as neither low
// nor high.
type Evidence struct {
	Time    time.Time
	Percent float64 // for storage: the percentage that Cloud Eye reports
	UsedGB  float64 // storage only
	Filling Filling // storage only: how fast the used space changed in the hour before Time
	// Steady means that nothing was freed in the FreedSpan before Time. It is read only if MayGrowEarly.
	Steady bool
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
	// GrowthTime is when our last growth was completed, as RecentGrowth returns it. The growth rewrote the rule, and
	// Cloud Eye does not document the state of a rewritten rule. So the evidence decides whether the alarm lasts.
	GrowthTime time.Time
	// AlarmOverdueSince is status.overThresholdSince; zero for all other metrics. If Cloud Eye never evaluates the
	// rule, or there is no rule, the measured used space still triggers growth.
	AlarmOverdueSince time.Time
	// DeferredTime is when the alarm of a deferred change was last in force. It is zero for all other alarms.
	DeferredTime time.Time
}

// InForce reports whether the alarm is in force: Cloud Eye reports it now or, if Cloud Eye does not answer, a signal
// reported it within the last 30 minutes. A signal alone only starts a check.
func (a Alarm) InForce(now time.Time) bool {
	if a.State != "" {
		return a.State == v1alpha1.StateAlarm
	}
	return a.signalled() && now.Sub(a.Signal.AlarmTime.Time) < evidenceAge
}

// persistsAfterGrowth reports whether a measurement from after our last growth exists. The state of the rewritten rule
// does not count then.
func (a Alarm) persistsAfterGrowth() bool {
	return helpedBy(a.Metric) == v1alpha1.KindVolume && !a.GrowthTime.IsZero() && a.Evidence.Time.After(a.GrowthTime)
}

// isOverdue reports whether Cloud Eye should have raised the alarm by now, by its own data.
func (a Alarm) isOverdue(c Case) bool {
	return !a.AlarmOverdueSince.IsZero() && a.untilOverdue(c) <= 0 && a.Evidence.Present() && c.IsFull(a.Evidence)
}

// untilOverdue returns how long the used space of a volume over its threshold still waits for Cloud Eye's alarm.
func (a Alarm) untilOverdue(c Case) time.Duration {
	return a.AlarmOverdueSince.Add(overdueAfter + c.patience(a.Metric)).Sub(c.Now)
}

// overdueRequeue returns when to read the used space again of a volume over its threshold; 0 for all others. A value
// that cannot be read is read again soon, because nothing else may report the full volume.
func (a Alarm) overdueRequeue(c Case) time.Duration {
	if a.AlarmOverdueSince.IsZero() {
		return 0
	}
	return max(a.untilOverdue(c), dataRequeue)
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
	grown, ok := lastChanged(c.Status.Changes, v1alpha1.KindVolume)
	if since == nil || ok && grown.After(since.Time) {
		return seconds(c.Now)
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
	if was != nil && e.Time.Sub(was.Time.Time) < evidenceAge {
		stored, ok := was.Value()
		if ok && math.Abs(stored-e.UsedGB) < float64(c.Instance.VolumeGB)/100 {
			return was
		}
	}
	return &v1alpha1.UsedSpace{GB: strconv.FormatFloat(e.UsedGB, 'f', 1, 64), Time: *seconds(e.Time)}
}

// patience returns how long a value must last until Cloud Eye's rule of that metric raises its alarm.
func (c Case) patience(m v1alpha1.Metric) time.Duration {
	rule := metricRow(m).Rule(c.Spec, c.Instance.VolumeGB)
	return time.Duration(rule.Count) * max(time.Minute,
		time.Duration(rule.PeriodSeconds)*time.Second) // a period of 1 means raw data, which comes every minute
}

// settling reports whether the state ok of Cloud Eye may be older than the signal.
func (a Alarm) settling(now time.Time) bool {
	return a.State == v1alpha1.StateOK && a.signalled() && now.Sub(a.Signal.AlarmTime.Time) < settleTime
}

func (a Alarm) signalled() bool { return a.Signal != nil && a.Signal.State == v1alpha1.StateAlarm }

// current reports whether the signal belongs to the alarm that is in force now. A signal that is older than the state
// belongs to an earlier alarm.
func (a Alarm) current() bool {
	return a.signalled() && (a.State != v1alpha1.StateAlarm || !a.Signal.AlarmTime.Time.Before(a.StateTime.Add(-settleTime)))
}

// since returns when the alarm began, for messages and latencies: the earlier of the times in Cloud Eye and in the
// signal.
func (a Alarm) since() time.Time {
	if a.State != v1alpha1.StateAlarm && !a.AlarmOverdueSince.IsZero() {
		return a.AlarmOverdueSince
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

// messageID returns the id of the message of the present alarm, or an empty text.
func (a Alarm) messageID() string {
	if a.current() {
		return a.Signal.MessageID
	}
	return ""
}

// EvidenceFromSignal returns the evidence in the signal, for use if Cloud Eye does not answer. A storage percentage
// refers to the size that the volume had at the time of the measurement.
func (a Alarm) EvidenceFromSignal(c Case) Evidence {
	if a.Signal == nil || a.Signal.DatapointTime == nil || c.Instance == nil {
		return Evidence{}
	}
	percent, err := strconv.ParseFloat(a.Signal.ValuePercent, 64)
	if err != nil {
		return Evidence{}
	}
	e := Evidence{Time: a.Signal.DatapointTime.Time, Percent: percent}
	if metricRow(a.Metric).InGB() {
		e.UsedGB = percent / 100 * float64(sizeAt(c.Status.Changes, c.Instance.VolumeGB, e.Time))
	}
	return e
}

// sizeAt returns the size in GB that a volume had at a time of the cloud's clock, given the changes since. Our clock
// may be behind by clockSkew. The measurement that led to a growth always counts as before it. In doubt the smaller
// size is returned.
func sizeAt(changes []v1alpha1.Change, nowGB int, at time.Time) int {
	size := nowGB
	for _, ch := range changes { // newest first
		if ch.Kind != v1alpha1.KindVolume || ch.Outcome != v1alpha1.OutcomeCompleted {
			continue
		}
		if ch.CompletionTime.Add(clockSkew).After(at) || ch.EvidenceTime != nil && !ch.EvidenceTime.Time.Before(at) {
			size = gigabytes(ch.From)
		}
	}
	return size
}
