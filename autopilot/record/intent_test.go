// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// notStarted returns a case with a change that was decided three days ago, and that the cloud has refused since.
func notStarted(pending func(time.Duration) func(*autopilot.Case), noRds bool) autopilot.Case {
	c := cases.Quiet()
	pending(72 * time.Hour)(&c)
	c.Spec.Apply, c.NoRds = v1alpha1.ApplyCloud, noRds
	p := &c.Status.Changes[0]
	if noRds {
		c.Wanted = autopilot.Wanted{VolumeGB: c.Instance.VolumeGB, Flavor: c.Instance.Flavor}
	} else {
		p.RequestTime = p.DecisionTime
	}
	at := cases.Ago(time.Minute)
	p.Refusal = &v1alpha1.Refusal{Count: 3, Time: cases.Ago(5 * time.Minute), Reason: string(autopilot.ReasonInstanceBusy), NextTime: &at}
	return c
}

// A change that the cloud has not started is decided again by the present alarm and the present policy.
func TestNotStartedChangeIsDecidedAgain(t *testing.T) {
	for _, noRds := range []bool{false, true} {
		for _, tc := range []struct {
			name    string
			pending func(time.Duration) func(*autopilot.Case)
			alarm   *autopilot.Alarm
			alter   func(*autopilot.Case)
			to      string // empty if nothing is requested
		}{
			{"disk is still full", cases.PendingVolume, new(cases.StorageAt(93)), nil, "110"},
			{"disk is fuller", cases.PendingVolume, new(cases.StorageAt(99)), nil, "120"},
			{"CPU is still busy", cases.PendingFlavor, new(cases.UsageAt(v1alpha1.MetricCPU, 95)), nil, "rds.mysql.n1.4xlarge.4"},
			{"alarm has ended", cases.PendingVolume, nil, nil, ""},
			{"another writer has grown the volume", cases.PendingVolume, new(cases.StorageAt(93)), cases.Sized(120), ""},
			{"next attempt is not due", cases.PendingVolume, new(cases.StorageAt(93)), func(c *autopilot.Case) {
				c.Status.Changes[0].Refusal.NextTime = autopilot.Micro(cases.Noon().Add(time.Second))
			}, ""},
			{"decided size is above the present cap", intendedGrowth("100", "200"), new(cases.StorageAt(93)), cases.Steps(10, 150), "110"},
		} {
			c := notStarted(tc.pending, noRds)
			if tc.alter != nil {
				tc.alter(&c)
			}
			if noRds {
				c.Wanted = autopilot.Wanted{VolumeGB: c.Instance.VolumeGB, Flavor: c.Instance.Flavor}
			}
			if tc.alarm != nil {
				c.Alarms = []autopilot.Alarm{*tc.alarm}
			}
			decidedAt := c.Status.Changes[0].DecisionTime
			f := FollowUp(c)
			c.Status = f.Status
			v := verdictOf(c)
			to := ""
			if v.Change != nil {
				to = v.Change.To
				if !v.Change.DecisionTime.Equal(decidedAt) || v.Change.Refusal == nil || v.Change.Refusal.Count != 3 || !v.Change.EvidenceTime.Equal(autopilot.Micro(c.Alarms[0].Evidence.Time)) {
					t.Errorf("%s, without an Rds %t: the intent is %+v", tc.name, noRds, v.Change)
				}
			}
			want := tc.to
			if !noRds && want != "" && c.Wanted.VolumeGB > autopilot.Gigabytes(want) && v.Change.Kind == v1alpha1.KindVolume {
				want = strconv.Itoa(min(c.Wanted.VolumeGB, int(c.Spec.Storage.MaxGB)))
			}
			if to != want || len(f.Ended) > 0 && f.Ended[0].Outcome == v1alpha1.OutcomeLost {
				t.Errorf("%s, without an Rds %t: requested %q, want %q; ended %+v", tc.name, noRds, to, want, f.Ended)
			}
			if c.Status = Outcome(c, v).Status; noRds && tc.alarm == nil && pendingOf(c.Status) != nil {
				t.Errorf("%s: kept %+v", tc.name, c.Status.Changes)
			}
		}
	}
}

// intendedGrowth returns an alteration as PendingVolume does, with other sizes.
func intendedGrowth(from, to string) func(time.Duration) func(*autopilot.Case) {
	return func(age time.Duration) func(*autopilot.Case) {
		return func(c *autopilot.Case) {
			c.Wanted.VolumeGB = autopilot.Gigabytes(to)
			cases.AddPending(&c.Status, cases.PendingTo(v1alpha1.KindVolume, from, to, age))
		}
	}
}

// Otherwise the request in the Rds would look like one of another writer.
func TestNotStartedChangeStaysWhileTheRdsRequestsIt(t *testing.T) {
	c := notStarted(cases.PendingFlavor, false)
	c.Status = FollowUp(c).Status
	c.Status = Outcome(c, verdictOf(c)).Status
	if p := pendingOf(c.Status); p == nil || p.StartTime != nil {
		t.Fatalf("pending %+v", p)
	}
	if p := condition(t, c.Status, v1alpha1.ConditionProgressing); p.Status != metav1.ConditionFalse {
		t.Errorf("%+v, although the change has not started", p)
	}
	c.Alarms = []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 95)}
	if v := verdictOf(c); v.Change == nil {
		t.Errorf("the next alarm leads to no request: %+v", v.Decisions)
	}
	c.Wanted.Flavor = c.Instance.Flavor
	if f := FollowUp(c); len(f.Ended) != 1 || f.Ended[0].Outcome != v1alpha1.OutcomeLost {
		t.Errorf("a person has reset the Rds: ended %+v, want it lost", f.Ended)
	}
}

// If the answer to a request is lost, only the instance shows whether the change has begun.
func TestUnclearAnswerIsResolvedByTheInstance(t *testing.T) {
	unclear := func(alter func(*autopilot.Case)) autopilot.Case {
		c := notStarted(cases.PendingVolume, true)
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
