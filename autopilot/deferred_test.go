// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func inWindow(day v1alpha1.Day, start, end string) func(*Case) {
	return func(c *Case) {
		c.Spec.Flavor.Window = &v1alpha1.Window{Days: []v1alpha1.Day{day}, Start: start, End: end, TimeZone: "UTC"}
	}
}

func TestDecideMakesADeferredChangeWhenTheWindowOpens(t *testing.T) {
	c := quiet()
	inWindow("Sat", "01:00", "05:00")(&c)
	activeFor(30 * 24 * time.Hour)(&c)
	at := func(day time.Time, alarm bool) Verdict {
		c.Now, c.Alarms = day, nil
		c.Alarms = []Alarm{{Metric: v1alpha1.MetricCPU, State: v1alpha1.StateOK}}
		if alarm {
			c.Alarms[0].State, c.Alarms[0].Evidence = v1alpha1.StateAlarm, Evidence{Time: day, Percent: 95}
		}
		v := Decide(c)
		c.Status = RecordIntent(c, v)
		return v
	}
	wednesday := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	if v := at(wednesday, true); v.Intent != nil || c.Status.Deferred == nil {
		t.Fatalf("on Wednesday: intent %+v, deferred %+v", v.Intent, c.Status.Deferred)
	}
	v := at(wednesday.Add(time.Hour), false)
	if v.Intent != nil || c.Status.Deferred == nil || v.RequeueAfter <= 0 {
		t.Fatalf("an hour later: intent %+v, deferred %+v, again in %s", v.Intent, c.Status.Deferred, v.RequeueAfter)
	}
	v = at(wednesday.Add(time.Hour).Add(v.RequeueAfter), false)
	if v.Intent == nil || v.Intent.Kind != v1alpha1.KindFlavor {
		t.Fatalf("when the window opens: intent %+v, deferred %+v", v.Intent, c.Status.Deferred)
	}
	if s := RecordOutcome(c, v, Followed{}, Patched{Result: PatchRefused}).Status; s.Deferred == nil {
		t.Error("a refused change no longer waits, though nobody has made it")
	}
	if s := RecordOutcome(c, v, Followed{}, Patched{Result: PatchAccepted}).Status; s.Deferred != nil {
		t.Errorf("a change that is made still waits: %+v", s.Deferred)
	}
}

func TestDecideDropsADeferredChangeThatNoLongerApplies(t *testing.T) {
	wish := func() Case {
		c := quiet()
		c.Status.Deferred = &v1alpha1.Deferred{
			Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU}, ValuePercent: "95.0",
			FirstTime: metav1.NewTime(noon().Add(-48 * time.Hour)), LastTime: metav1.NewTime(noon().Add(-47 * time.Hour)),
		}
		return c
	}
	if v := Decide(wish()); v.Intent == nil {
		t.Fatalf("without a window it is due: %+v", v)
	}
	for name, alter := range map[string]func(*Case){
		"after a week":              func(c *Case) { c.Now = c.Now.Add(8 * 24 * time.Hour) },
		"when the flavor changed":   func(c *Case) { c.Status.Changes = []v1alpha1.Change{completedFlavor(time.Hour)} },
		"when the metric is off":    func(c *Case) { off := false; c.Spec.Flavor.CPU.Enabled = &off },
		"when autopilot is off":     func(c *Case) { c.Enabled = false },
		"in mode Off":               func(c *Case) { c.Mode = v1alpha1.ModeOff },
		"when the instance is gone": func(c *Case) { c.Instance = nil },
	} {
		c := wish()
		alter(&c)
		if v := Decide(c); v.Intent != nil {
			t.Errorf("%s: %+v", name, v.Intent)
		}
	}
}

func TestDecideJoinsDeferredChangesOfSeveralDays(t *testing.T) {
	c := quiet()
	inWindow("Sat", "01:00", "05:00")(&c)
	activeFor(30 * 24 * time.Hour)(&c)
	for i, m := range []v1alpha1.Metric{v1alpha1.MetricCPU, v1alpha1.MetricMemory} {
		c.Now = time.Date(2026, 11, 18+i, 12, 0, 0, 0, time.UTC)
		c.Alarms = []Alarm{{Metric: m, State: v1alpha1.StateAlarm, Evidence: Evidence{Time: c.Now, Percent: 95}}}
		c.Status = RecordIntent(c, Decide(c))
	}
	c.Now, c.Alarms = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC), nil
	v := Decide(c)
	if v.Intent == nil || len(v.Intent.Metrics) != 2 || v.Intent.To != "rds.mysql.n1.4xlarge.4" || v.Intent.ValuePercent != "95.0" {
		t.Fatalf("intent %+v, want one for the CPU of Wednesday and the memory of Thursday", v.Intent)
	}
}
