// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// notStarted is a change that was decided three days ago, and that the cloud has refused until now.
func notStarted(pending func(time.Duration) func(*Case), noRds bool) Case {
	c := quiet()
	pending(72 * time.Hour)(&c)
	c.Spec.Apply, c.NoRds = v1alpha1.ApplyCloud, noRds
	p := c.Status.Pending
	if noRds {
		c.Wanted = Wanted{c.Instance.VolumeGB, c.Instance.Flavor}
	} else {
		p.AskedTime = &p.DecisionTime
	}
	at := ago(time.Minute)
	p.Refusal = &v1alpha1.Refusal{Count: 3, Time: ago(5 * time.Minute), Reason: string(ReasonInstanceBusy), NextTime: &at}
	return c
}

// What the cloud has not started is no promise: only an alarm of now leads to a request, with what is needed now.
func TestNotStartedIntentIsDecidedAgain(t *testing.T) {
	for _, noRds := range []bool{false, true} {
		for _, tc := range []struct {
			name    string
			pending func(time.Duration) func(*Case)
			alarm   *Alarm
			alter   func(*Case)
			to      string // empty: nothing is requested
		}{
			{"the disk is still full", pendingVolume, new(storageAt(93)), nil, "110"},
			{"the disk is fuller", pendingVolume, new(storageAt(99)), nil, "120"},
			{"the CPU is still busy", pendingFlavor, new(usageAt(v1alpha1.MetricCPU, 95)), nil, "rds.mysql.n1.4xlarge.4"},
			{"no alarm any more", pendingVolume, nil, nil, ""},
			{"the CPU is idle", pendingFlavor, new(usageAt(v1alpha1.MetricCPU, 5)), nil, ""},
			{"only old evidence", pendingFlavor, new(usageAt(v1alpha1.MetricCPU, 95).measured(36 * time.Minute)), nil, ""},
			{"somebody has made it larger", pendingVolume, new(storageAt(93)), sized(120), ""},
			{"the metric is off", pendingFlavor, new(usageAt(v1alpha1.MetricCPU, 95)), func(c *Case) { c.Spec.Flavor.CPU.Enabled = new(false) }, ""},
			{"recommend only", pendingVolume, new(storageAt(93)), recommend, ""},
			{"the window is closed", pendingFlavor, new(usageAt(v1alpha1.MetricCPU, 95)), inWindow("Sat", "01:00", "05:00"), ""},
			{"a lower cap", pendingFlavor, new(usageAt(v1alpha1.MetricCPU, 95)), func(c *Case) { c.Spec.Flavor.MaxVCPUs = new(int32(8)) }, ""},
			{"the next try is not due", pendingVolume, new(storageAt(93)), func(c *Case) { c.Status.Pending.Refusal.NextTime = micro(noon().Add(time.Second)) }, ""},
			{"the disk was decided to be larger than the cap of now", decided("100", "200"), new(storageAt(93)), steps(10, 150), "110"},
		} {
			c := notStarted(tc.pending, noRds)
			if tc.alter != nil {
				tc.alter(&c)
			}
			if noRds {
				c.Wanted = Wanted{c.Instance.VolumeGB, c.Instance.Flavor}
			}
			if tc.alarm != nil {
				c.Alarms = []Alarm{*tc.alarm}
			}
			decidedAt := c.Status.Pending.DecisionTime
			f := FollowUp(c)
			c.Status = f.Status
			v := Decide(c)
			to := ""
			if v.Intent != nil {
				to = v.Intent.To
				if !v.Intent.DecisionTime.Equal(&decidedAt) || v.Intent.Refusal == nil || v.Intent.Refusal.Count != 3 || !v.Intent.EvidenceTime.Equal(micro(c.Alarms[0].Evidence.Time)) {
					t.Errorf("%s, without an Rds %t: the intent is %+v", tc.name, noRds, v.Intent)
				}
			}
			want := tc.to
			if !noRds && want != "" && c.Wanted.VolumeGB > gigabytes(want) && v.Intent.Kind == v1alpha1.KindVolume {
				want = strconv.Itoa(min(c.Wanted.VolumeGB, int(c.Spec.Storage.MaxGB)))
			}
			if to != want || len(f.Ended) > 0 && f.Ended[0].Outcome == v1alpha1.OutcomeLost {
				t.Errorf("%s, without an Rds %t: requested %q, want %q; ended %+v", tc.name, noRds, to, want, f.Ended)
			}
			if c.Status = RecordIntent(c, v); noRds && tc.alarm == nil && c.Status.Pending != nil {
				t.Errorf("%s: kept %+v", tc.name, c.Status.Pending)
			}
		}
	}
}

