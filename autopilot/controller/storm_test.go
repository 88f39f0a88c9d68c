// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// A listing of before a signal may say ok for that reason alone. One that agrees with it is new enough: a storm of
// alarms must not cost a listing for each.
func TestASignalHasTheRulesListedAnewOnlyWhereTheyDenyIt(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.listedFor = 20 * time.Second
		c := w.process()
		w.settle(t, c)
		w.usedGB = 93.1
		round := func(after time.Duration) {
			t.Helper()
			w.now = w.now.Add(after)
			w.changeRap(func(rap *v1alpha1.RdsAutopilot) {
				rap.Status.Intake.Signals = []v1alpha1.Signal{{
					Metric: v1alpha1.MetricStorage, AlarmID: "al-storage", State: v1alpha1.StateAlarm, MessageID: w.now.String(),
					AlarmTime: metav1.NewMicroTime(w.now), ReceivedTime: metav1.NewMicroTime(w.now),
				}}
			})
			if _, err := w.look(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		before := w.listings
		w.alarm(v1alpha1.MetricStorage, true)
		round(5 * time.Second)
		if w.listings != before+1 || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("%d listings, patches %v; want one more listing, which sees the alarm", w.listings-before, w.patches)
		}
		round(5 * time.Second)
		round(5 * time.Second)
		if w.listings != before+1 {
			t.Errorf("%d listings, though the last one agrees", w.listings-before)
		}
		round(20 * time.Second)
		if w.listings != before+2 {
			t.Errorf("%d listings; want another one once it is old", w.listings-before)
		}
	})
}
