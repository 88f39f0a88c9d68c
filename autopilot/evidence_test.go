// SPDX-License-Identifier: Apache-2.0

package autopilot_test

import (
	"errors"
	"math"
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
		return []v1alpha1.Change{{Kind: v1alpha1.KindVolume, State: v1alpha1.StateCompleted, EndTime: cases.Ago(age)}}
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

func TestUsedSpaceIsStoredAfterOnePercentOrHalfAnHour(t *testing.T) {
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
	if days.MessageID() != "" || !days.Since(cases.Quiet()).Equal(days.StateTime) {
		t.Errorf("since %s by %q, want Cloud Eye's %s", days.Since(cases.Quiet()), days.MessageID(), days.StateTime)
	}
	own := cases.Signalled(cases.StorageAt(93), v1alpha1.StateAlarm, 90*time.Second, "93")
	if own.MessageID() != "m1" || !own.Since(cases.Quiet()).Equal(own.Signal.AlarmTime.Time) {
		t.Errorf("since %s by %q", own.Since(cases.Quiet()), own.MessageID())
	}
	repeated := cases.Signalled(cases.StorageAt(93), v1alpha1.StateAlarm, 10*time.Second, "93")
	if repeated.MessageID() != "m1" || !repeated.Since(cases.Quiet()).Equal(repeated.StateTime) {
		t.Errorf("repeated alarm: since %s by %q", repeated.Since(cases.Quiet()), repeated.MessageID())
	}
}

func TestSignalForReturnsNilForAnotherRule(t *testing.T) {
	in := v1alpha1.Intake{Signals: []v1alpha1.Signal{{Metric: v1alpha1.MetricStorage, AlarmID: "al-old"}}}
	if autopilot.SignalFor(in, v1alpha1.Rule{Metric: v1alpha1.MetricStorage, AlarmID: "al-new"}) != nil {
		t.Error("the signal of a former rule is returned for the new one")
	}
	if autopilot.SignalFor(in, v1alpha1.Rule{Metric: v1alpha1.MetricStorage, AlarmID: "al-old"}) == nil {
		t.Error("its own signal is not found")
	}
}

// A volume without a size has the last known one. A missing measurement does not prove that space is free.
func TestMissingSizeOrMeasurementIsNotZero(t *testing.T) {
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

// readOnlySince returns status.readOnly of a database that became read-only that long ago.
func readOnlySince(ago time.Duration) *v1alpha1.ReadOnly {
	return &v1alpha1.ReadOnly{SinceTime: *autopilot.Seconds(cases.Noon().Add(-ago))}
}

func TestReadOnlyLastsUntilANewerMeasurementShowsTheDatabaseWritable(t *testing.T) {
	grownFrom := func(from string, age time.Duration) func(*autopilot.Case) {
		return func(c *autopilot.Case) {
			c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: from, To: "100",
				State: v1alpha1.StateCompleted, RequestTime: new(cases.Ago(age + 10*time.Minute)), StartTime: new(cases.Ago(age + 10*time.Minute)),
				EndTime: cases.Ago(age)}}
			c.FormerSeen = cases.Ago(age + 30*time.Second).Time
		}
	}
	measured := func(usedGB float64, age time.Duration) autopilot.Evidence {
		return autopilot.Evidence{Time: cases.Noon().Add(-age), UsedGB: usedGB}
	}
	hourAgo := readOnlySince(time.Hour)
	for name, tc := range map[string]struct {
		was   *v1alpha1.ReadOnly
		read  autopilot.Evidence
		alter func(*autopilot.Case)
		want  *v1alpha1.ReadOnly
	}{
		"below the limit":                    {nil, measured(94.9, time.Minute), nil, nil},
		"at the limit":                       {nil, measured(95, time.Minute), nil, readOnlySince(time.Minute)},
		"still read-only above 87 %":         {hourAgo, measured(87.1, time.Minute), nil, hourAgo},
		"writable at 87 %":                   {hourAgo, measured(87, time.Minute), nil, nil},
		"measurement of the same time":       {hourAgo, measured(80, time.Hour), nil, hourAgo},
		"an older measurement":               {hourAgo, measured(80, 2*time.Hour), nil, hourAgo},
		"no measurement":                     {hourAgo, autopilot.Evidence{}, nil, hourAgo},
		"no instance":                        {hourAgo, measured(80, time.Minute), func(c *autopilot.Case) { c.Instance = nil }, hourAgo},
		"STORAGE FULL":                       {nil, measured(80, time.Minute), cases.InStatus(autopilot.StatusStorageFull), readOnlySince(0)},
		"still read-only in STORAGE FULL":    {hourAgo, measured(80, time.Minute), cases.InStatus(autopilot.StatusStorageFull), hourAgo},
		"the limit of the size at that time": {nil, measured(88, 5*time.Minute), grownFrom("90", time.Minute), readOnlySince(5 * time.Minute)},
		"either size is possible":            {nil, measured(88, time.Minute), grownFrom("90", time.Minute), nil},
		"a measurement of the future":        {nil, measured(96, -4*time.Minute), nil, readOnlySince(0)},
		"below the limit of a size long ago": {nil, measured(88, 5*time.Minute), grownFrom("90", time.Hour), nil},
		"no check saw the size at that time": {nil, measured(88, 5*time.Minute), func(c *autopilot.Case) {
			grownFrom("90", time.Minute)(c)
			c.FormerSeen = cases.Ago(6 * time.Minute).Time
		}, nil},
		"a growth has made it writable": {nil, measured(78, 5*time.Minute), grownFrom("80", time.Minute), nil},
	} {
		c := cases.Quiet()
		c.Status.ReadOnly = tc.was
		if tc.alter != nil {
			tc.alter(&c)
		}
		got := c.ReadOnly(tc.read)
		if (got == nil) != (tc.want == nil) || got != nil && !got.SinceTime.Equal(&tc.want.SinceTime) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// A signal has a percentage only, so the used space depends on the size of the volume at the time of its datapoint.
func TestEvidenceFromSignalUsesTheSizeAtItsTime(t *testing.T) {
	for name, tc := range map[string]struct {
		grownAgo, evidenceAgo time.Duration // of our growth from 90 to 100 GB
		want                  float64
	}{
		"grown after the datapoint":                               {time.Minute, 0, 84.6},
		"grown a minute before it, within the skew of the clocks": {6 * time.Minute, 0, 94},
		"grown a minute after it, within the skew of the clocks":  {4 * time.Minute, 0, 94},
		"grown 3 minutes before it":                               {8 * time.Minute, 0, 94},
		"grown before it, because of this value":                  {8 * time.Minute, 5 * time.Minute, 84.6},
	} {
		c := cases.Quiet()
		growth := cases.GrownVolume("90", "100", tc.grownAgo)
		if tc.evidenceAgo > 0 {
			growth.EvidenceTime = new(cases.Ago(tc.evidenceAgo))
		}
		c.Status.Changes, c.FormerSeen = []v1alpha1.Change{growth}, growth.EndTime.Time
		a := cases.Signalled(cases.StorageAt(0), v1alpha1.StateAlarm, 5*time.Minute, "94")
		if got := a.EvidenceFromSignal(c).UsedGB; got != tc.want {
			t.Errorf("%s: %g GB used, want %g", name, got, tc.want)
		}
	}
}

func TestMeasurementThatCannotBeTrueIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		value float64
		ahead time.Duration
		want  bool
	}{
		"zero": {0, 0, true}, "as large as the volume": {100, 0, true}, "negative": {-0.1, 0, false},
		"more than the volume": {100.1, 0, false}, "infinite": {math.Inf(1), 0, false}, "not a number": {math.NaN(), 0, false},
		"5 minutes ahead": {50, 5 * time.Minute, true}, "more than 5 minutes ahead": {50, 5*time.Minute + 1, false},
	} {
		if got := (autopilot.Point{Time: cases.Noon().Add(tc.ahead), Value: tc.value}).IsCredible(100, cases.Noon()); got != tc.want {
			t.Errorf("%s: credible %t", name, got)
		}
	}
	for _, percent := range []string{"NaN", "Inf", "-1", "101", "1e300"} {
		a := cases.Signalled(cases.StorageAt(0), v1alpha1.StateAlarm, time.Minute, percent)
		if e := a.EvidenceFromSignal(cases.Quiet()); e.Present() {
			t.Errorf("a signal of %s %%: %+v", percent, e)
		}
	}
	a := cases.Signalled(cases.StorageAt(0), v1alpha1.StateAlarm, -6*time.Minute, "95")
	if e := a.EvidenceFromSignal(cases.Quiet()); e.Present() {
		t.Errorf("a signal 6 minutes ahead: %+v", e)
	}
}
