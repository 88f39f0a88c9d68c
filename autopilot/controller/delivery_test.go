// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

func TestAlarmsWithoutAMessageAreCountedOnce(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			signal *time.Duration // after the alarm
			rounds []time.Duration
			want   float64
		}{
			"the message may still come":              {rounds: []time.Duration{time.Minute}, want: 0},
			"no message":                              {rounds: []time.Duration{time.Minute, 3 * time.Minute, 8 * time.Minute}, want: 1},
			"a message":                               {signal: new(2 * time.Second), rounds: []time.Duration{3 * time.Minute, 8 * time.Minute}, want: 0},
			"a message of yesterday":                  {signal: new(-24 * time.Hour), rounds: []time.Duration{3 * time.Minute}, want: 1},
			"a repetition, if the rule was rewritten": {signal: new(-20 * time.Minute), rounds: []time.Duration{3 * time.Minute}, want: 0},
		} {
			w := newWorld(t)
			c := w.process()
			w.settle(t, c)
			w.alarm(v1alpha1.MetricCPU, true) // cpu stays low, so nothing changes
			begin := w.now
			if tc.signal != nil {
				at := metav1.NewMicroTime(begin.Add(*tc.signal))
				w.changeRap(func(rap *v1alpha1.RdsAutopilot) {
					rap.Status.Intake.Signals = []v1alpha1.Signal{{Metric: v1alpha1.MetricCPU, AlarmID: "al-cpu", State: v1alpha1.StateAlarm, AlarmTime: at, ReceivedTime: at}}
				})
			}
			for _, after := range tc.rounds {
				w.now = begin.Add(after)
				if _, err := w.look(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			if n := testutil.ToFloat64(c.meters.foundBySweep.WithLabelValues("cpu")); n != tc.want {
				t.Errorf("%s: %g counted, want %g", name, n, tc.want)
			}
			w.stop()
		}
	})
}
