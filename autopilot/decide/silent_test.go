// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// Nobody has seen what the real Cloud Eye does with a rule of raw data. If the rule is silent, the used space counts.
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
		{"not full", 84, time.Hour, v1alpha1.StateOK, v1alpha1.StorageAlarm{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cases.Quiet()
			if tc.rule.Count > 0 {
				c.Spec.Storage.Alarm = tc.rule
			}
			a := cases.StorageAt(tc.usedG)
			a.State, a.AlarmOverdueSince = tc.state, c.Now.Add(-tc.since)
			c.Status.OverThresholdSince = autopilot.Seconds(a.AlarmOverdueSince)
			c, v := walked(cases.With(c, a))
			if grows := v.Intent != nil && v.Intent.To == "110"; grows != tc.grows {
				t.Errorf("decided %+v", v.Decisions)
			}
			status := c.Status
			var warned []string
			for _, w := range record.UpdateWarnings(c, &status) {
				warned = append(warned, string(w.Reason)+": "+w.Message)
			}
			if said := strings.Join(warned, " "); strings.Contains(said, "RuleSilent: Cloud Eye reports") != tc.grows {
				t.Errorf("warned %q", said)
			}
			if again := record.UpdateWarnings(c, &status); len(again) > 0 {
				t.Errorf("warned twice: %v", again)
			}
			if tc.grows && !v.Decisions[0].Since.Equal(a.AlarmOverdueSince) {
				t.Errorf("the alarm began at %s", v.Decisions[0].Since)
			}
		})
	}
}

// The next check is when the rule should have raised its alarm, and each minute while the used space cannot be read.
func TestDecideComesBackWhenTheRuleIsOverdue(t *testing.T) {
	for name, tc := range map[string]struct {
		since time.Duration
		read  bool
		want  time.Duration
	}{
		"full for 5 minutes":                  {5 * time.Minute, true, 10 * time.Minute},
		"full for 5 minutes, not read now":    {5 * time.Minute, false, 10 * time.Minute},
		"full for 20 minutes, cannot be read": {20 * time.Minute, false, time.Minute},
	} {
		c := cases.Quiet()
		a := cases.StorageAt(93)
		a.State, a.AlarmOverdueSince = v1alpha1.StateOK, cases.Noon().Add(-tc.since)
		c.Status.OverThresholdSince = autopilot.Seconds(a.AlarmOverdueSince)
		if !tc.read {
			a.Evidence = autopilot.Evidence{}
		}
		if v := verdictOf(cases.With(c, a)); v.RequeueAfter != tc.want || v.Intent != nil {
			t.Errorf("%s: in %s, want %s", name, v.RequeueAfter, tc.want)
		}
	}
}
