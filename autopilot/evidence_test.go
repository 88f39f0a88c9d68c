// SPDX-License-Identifier: Apache-2.0

package autopilot_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// The count begins with the first value at or over the threshold and goes on until a lower value is read.
func TestOverThresholdSinceFollowsTheUsedSpace(t *testing.T) {
	before := metav1.NewTime(cases.Noon().Add(-10 * time.Minute))
	now := metav1.NewTime(cases.Noon())
	full, low := autopilot.Evidence{Time: cases.Noon(), UsedGB: 93}, autopilot.Evidence{Time: cases.Noon(), UsedGB: 84}
	grown := func(age time.Duration) []v1alpha1.Change {
		return []v1alpha1.Change{{Kind: v1alpha1.KindVolume, Outcome: v1alpha1.OutcomeCompleted, CompletionTime: cases.Ago(age)}}
	}
	for name, tc := range map[string]struct {
		was     *metav1.Time
		read    autopilot.Evidence
		changes []v1alpha1.Change
		want    *metav1.Time
	}{
		"first full value":               {nil, full, nil, &now},
		"still full":                     {&before, full, nil, &before},
		"not read":                       {&before, autopilot.Evidence{}, nil, &before},
		"not read, and never full":       {nil, autopilot.Evidence{}, nil, nil},
		"a lower value":                  {&before, low, nil, nil},
		"full again after a growth":      {&before, full, grown(time.Minute), &now},
		"a growth before it became full": {&before, full, grown(time.Hour), &before},
	} {
		c := cases.Quiet()
		c.Status.OverThresholdSince, c.Status.Changes = tc.was, tc.changes
		if got := c.OverThresholdSince(tc.read); !got.Equal(tc.want) {
			t.Errorf("%s: since %v, want %v", name, got, tc.want)
		}
	}
}

func TestUsedSpaceIsStoredOnlyWhenItSaysSomethingNew(t *testing.T) {
	was := &v1alpha1.UsedSpace{GB: "50.0", Time: metav1.NewTime(cases.Noon())}
	at := func(after time.Duration, gb float64) autopilot.Evidence {
		return autopilot.Evidence{Time: cases.Noon().Add(after), UsedGB: gb}
	}
	for name, tc := range map[string]struct {
		was  *v1alpha1.UsedSpace
		read autopilot.Evidence
		want string
	}{
		"first":            {nil, at(0, 50.04), "50.0"},
		"not read":         {was, autopilot.Evidence{}, "50.0"},
		"almost the same":  {was, at(5*time.Minute, 50.9), "50.0"},
		"one percent more": {was, at(5*time.Minute, 51), "51.0"},
		"one percent less": {was, at(5*time.Minute, 49), "49.0"},
		"half an hour old": {was, at(30*time.Minute, 50.1), "50.1"},
		"an older point":   {was, at(-time.Minute, 60), "50.0"},
	} {
		c := cases.Quiet() // 100 GB
		c.Status.Used = tc.was
		if got := c.UsedSpace(tc.read); got == nil || got.GB != tc.want {
			t.Errorf("%s: %+v, want %s GB", name, got, tc.want)
		}
	}
}

