// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// deliveryTime is how long a message may take from Cloud Eye to the status, the difference of the clocks included.
	deliveryTime = 2 * time.Minute
	// repeatTime is one hour because Cloud Eye repeats an alarm in force every 15 or 30 minutes. If Cloud Eye changes
	// the time of the state because the rule was rewritten, the last message belongs to the same alarm.
	repeatTime = time.Hour
)

// alarmOf names an alarm rule of a database.
type alarmOf struct {
	Key
	metric v1alpha1.Metric
}

// countLostAlarms counts each alarm in force whose message has not arrived, once. The sweep has found it, so without
// this count nobody would notice that the cloud no longer reaches the public URL. What is counted is kept in memory: a
// new leader may count an alarm once more.
func (r *round) countLostAlarms(c autopilot.Case) {
	a := c.Status.Alarms
	for _, rule := range a.Rules {
		alarm := alarmOf{r.key, rule.Metric}
		if rule.State != v1alpha1.StateAlarm || rule.StateTime == nil {
			r.setLost(alarm, time.Time{})
			continue
		}
		begun := rule.StateTime.Time
		subscribed := a.Subscription == v1alpha1.SubscriptionConfirmed &&
			(a.SubscribedTime == nil || a.SubscribedTime.Time.Before(begun))
		if !subscribed || c.Now.Sub(begun) < deliveryTime {
			continue
		}
		if s := autopilot.SignalFor(r.rap.Status.Intake, rule); s != nil &&
			(!s.AlarmTime.Time.Before(begun.Add(-deliveryTime)) || c.Now.Sub(s.AlarmTime.Time) < repeatTime) {
			continue
		}
		if r.setLost(alarm, begun) {
			r.meters.foundBySweep.WithLabelValues(string(rule.Metric)).Inc()
		}
	}
}

// setLost records that the alarm that began at that time was counted, and reports whether it was not before. A zero
// time means that there is no alarm.
func (r *round) setLost(alarm alarmOf, begun time.Time) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if begun.IsZero() {
		delete(r.lost, alarm)
		return false
	}
	first = !r.lost[alarm].Equal(begun)
	r.lost[alarm] = begun
	return first
}
