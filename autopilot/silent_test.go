// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Nobody has seen what the real Cloud Eye does with a rule of raw data: its own data must do where the rule says nothing.
func TestFullVolumeGrowsWhenItsRuleIsSilent(t *testing.T) {
	for _, tc := range []struct {
		name  string
		usedG float64
		since time.Duration // how long it was seen so
		state v1alpha1.State
		rule  v1alpha1.StorageAlarm // raw ×5 if zero
		grows bool
	}{
		{"long enough", 93, 15 * time.Minute, v1alpha1.StateOK, v1alpha1.StorageAlarm{}, true},
		{"no data for the rule, and data for us", 93, 15 * time.Minute, v1alpha1.StateInsufficientData, v1alpha1.StorageAlarm{}, true},
		{"no answer about rules", 93, 15 * time.Minute, "", v1alpha1.StorageAlarm{}, true},
		{"the rule may still be counting", 93, 15*time.Minute - time.Second, v1alpha1.StateOK, v1alpha1.StorageAlarm{}, false},
		{"a slow rule has more time", 93, 30 * time.Minute, v1alpha1.StateOK, v1alpha1.StorageAlarm{PeriodSeconds: 300, Count: 5}, false},
		{"a slow rule has had its time", 93, 35 * time.Minute, v1alpha1.StateOK, v1alpha1.StorageAlarm{PeriodSeconds: 300, Count: 5}, true},
		{"not full", 89, time.Hour, v1alpha1.StateOK, v1alpha1.StorageAlarm{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quiet()
			if tc.rule.Count > 0 {
				c.Spec.Storage.Alarm = tc.rule
			}
			a := storageAt(tc.usedG)
			a.State, a.AlarmOverdueSince = tc.state, c.Now.Add(-tc.since)
			c = c.with(a)
			v := Decide(c)
			if grows := v.Intent != nil && v.Intent.To == "110"; grows != tc.grows {
				t.Errorf("decided %+v", v.Decisions)
			}
			status := c.Status
			var warned []string
			for _, w := range UpdateWarnings(c, &status) {
				warned = append(warned, string(w.Reason)+": "+w.Message)
			}
			if said := strings.Join(warned, " "); strings.Contains(said, "RuleSilent: Cloud Eye reports") != tc.grows {
				t.Errorf("warned %q", said)
			}
			if again := UpdateWarnings(c, &status); len(again) > 0 {
				t.Errorf("warned twice: %v", again)
			}
			if tc.grows && !v.Decisions[0].Since.Equal(a.AlarmOverdueSince) {
				t.Errorf("the alarm began at %s", v.Decisions[0].Since)
			}
		})
	}
}
