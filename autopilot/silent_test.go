// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// The count begins with the first value at or over the threshold and goes on until a lower value is read.
func TestOverThresholdSinceFollowsTheUsedSpace(t *testing.T) {
	before := metav1.NewTime(noon().Add(-10 * time.Minute))
	now := metav1.NewTime(noon())
	full, low := Evidence{Time: noon(), UsedGB: 93}, Evidence{Time: noon(), UsedGB: 89}
	grown := func(age time.Duration) []v1alpha1.Change {
		return []v1alpha1.Change{{Kind: v1alpha1.KindVolume, Outcome: v1alpha1.OutcomeCompleted, CompletionTime: ago(age)}}
	}
	for name, tc := range map[string]struct {
		was     *metav1.Time
		read    Evidence
		changes []v1alpha1.Change
		want    *metav1.Time
	}{
		"first full value":               {nil, full, nil, &now},
		"still full":                     {&before, full, nil, &before},
		"not read":                       {&before, Evidence{}, nil, &before},
		"not read, and never full":       {nil, Evidence{}, nil, nil},
		"a lower value":                  {&before, low, nil, nil},
		"full again after a growth":      {&before, full, grown(time.Minute), &now},
		"a growth before it became full": {&before, full, grown(time.Hour), &before},
	} {
		c := quiet()
		c.Status.OverThresholdSince, c.Status.Changes = tc.was, tc.changes
		if got := c.OverThresholdSince(tc.read); !got.Equal(tc.want) {
			t.Errorf("%s: since %v, want %v", name, got, tc.want)
		}
	}
}

// A round comes back when the rule should have raised its alarm, and each minute while the used space cannot be read.
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
		c := quiet()
		a := storageAt(93)
		a.State, a.AlarmOverdueSince = v1alpha1.StateOK, noon().Add(-tc.since)
		if !tc.read {
			a.Evidence = Evidence{}
		}
		if v := Decide(c.with(a)); v.RequeueAfter != tc.want || v.Intent != nil {
			t.Errorf("%s: in %s, want %s", name, v.RequeueAfter, tc.want)
		}
	}
}

func TestUsedSpaceIsStoredOnlyWhenItSaysSomethingNew(t *testing.T) {
	was := &v1alpha1.UsedSpace{GB: "50.0", Time: metav1.NewTime(noon())}
	at := func(after time.Duration, gb float64) Evidence { return Evidence{Time: noon().Add(after), UsedGB: gb} }
	for name, tc := range map[string]struct {
		was  *v1alpha1.UsedSpace
		read Evidence
		want string
	}{
		"first":            {nil, at(0, 50.04), "50.0"},
		"not read":         {was, Evidence{}, "50.0"},
		"almost the same":  {was, at(5*time.Minute, 50.9), "50.0"},
		"one percent more": {was, at(5*time.Minute, 51), "51.0"},
		"one percent less": {was, at(5*time.Minute, 49), "49.0"},
		"half an hour old": {was, at(30*time.Minute, 50.1), "50.1"},
		"an older point":   {was, at(-time.Minute, 60), "50.0"},
	} {
		c := quiet() // 100 GB
		c.Status.Used = tc.was
		if got := c.UsedSpace(tc.read); got == nil || got.GB != tc.want {
			t.Errorf("%s: %+v, want %s GB", name, got, tc.want)
		}
	}
}
