// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// How long things count.
const (
	evidenceAge = 30 * time.Minute // older evidence decides nothing, nor does an older signal where Cloud Eye does not answer
	settleTime  = 2 * time.Minute  // a state ok this soon after a signal alarm may be older than the signal
	settleAgain = 30 * time.Second
	clockSkew   = 2 * time.Minute // between the cloud's clock and ours

	unheardAfter = 10 * time.Minute // beyond a rule's own patience
)

// Evidence is a measurement. The zero value is none: missing data is neither zero nor high.
type Evidence struct {
	Time    time.Time
	Percent float64 // of storage: as Cloud Eye says it, to be compared with what is used
	UsedGB  float64 // storage only
}

// Present reports whether there is a measurement.
func (e Evidence) Present() bool { return !e.Time.IsZero() }

// Alarm is what is known of one metric's alarm when a decision is taken.
type Alarm struct {
	Metric v1alpha1.Metric
	// State in Cloud Eye now; empty where it did not answer.
	State     v1alpha1.State
	StateTime time.Time
	Signal    *v1alpha1.Signal // the newest stored one, or nil
	Evidence  Evidence         // re-read from Cloud Eye
	// GrowthTime is when a change of ours for this metric was completed lately. What Cloud Eye does with the state of the rule
	// that was rewritten then is not known; so the evidence says whether the alarm lasts.
	GrowthTime time.Time
	// UnheardTime is since when the storage was seen at or over the threshold, look after look, while Cloud Eye did not say so. What
	// Cloud Eye makes of our rule is its own affair; a database must not fill up for it.
	UnheardTime time.Time
	// DeferredTime is when the alarm was last in force, where its change waited for the window.
	DeferredTime time.Time
}

// InForce reports whether there is an alarm to decide on: Cloud Eye says so now or, where it does not answer, a signal
// said so lately. A signal alone is a reason to look.
func (a Alarm) InForce(now time.Time) bool {
	if a.State != "" {
		return a.State == v1alpha1.StateAlarm
	}
	return a.signalled() && now.Sub(a.Signal.AlarmTime.Time) < evidenceAge
}

// persistsAfterGrowth reports whether an alarm goes on after a growth of ours, whatever the state of its rewritten rule.
func (a Alarm) persistsAfterGrowth() bool {
	return helpedBy(a.Metric) == v1alpha1.KindVolume && !a.GrowthTime.IsZero() && a.Evidence.Time.After(a.GrowthTime)
}

// unheard reports whether Cloud Eye should have raised the alarm long ago, by its own data.
func (a Alarm) unheard(c Case) bool {
	return !a.UnheardTime.IsZero() && c.Now.Sub(a.UnheardTime) >= unheardAfter+c.patience(a.Metric) && c.IsFull(a.Evidence)
}

// patience is how long a value must last until Cloud Eye's rule of that metric raises its alarm.
func (c Case) patience(m v1alpha1.Metric) time.Duration {
	rule := metricRow(m).Rule(c.Spec, c.Instance.VolumeGB)
	return time.Duration(rule.Count) * max(time.Minute, time.Duration(rule.PeriodSeconds)*time.Second) // 1 is raw data: a minute
}

// settling reports whether Cloud Eye's ok may be older than the signal.
func (a Alarm) settling(now time.Time) bool {
	return a.State == v1alpha1.StateOK && a.signalled() && now.Sub(a.Signal.AlarmTime.Time) < settleTime
}

func (a Alarm) signalled() bool { return a.Signal != nil && a.Signal.State == v1alpha1.StateAlarm }

// current reports whether the signal is of the alarm that is in force now. One that is older than the state is of an
// earlier alarm, whose end was not seen.
func (a Alarm) current() bool {
	return a.signalled() && (a.State != v1alpha1.StateAlarm || !a.Signal.AlarmTime.Time.Before(a.StateTime.Add(-settleTime)))
}

// since is when the alarm began, for people and for latencies: by Cloud Eye or by its signal, whichever is earlier.
func (a Alarm) since() time.Time {
	if a.State != v1alpha1.StateAlarm && !a.UnheardTime.IsZero() {
		return a.UnheardTime
	}
	if a.current() && (a.State != v1alpha1.StateAlarm || a.StateTime.IsZero() || a.Signal.AlarmTime.Time.Before(a.StateTime)) {
		return a.Signal.AlarmTime.Time
	}
	return a.StateTime
}

// SignalFor returns the stored signal of a rule; nil where the newest of its metric is of another rule.
func SignalFor(in v1alpha1.Intake, r v1alpha1.Rule) *v1alpha1.Signal {
	if s := SignalOf(in, r.Metric); s != nil && s.AlarmID == r.AlarmID {
		return s
	}
	return nil
}

// LastNews is when Cloud Eye's word or a signal changed last: what was measured may be new since.
func (a Alarm) LastNews() time.Time {
	if a.Signal != nil && a.Signal.ReceivedTime.After(a.StateTime) {
		return a.Signal.ReceivedTime.Time
	}
	return a.StateTime
}

func (a Alarm) messageID() string {
	if a.current() {
		return a.Signal.MessageID
	}
	return ""
}

// EvidenceFromSignal is the evidence in the signal itself, for when Cloud Eye does not answer. A percentage of storage is of
// the size the volume had when it was measured.
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

// sizeAt is the size in GB that a volume had at some time by the cloud's clock, given the changes since. Ours may be behind
// by clockSkew; whatever it says, what asked for a growth was measured before. In doubt it is the smaller size.
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
