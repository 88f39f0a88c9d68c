package autopilot

import (
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// How long things count.
const (
	evidenceAge = 30 * time.Minute // older evidence decides nothing, a signal without Cloud Eye's word neither
	settleTime  = 2 * time.Minute  // a state ok this soon after a signal alarm may be older than the signal
	settleAgain = 30 * time.Second
)

// Evidence is a measurement. The zero value is none: missing data is neither zero nor high.
type Evidence struct {
	Time    time.Time
	Percent float64
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
}

// InForce reports whether there is an alarm to decide on: Cloud Eye says so now or, where it does not answer, a signal
// said so lately. A signal alone is a reason to look, not an order.
func (a Alarm) InForce(now time.Time) bool {
	if a.State != "" {
		return a.State == v1alpha1.StateAlarm
	}
	return a.signalled() && now.Sub(a.Signal.AlarmTime.Time) < evidenceAge
}

// settling reports whether Cloud Eye's ok may be older than the signal.
func (a Alarm) settling(now time.Time) bool {
	return a.State == v1alpha1.StateOK && a.signalled() && now.Sub(a.Signal.AlarmTime.Time) < settleTime
}

func (a Alarm) signalled() bool { return a.Signal != nil && a.Signal.State == v1alpha1.StateAlarm }

// since is when the alarm began, for people and for latencies: by Cloud Eye, else by the signal.
func (a Alarm) since() time.Time {
	if a.signalled() {
		return a.Signal.AlarmTime.Time
	}
	return a.StateTime
}

func (a Alarm) messageID() string {
	if a.signalled() {
		return a.Signal.MessageID
	}
	return ""
}