func TestAddSignalKeepsTheNewestOfEachMetric(t *testing.T) {
	sig := func(id string, age time.Duration) v1alpha1.Signal {
		return v1alpha1.Signal{Metric: v1alpha1.MetricCPU, MessageID: id, AlarmTime: cases.Ago(age)}
	}
	in, first := autopilot.AddSignal(v1alpha1.Intake{}, sig("a", time.Minute))
	for _, tc := range []struct {
		name string
		sig  v1alpha1.Signal
		want autopilot.SignalResult
	}{
		{"the same message", sig("a", time.Minute), autopilot.SignalDuplicate},
		{"an older alarm", sig("b", 2*time.Minute), autopilot.SignalStale},
		{"the same alarm under a fresh id", sig("c", time.Minute), autopilot.SignalStale},
		{"a newer alarm", sig("d", 0), autopilot.SignalAdded},
		{"another metric", v1alpha1.Signal{Metric: v1alpha1.MetricStorage, MessageID: "e", AlarmTime: cases.Ago(time.Hour)}, autopilot.SignalAdded},
	} {
		if _, got := autopilot.AddSignal(in, tc.sig); got != tc.want || first != autopilot.SignalAdded {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
	if len(in.Signals) != 1 || in.Signals[0].MessageID != "a" {
		t.Errorf("the intake that was passed was altered: %+v", in)
	}
}

func TestAlarmSinceIgnoresTheSignalOfAnEarlierAlarm(t *testing.T) {
	days := cases.Signalled(cases.StorageAt(93), v1alpha1.StateAlarm, 72*time.Hour, "93")
	if days.MessageID() != "" || !days.Since().Equal(days.StateTime) {
		t.Errorf("since %s by %q, want Cloud Eye's %s", days.Since(), days.MessageID(), days.StateTime)
	}
	own := cases.Signalled(cases.StorageAt(93), v1alpha1.StateAlarm, 90*time.Second, "93")
	if own.MessageID() != "m1" || !own.Since().Equal(own.Signal.AlarmTime.Time) {
		t.Errorf("since %s by %q", own.Since(), own.MessageID())
	}
	repeated := cases.Signalled(cases.StorageAt(93), v1alpha1.StateAlarm, 10*time.Second, "93")
	if repeated.MessageID() != "m1" || !repeated.Since().Equal(repeated.StateTime) {
		t.Errorf("a repetition: since %s by %q", repeated.Since(), repeated.MessageID())
	}
}

func TestSignalForReturnsNilForAnotherRule(t *testing.T) {
	in := v1alpha1.Intake{Signals: []v1alpha1.Signal{{Metric: v1alpha1.MetricStorage, AlarmID: "al-old"}}}
	if autopilot.SignalFor(in, v1alpha1.Rule{Metric: v1alpha1.MetricStorage, AlarmID: "al-new"}) != nil {
		t.Error("the signal of a former instance's rule stands for the new one's")
	}
	if autopilot.SignalFor(in, v1alpha1.Rule{Metric: v1alpha1.MetricStorage, AlarmID: "al-old"}) == nil {
		t.Error("its own signal is not found")
	}
}

// A volume without a known size has the last known one, and a gap of the used space is no proof that there is room.
func TestWhatTheCloudLeavesOutIsNotZero(t *testing.T) {
	c := cases.Quiet(cases.StorageAt(96))
	last := v1alpha1.Instance{ID: "id", VolumeGB: 100, Flavor: "another", VCPUs: 2, MemoryGB: 8}
	for name, tc := range map[string]struct {
		is   autopilot.Instance
		want int
	}{
		"no size":                     {autopilot.Instance{ID: "id"}, 100},
		"a negative size":             {autopilot.Instance{ID: "id", VolumeGB: -1}, 100},
		"a size":                      {autopilot.Instance{ID: "id", VolumeGB: 110}, 110},
		"no size of another instance": {autopilot.Instance{ID: "another"}, 0},
	} {
		if got := tc.is.WithKnownSizes(&last); got.VolumeGB != tc.want || got.VCPUs != 0 {
			t.Errorf("%s: %+v, want %d GB", name, got, tc.want)
		}
	}
	c.SetEvidence(v1alpha1.MetricStorage, autopilot.Evidence{Time: cases.Noon().Add(-time.Minute), UsedGB: 96}, nil)
	before := c.Status
	if before.OverThresholdSince == nil || before.ReadOnly == nil || before.Used == nil {
		t.Fatalf("at 96 GB: %+v", before)
	}
	c.SetEvidence(v1alpha1.MetricStorage, autopilot.Evidence{Time: cases.Noon()}, nil)
	if c.Alarms[0].Evidence.Present() || c.Status.OverThresholdSince != before.OverThresholdSince || c.Status.ReadOnly != before.ReadOnly || c.Status.Used != before.Used {
		t.Errorf("a used space of 0 counts: %+v, %+v", c.Alarms[0].Evidence, c.Status)
	}
	c.Instance.VolumeGB = 0
	c.Alarms = []autopilot.Alarm{cases.Signalled(cases.StorageAt(0), v1alpha1.StateAlarm, time.Minute, "96.0")}
	c.SetEvidence(v1alpha1.MetricStorage, autopilot.Evidence{}, errors.New("no answer"))
	if c.Alarms[0].Evidence.Present() || c.IsFull(autopilot.Evidence{Time: cases.Noon(), UsedGB: 96}) {
		t.Errorf("a volume of unknown size is full: %+v", c.Alarms[0].Evidence)
	}
}