func decided(from, to string) func(time.Duration) func(*Case) {
	return func(age time.Duration) func(*Case) {
		return func(c *Case) {
			c.Wanted.VolumeGB, c.Status.Pending = gigabytes(to), intentTo(v1alpha1.KindVolume, from, to, age)
		}
	}
}

// Nobody but the autopilot applies the Rds there. It waited for ever for the size that a person had set.
func TestApplyCloudRequestsTheSizeOfTheRds(t *testing.T) {
	for _, tc := range []struct {
		wants, maxGB int32
		usedGB       float64
		to, says     string
	}{
		{200, 4000, 93, "200", "; the Rds requests 200 GB"},
		{200, 150, 99.5, "150", "; the Rds requests 200 GB; the database is read-only until it has grown"},
		{105, 4000, 99, "120", ""},
		{133, 4000, 93, "140", "; the Rds requests 133 GB"},
	} {
		c := quiet().with(storageAt(tc.usedGB))
		c.Spec.Apply, c.Wanted.VolumeGB, c.Spec.Storage.MaxGB = v1alpha1.ApplyCloud, int(tc.wants), tc.maxGB
		v := Decide(c)
		if v.Intent == nil || v.Intent.To != tc.to || !strings.Contains(v.Intent.Message, tc.says) {
			t.Errorf("the Rds requests %d GB: %+v", tc.wants, v)
		}
		if c.Alarms = nil; Decide(c).Intent != nil {
			t.Errorf("the Rds requests %d GB: grown without an alarm", tc.wants)
		}
	}
}

// With an Rds, a change that nobody has started stays recorded while the Rds requests it. Otherwise it would look like
// another writer's.
func TestNotStartedIntentStaysWhileTheRdsRequestsIt(t *testing.T) {
	c := notStarted(pendingFlavor, false)
	c.Status = FollowUp(c).Status
	c.Status = RecordIntent(c, Decide(c))
	if p := c.Status.Pending; p == nil || p.JobTime != nil {
		t.Fatalf("pending %+v", p)
	}
	done := RecordOutcome(c, Verdict{}, Followed{}, Patched{})
	if p := condition(t, done.Status, v1alpha1.ConditionProgressing); p.Status != metav1.ConditionFalse {
		t.Errorf("%+v, though nobody makes it", p)
	}
	c.Alarms = []Alarm{usageAt(v1alpha1.MetricCPU, 95)}
	if v := Decide(c); v.Intent == nil {
		t.Errorf("the next alarm waits for our own request: %+v", v.Decisions)
	}
	c.Wanted.Flavor = c.Instance.Flavor
	if f := FollowUp(c); len(f.Ended) != 1 || f.Ended[0].Outcome != v1alpha1.OutcomeLost {
		t.Errorf("a person says no in the Rds: %+v", f.Ended)
	}
}

