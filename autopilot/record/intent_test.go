// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// notStarted returns a case with a change that was decided three days ago, and that the cloud has refused since.
func notStarted(pending func(time.Duration) func(*autopilot.Case)) autopilot.Case {
	c := cases.Quiet()
	pending(72 * time.Hour)(&c)
	cases.WithoutRds(&c)
	p := &c.Status.Changes[0]
	at := cases.Ago(time.Minute)
	p.Refusal = &v1alpha1.Refusal{Count: 3, Time: cases.Ago(5 * time.Minute), Reason: string(autopilot.ReasonInstanceBusy), NextTime: &at}
	return c
}

// If the answer to a request is lost, only the instance shows whether the change has begun.
func TestUnclearAnswerIsResolvedByTheInstance(t *testing.T) {
	unclear := func(alter func(*autopilot.Case)) autopilot.Case {
		c := notStarted(cases.PendingVolume)
		c.Status.Changes[0].Refusal.Reason = autopilot.CloudUnreachable
		alter(&c)
		c.Status = FollowUp(c).Status
		c.Status = Outcome(c, verdictOf(c)).Status // without an alarm
		return c
	}
	stopped := func(c *autopilot.Case) {
		c.Status.Changes[0].Refusal, c.Status.Changes[0].DecisionTime = nil, new(cases.Ago(time.Minute))
	}
	for name, tc := range map[string]struct {
		alter func(*autopilot.Case)
		want  autopilot.Progress
	}{
		"MODIFYING": {cases.InStatus("MODIFYING"), autopilot.Started},
		"MODIFYING, and the service stopped during the request": {cases.Both(stopped, cases.InStatus("MODIFYING")), autopilot.Started},
		"BACKING UP":                {cases.InStatus("BACKING UP"), autopilot.Unclear},
		"ACTIVE without the change": {cases.InStatus(autopilot.StatusActive), autopilot.Unclear},
	} {
		c := unclear(tc.alter)
		if p := pendingOf(c.Status); p == nil || p.StartTime != nil || c.Progress(p) != tc.want {
			t.Errorf("%s: pending %+v, want progress %d and no job", name, p, tc.want)
		}
	}
	if c := unclear(cases.Sized(110)); len(c.Status.Changes) != 1 || c.Status.Changes[0].By != v1alpha1.ByAutopilot || !c.Status.Changes[0].StartTime.Time.Equal(cases.Noon()) {
		t.Errorf("the volume has grown: %+v", c.Status.Changes)
	}
	if c := unclear(func(c *autopilot.Case) { c.Status.Changes[0].Refusal.Time = cases.Ago(autopilot.StallAfter) }); pendingOf(c.Status) != nil {
		t.Errorf("no growth for 15 minutes: %+v", c.Status.Changes)
	}
}

// The job may have begun and failed while the service did not run, so the flavor is not requested again before its
// cooldown has passed. Within three minutes, a repeated request changes nothing.
func TestFlavorCountsAsStartedIfTheServiceStoppedDuringItsRequest(t *testing.T) {
	for age, want := range map[time.Duration]bool{time.Minute: false, 4 * time.Minute: true} {
		c := cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95))
		cases.PendingFlavor(age)(&c)
		c.Spec.Apply = v1alpha1.ApplyCloud
		c.Status = FollowUp(c).Status
		if v := verdictOf(c); (v.Change == nil) != want {
			t.Errorf("decided %v ago: requested again: %+v", age, v.Change)
		}
		c.Now = c.Now.Add(autopilot.StallAfter)
		c.Status = FollowUp(c).Status
		if starts := autopilot.FlavorStarts(c.Status.Changes); len(starts) == 1 != want {
			t.Errorf("decided %v ago: counts %v 15 minutes later", age, starts)
		}
	}
}

// It may have started, so a candidate that is better by now must wait.
func TestFlavorWithoutAClearAnswerIsTheOnlyOneThatIsRequested(t *testing.T) {
	for _, reason := range []autopilot.Reason{autopilot.CloudUnreachable, autopilot.ReasonQuotaExceeded} {
		c := notStarted(cases.PendingFlavor)
		c.Alarms = []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}
		p := &c.Status.Changes[0]
		p.To, p.Refusal.Reason = "rds.mysql.n1.8xlarge.4", string(reason)
		v := verdictOf(c)
		if v.Change == nil || (v.Change.To == p.To) != (reason == autopilot.CloudUnreachable) {
			t.Errorf("%s: %s was requested, and now %+v", reason, p.To, v.Change)
		}
	}
}

// No request was sent, so the change cannot have started.
func TestReadThatFailsBeforeTheRequestIsNoUnclearAnswer(t *testing.T) {
	l := &loop{Case: cases.Quiet(cases.StorageAt(93))}
	l.Spec.Apply, l.NoRds = v1alpha1.ApplyCloud, true
	l.apply = func(*autopilot.Case, v1alpha1.Change) *Answer {
		return &Answer{Reason: autopilot.CloudUnreachable, Unsent: true, Message: "nothing was requested: read instance id: no answer"}
	}
	l.round(t)
	if d := l.Status.Decisions[0]; d.Reason != autopilot.CloudUnreachable || d.Message != "The cloud did not answer before the request (Storage 100 → 110 GB): nothing was requested: read instance id: no answer. Next check at 2026-11-20T12:00:30Z" {
		t.Errorf("%+v", d)
	}
	if p := pendingOf(l.Status); p == nil || p.Refusal != nil {
		t.Errorf("pending %+v", p)
	}
}
