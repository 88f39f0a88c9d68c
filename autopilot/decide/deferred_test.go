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
		c.Status = record.Intent(c, v)
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
	if s := record.Outcome(c, v, record.Followed{}, record.Patched{Result: record.PatchRefused}).Status; s.Deferred == nil {
		t.Error("a refused change is no longer deferred")
	}
	if s := record.Outcome(c, v, record.Followed{}, record.Patched{Result: record.PatchAccepted}).Status; s.Deferred != nil {
		t.Errorf("a requested change is still deferred: %+v", s.Deferred)
	}
}

func TestDecideJoinsDeferredChangesOfSeveralDays(t *testing.T) {
	c := cases.Quiet()
	cases.InWindow("Sat", "01:00", "05:00")(&c)
	cases.ActiveFor(30 * 24 * time.Hour)(&c)
	for i, m := range []v1alpha1.Metric{v1alpha1.MetricCPU, v1alpha1.MetricMemory} {
		c.Now = time.Date(2026, 11, 18+i, 12, 0, 0, 0, time.UTC)
		c.Alarms = []autopilot.Alarm{{Metric: m, State: v1alpha1.StateAlarm, Evidence: autopilot.Evidence{Time: c.Now, Percent: 95}}}
		c.Status = record.Intent(c, verdictOf(c))
	}
	c.Now, c.Alarms = time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC), nil
	v := verdictOf(c)
	if v.Intent == nil || len(v.Intent.Metrics) != 2 || v.Intent.To != "rds.mysql.n1.4xlarge.4" || v.Intent.ValuePercent != "95.0" {
		t.Fatalf("intent %+v, want one for the CPU of Wednesday and the memory of Thursday", v.Intent)
	}
}