// A change counts from when it started, and not from when it was first decided: a freeze of changes may lie between.
func TestChangeIsDatedToItsStart(t *testing.T) {
	for _, apply := range []v1alpha1.Apply{v1alpha1.ApplyOperator, v1alpha1.ApplyCloud} {
		l := &loop{Case: quiet()}
		l.Spec.Apply = apply
		l.Spec.Flavor.MaxChangesPerDay, l.Spec.Flavor.CooldownSeconds = 1, new(int32(0))
		refuses := true
		l.apply = func(c *Case, i v1alpha1.Intent) Patched {
			switch {
			case refuses && apply == v1alpha1.ApplyOperator:
				return Patched{Result: PatchRefused, Message: "no changes on Sundays"}
			case refuses:
				c.Wanted.Flavor = i.To
				return Patched{Result: PatchAccepted, Cloud: &CloudAnswer{Kind: i.Kind, To: i.To, Reason: ReasonInstanceBusy}}
			}
			c.Wanted.Flavor, c.Instance.Flavor, c.Instance.VCPUs, c.Instance.MemoryGB = i.To, i.To, 16, 64
			return Patched{Result: PatchAccepted, Cloud: &CloudAnswer{Kind: i.Kind, To: i.To, JobID: "j1"}}
		}
		l.Alarms = []Alarm{usageAt(v1alpha1.MetricCPU, 95)}
		l.run(t, 26*time.Hour, 5*time.Minute)
		if p := l.Status.Pending; p == nil || Started(*p, apply) != nil || l.Now.Sub(p.DecisionTime.Time) < 25*time.Hour {
			t.Fatalf("%s: pending %+v", apply, p)
		}
		if _, holds := MayHaveStarted(*l.Status.Pending, apply); holds {
			t.Errorf("%s: a refused change takes the place of others", apply)
		}
		refuses = false
		l.run(t, 30*time.Minute, time.Minute)
		if n := len(l.ourFlavorChanges()); n != 1 || l.Now.Sub(l.Status.Changes[0].StartTime.Time) > 31*time.Minute {
			t.Fatalf("%s: changes %+v", apply, l.Status.Changes)
		}
		if d := l.Status.Decisions[0]; d.Reason != string(ReasonBudgetSpent) {
			t.Errorf("%s: after the only change of the day: %+v", apply, d)
		}
	}
}

// The answer to the request was lost. What the instance does next shows whether it began.
func TestUnclearAnswerIsResolvedByTheInstance(t *testing.T) {
	unclear := func(alter func(*Case)) Case {
		c := notStarted(pendingVolume, true)
		c.Status.Pending.Refusal.Reason = CloudUnreachable
		alter(&c)
		c.Status = FollowUp(c).Status
		c.Status = RecordIntent(c, Decide(c)) // without an alarm
		return c
	}
	if c := unclear(busy("MODIFYING")); c.Status.Pending == nil || c.Status.Pending.JobTime == nil {
		t.Errorf("it is being made: %+v", c.Status.Pending)
	}
	stopped := func(c *Case) { c.Status.Pending.Refusal, c.Status.Pending.DecisionTime = nil, ago(time.Minute) }
	if c := unclear(both(stopped, busy("MODIFYING"))); c.Status.Pending == nil || c.Status.Pending.JobTime == nil {
		t.Errorf("the service was stopped during the request: %+v", c.Status.Pending)
	}
	if c := unclear(busy("BACKING UP")); c.Status.Pending == nil || c.Status.Pending.JobTime != nil {
		t.Errorf("a backup is not the change: %+v", c.Status.Pending)
	}
	if c := unclear(sized(110)); len(c.Status.Changes) != 1 || c.Status.Changes[0].By != v1alpha1.ByAutopilot || !c.Status.Changes[0].StartTime.Time.Equal(noon()) {
		t.Errorf("it has come: %+v", c.Status.Changes)
	}
	if c := unclear(func(c *Case) { c.Status.Pending.Refusal.Time = ago(stallAfter) }); c.Status.Pending != nil {
		t.Errorf("it has not come for 15 minutes: %+v", c.Status.Pending)
	}
}

// Nothing was sent, so the change cannot have begun, and nobody has to wonder.
func TestReadThatFailsBeforeTheRequestIsNoUnclearAnswer(t *testing.T) {
	l := &loop{Case: quiet().with(storageAt(93))}
	l.Spec.Apply, l.NoRds = v1alpha1.ApplyCloud, true
	l.apply = func(_ *Case, i v1alpha1.Intent) Patched {
		return Patched{Cloud: &CloudAnswer{Kind: i.Kind, To: i.To, Reason: CloudUnreachable, Unsent: true, Message: "nothing was requested: read instance id: no answer"}}
	}
	l.round(t)
	if d := l.Status.Decisions[0]; d.Reason != CloudUnreachable || d.Message != "The cloud did not answer before the request (Storage 100 → 110 GB): nothing was requested: read instance id: no answer. Next check in 30 seconds" {
		t.Errorf("%+v", d)
	}
	if p := l.Status.Pending; p == nil || p.Refusal != nil {
		t.Errorf("pending %+v", p)
	}
}
