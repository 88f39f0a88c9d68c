// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestAlarmsWithoutAMessageAreCountedOnce(t *testing.T) {
	type durations = []time.Duration
	const minute = time.Minute
	begun := time.Unix(1e9, 0)
	for name, tc := range map[string]struct {
		message *time.Duration // after the alarm
		rounds  durations      // after the alarm
		want    float64
	}{
		"message may still arrive":              {rounds: durations{minute}},
		"no message":                            {rounds: durations{minute, 3 * minute, 8 * minute}, want: 1},
		"message":                               {message: new(2 * time.Second), rounds: durations{3 * minute, 8 * minute}},
		"message of the day before":             {message: new(-24 * time.Hour), rounds: durations{3 * minute}, want: 1},
		"message before the rule was rewritten": {message: new(-20 * minute), rounds: durations{3 * minute}},
	} {
		c, since := newLeader(t), metav1.NewMicroTime(begun)
		s := v1alpha1.Status{Alarms: v1alpha1.Alarms{Rules: []v1alpha1.Rule{{
			Metric: v1alpha1.MetricCPU, AlarmID: "al1", State: v1alpha1.StateAlarm, StateTime: &since,
		}}}}
		c.keeper.last.Store(&v1alpha1.Topic{State: v1alpha1.SubscriptionConfirmed})
		if tc.message != nil {
			s.Intake.Signals = []v1alpha1.Signal{{
				Metric: v1alpha1.MetricCPU, AlarmID: "al1", State: v1alpha1.StateAlarm,
				AlarmTime: metav1.NewMicroTime(begun.Add(*tc.message)),
			}}
		}
		r := &round{controller: c, key: database, rap: &v1alpha1.RdsAutopilot{Status: s}}
		for _, after := range tc.rounds {
			r.countLostAlarms(autopilot.Case{Now: begun.Add(after), Status: s})
		}
		if n := testutil.ToFloat64(c.meters.foundBySweep.WithLabelValues("cpu")); n != tc.want {
			t.Errorf("%s: %g counted, want %g", name, n, tc.want)
		}
	}
}
