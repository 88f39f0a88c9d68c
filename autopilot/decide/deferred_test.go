// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func TestDecideMakesADeferredChangeWhenTheWindowOpens(t *testing.T) {
	c := cases.Quiet()
	cases.InWindow("Sat", "01:00", "05:00")(&c)
	cases.ActiveFor(30 * 24 * time.Hour)(&c)
	at := func(day time.Time, alarm bool) autopilot.Verdict {
		c.Now = day
		c.Alarms = []autopilot.Alarm{{Metric: v1alpha1.MetricCPU, State: v1alpha1.StateOK}}
		if alarm {
			c.Alarms[0].State, c.Alarms[0].Evidence = v1alpha1.StateAlarm, autopilot.Evidence{Time: day, Percent: 95}
		}
		v := verdictOf(c)
		c.Status = record.Outcome(c, v).Status
		return v
	}
	wednesday := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	if v := at(wednesday, true); v.Change != nil || c.Status.Deferred == nil {
		t.Fatalf("on Wednesday: intent %+v, deferred %+v", v.Change, c.Status.Deferred)
	}
	v := at(wednesday.Add(time.Hour), false)
	if v.Change != nil || c.Status.Deferred == nil || v.RequeueAfter <= 0 {
		t.Fatalf("an hour later: intent %+v, deferred %+v, again in %s", v.Change, c.Status.Deferred, v.RequeueAfter)
	}
	v = at(wednesday.Add(time.Hour).Add(v.RequeueAfter), false)
	if v.Change == nil || v.Change.Kind != v1alpha1.KindFlavor {
		t.Fatalf("when the window opens: intent %+v, deferred %+v", v.Change, c.Status.Deferred)
	}
	if c.Status.Deferred == nil {
		t.Error("a change that may be refused is no longer deferred")
	}
	c.Wanted.Flavor = v.Change.To
	c.Status = record.FollowUp(c).Status
	if at(c.Now, false); c.Status.Deferred != nil {
		t.Errorf("a requested change is still deferred: %+v", c.Status.Deferred)
	}
}

func TestDecideJoinsDeferredChangesOfSeveralDays(t *testing.T) {
	c := cases.Quiet()
	cases.InWindow("Sat", "01:00", "05:00")(&c)
	cases.ActiveFor(30 * 24 * time.Hour)(&c)
	for i, m := range []v1alpha1.Metric{v1alpha1.MetricCPU, v1alpha1.MetricMemory} {
		c.Now = time.Date(2026, 11, 18+i, 12, 0, 0, 0, time.UTC)
		c.Alarms = []autopilot.Alarm{{Metric: m, State: v1alpha1.StateAlarm, Evidence: autopilot.Evidence{Time: c.Now, Percent: 95}}}
		c.Status = record.Outcome(c, verdictOf(c)).Status
	}
	c.Now, c.Alarms = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC), nil
	v := verdictOf(c)
	if v.Change == nil || len(v.Change.Metrics) != 2 || v.Change.To != "rds.mysql.n1.4xlarge.4" || v.Change.ValuePercent != "95.0" {
		t.Fatalf("intent %+v, want one for the CPU of Wednesday and the memory of Thursday", v.Change)
	}
}
