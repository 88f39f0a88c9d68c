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

// countLostAlarms counts each alarm in force whose message has not arrived, once. The sweep has found it, so without
// this count nobody would notice that the cloud no longer reaches the public URL. What is counted is kept in memory: a
// new leader may count an alarm once more.
func (r *round) countLostAlarms(c autopilot.Case) {
	topic, _ := r.controller.topic()
	for _, rule := range c.Status.Alarms.Rules {
		if rule.State != v1alpha1.StateAlarm || rule.StateTime == nil {
			r.setLost(rule.Metric, time.Time{})
			continue
		}
		begun := rule.StateTime.Time
		subscribed := topic.State == v1alpha1.SubscriptionConfirmed &&
			(topic.RequestedTime == nil || topic.RequestedTime.Time.Before(begun))
		if !subscribed || c.Now.Sub(begun) < deliveryTime {
			continue
		}
		if s := autopilot.SignalFor(r.rap.Status.Intake, rule); s != nil &&
			(!s.AlarmTime.Time.Before(begun.Add(-deliveryTime)) || c.Now.Sub(s.AlarmTime.Time) < repeatTime) {
			continue
		}
		if r.setLost(rule.Metric, begun) {
			r.controller.meters.foundBySweep.WithLabelValues(string(rule.Metric)).Inc()
		}
	}
}

// setLost records that the alarm that began at that time was counted, and reports whether it was not before. A zero
// time means that there is no alarm.
func (r *round) setLost(metric v1alpha1.Metric, begun time.Time) (first bool) {
	r.controller.remember(r.key, func(m *memory) {
		if begun.IsZero() {
			delete(m.lost, metric)
			return
		}
		if m.lost == nil {
			m.lost = make(map[v1alpha1.Metric]time.Time)
		}
		first = !m.lost[metric].Equal(begun)
		m.lost[metric] = begun
	})
	return first
}
