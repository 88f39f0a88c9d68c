// SPDX-License-Identifier: Apache-2.0

package autopilot_test

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"strconv"
	"strings"
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
	c.SetEvidence(v1alpha1.MetricStorage, autopilot.Evidence{Time: cases.Noon().Add(-time.Minute), UsedGB: 96})
	before := c.Status
	if before.OverThresholdSince == nil || before.ReadOnly == nil || before.Used == nil {
		t.Fatalf("at 96 GB: %+v", before)
	}
	c.SetEvidence(v1alpha1.MetricStorage, autopilot.Evidence{Time: cases.Noon(), UsedGB: 10, Missing: "no value"})
	c.SetEvidence(v1alpha1.MetricStorage, autopilot.Evidence{})
	if c.Alarms[0].Evidence.Present() || c.Status.OverThresholdSince != before.OverThresholdSince || c.Status.ReadOnly != before.ReadOnly || c.Status.Used != before.Used {
		t.Errorf("a missing used space counts: %+v, %+v", c.Alarms[0].Evidence, c.Status)
	}
	c.Instance.VolumeGB = 0
	e, _ := c.Measure(c.Alarms[0], func([]string) autopilot.Readings { return nil })
	if e.Present() || c.IsFull(autopilot.Evidence{Time: cases.Noon(), UsedGB: 96}) {
		t.Errorf("a volume of unknown size is full: %+v", e)
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

// held is what a source may hold, with the reason why it is not sound.
type held struct {
	name, flaw string
	age        time.Duration
	value      float64 // 0 means that of the metric
}

func (h held) reading(sound, before float64) (r autopilot.Reading) {
	switch value := cmp.Or(h.value, h.of(sound, before), sound); h.name {
	case "missing":
	case "text":
		r.Err = errors.New(h.flaw)
	default:
		r.Points = []autopilot.Point{{Time: cases.Noon().Add(-h.age), Value: value}}
	}
	return r
}

// of returns the value of a sound source, else 0.
func (h held) of(sound, before float64) float64 {
	return map[string]float64{"sound": sound, "before the growth": before}[h.name]
}

// If one source of the used space is sound, the first sound one counts; while the rule is in alarm, the higher one of used
// space and percentage. Else it is missing, with the reason of each source.
func TestOneSoundSourceOfTheUsedSpaceIsEnough(t *testing.T) {
	all := []held{
		{"sound", "", time.Minute, 0}, {"before the growth", "", 12 * time.Minute, 0}, {"missing", "no value", 0, 0},
		{"text", "no", 0, 0}, {"not finite", "+Inf cannot be true", time.Minute, math.Inf(1)},
		{"negative", "-1 cannot be true", time.Minute, -1}, {"too large", "121.1 cannot be true", time.Minute, 121.1},
		{"old", "too old", 31 * time.Minute, 0}, {"ahead", "dated ahead", -6 * time.Minute, 0},
	}
	row, c := autopilot.Row(v1alpha1.MetricStorage), cases.Quiet()
	cases.Sized(110)(&c)
	c.Status.Changes = []v1alpha1.Change{cases.GrownVolume("100", "110", 5*time.Minute)}
	for n := range 2 * 9 * 9 * 9 * 9 {
		used, total, percent, message := all[n%9], all[n/9%9], all[n/81%9], all[n/729%9]
		a := autopilot.Alarm{Metric: row.Metric, State: []v1alpha1.State{v1alpha1.StateAlarm, v1alpha1.StateOK}[n/6561]}
		ofUsed, ofTotal, ofList := used.of(88, 84), 0.0, percent.of(99, 80)
		if total.name == percent.name { // of the same time
			ofTotal = percent.of(98.1, 79.2)
		}
		want := cmp.Or(ofUsed, ofTotal, ofList, message.of(104.5, 94))
		if a.State == v1alpha1.StateAlarm && ofUsed > 0 { // which is below the threshold
			want = max(ofUsed, cmp.Or(ofTotal, ofList))
		}
		text := map[string]string{"text": "a lot"}[message.name]
		for _, p := range message.reading(95, 94).Points {
			text = strconv.FormatFloat(p.Value, 'f', -1, 64)
		}
		has := autopilot.Readings{
			row.UsedGB: used.reading(88, 84), row.TotalGB: total.reading(109, 99), row.CloudEye: percent.reading(90, 80),
		}
		read := autopilot.Readings{}
		e, err := c.Measure(cases.Signalled(a, a.State, message.age, text), func(names []string) autopilot.Readings {
			for _, name := range names {
				read[name] = has[name]
			}
			return maps.Clone(read)
		})
		isLost, isUnread := ofUsed+ofList == 0, used.name == "text" || percent.name == "text"
		isExplained := strings.HasPrefix(e.Missing, "used space: "+used.flaw) && strings.Contains(e.Missing, "newest message: "+message.flaw) &&
			strings.Contains(e.Missing, "percentage of the total size: "+percent.flaw) && strings.Contains(e.Missing, "listed size: "+percent.flaw)
		if math.Abs(e.UsedGB-want) > 1e-9 || e.Present() != (want > 0) || (e.Missing != "") != isLost || want == 0 && !isExplained ||
			(err != nil) != (isLost && isUnread) || ofUsed > 0 && a.State == v1alpha1.StateOK && len(read) > 1 {
			t.Errorf("%s: used space %s, total size %s, percentage %s, message %s: %+v, %v, %d metrics read; want %g GB",
				a.State, used.name, total.name, percent.name, message.name, e, err, len(read), want)
		}
	}
}

// The cloud may count in GiB. A value belongs to the size at its own time, or the same value would grow the volume twice.
func TestUsedSpaceBelongsToTheSizeAtItsTime(t *testing.T) {
	row := autopilot.Row(v1alpha1.MetricStorage)
	for name, tc := range map[string]struct {
		metric string
		value  float64
		grown  time.Duration // ago, of the growth from 1,000 to 1,020 GB; the value is 10 minutes old
		want   float64
	}{
		"107.4 % of the volume":                    {row.UsedGB, 1074, time.Hour, 1020},
		"a tenth above the volume":                 {row.UsedGB, 1122, time.Hour, 1020},
		"more than a tenth above the volume":       {row.UsedGB, 1122.1, time.Hour, 0},
		"107.4 % before the growth":                {row.UsedGB, 1074, 9 * time.Minute, 1000},
		"so much that the growth came before":      {row.UsedGB, 1101, 9 * time.Minute, 1020},
		"percentage before the growth":             {row.CloudEye, 91.2, 9 * time.Minute, 912},
		"percentage within the skew of the clocks": {row.CloudEye, 91.2, 12 * time.Minute, 912},
		"percentage after the growth":              {row.CloudEye, 91.2, 13 * time.Minute, 930.24},
		"percentage with a rounding error":         {row.CloudEye, 101, time.Hour, 1020},
	} {
		c := cases.Quiet(cases.StorageAt(0))
		cases.Sized(1020)(&c)
		c.Status.Changes = []v1alpha1.Change{cases.GrownVolume("1000", "1020", tc.grown)}
		points := []autopilot.Point{{Time: cases.Noon().Add(-10 * time.Minute), Value: tc.value}}
		reads := 0
		e, err := c.Measure(c.Alarms[0], func([]string) autopilot.Readings {
			reads++
			return autopilot.Readings{tc.metric: {Points: points}}
		})
		c.Alarms[0].Evidence = e
		if math.Abs(e.UsedGB-tc.want) > 1e-9 || err != nil || c.IsFull(e) && tc.metric == row.UsedGB && reads > 1 ||
			tc.want == 912 && c.NewSize(c.Alarms[0], 4000) != 1020 {
			t.Errorf("%s: %+v, %v, want %g GB; grows to %d GB", name, e, err, tc.want, c.NewSize(c.Alarms[0], 4000))
		}
	}
}

// In an outage, the message counts at once. A message whose alarm has ended does not count.
func TestMessageCountsWhileCloudEyeDoesNotAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		alarm autopilot.Alarm
		err   error
		want  float64
	}{
		"outage":                  {cases.StorageAt(0), autopilot.ErrOutage, 94},
		"CPU in an outage":        {cases.UsageAt(v1alpha1.MetricCPU, 0), autopilot.ErrOutage, 94},
		"CPU without data":        {cases.UsageAt(v1alpha1.MetricCPU, 0), nil, 0},
		"an alarm that has ended": {autopilot.Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}, nil, 0},
	} {
		reads := 0
		e, err := cases.Quiet().Measure(cases.Signalled(tc.alarm, v1alpha1.StateAlarm, 5*time.Minute, "94"), func(names []string) autopilot.Readings {
			reads++
			return autopilot.Readings{names[0]: {Err: tc.err}}
		})
		if e.Percent+e.UsedGB != tc.want || !errors.Is(err, tc.err) || tc.err != nil && reads != 1 {
			t.Errorf("%s: %+v, %v after %d reads", name, e, err, reads)
		}
	}
}

func TestWALIsNamedFromAFifthOfTheUsedSpaceOn(t *testing.T) {
	for name, tc := range map[string]struct {
		wal    autopilot.WAL
		usedGB float64
		want   string
	}{
		"below a fifth": {autopilot.WAL{GB: 17.9, InactiveSlots: 1}, 90, ""},
		"a fifth":       {autopilot.WAL{GB: 18}, 90, "18 of the 90 GB in use are WAL: growing does not fix this"},
		"with a slot": {autopilot.WAL{GB: 41, InactiveSlots: 1}, 92,
			"41 of the 92 GB in use are WAL, and 1 inactive logical replication slot keeps WAL: growing does not fix this"},
		"with two slots": {autopilot.WAL{GB: 41, InactiveSlots: 2}, 92,
			"41 of the 92 GB in use are WAL, and 2 inactive logical replication slots keep WAL: growing does not fix this"},
		"no used space":            {autopilot.WAL{GB: 41}, 0, ""},
		"more than the used space": {autopilot.WAL{GB: 93}, 92, ""},
	} {
		if got := tc.wal.Describe(tc.usedGB); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
