// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestFollowUpEndsIntents(t *testing.T) {
	const large = "rds.mysql.n1.4xlarge.4"
	for _, tc := range []struct {
		name    string
		alter   func(*Case)
		outcome v1alpha1.Outcome // empty: still pending
		by      v1alpha1.Author
	}{
		{"asked for, not there", pendingVolume(time.Minute), "", ""},
		{"recorded, not patched", func(c *Case) { c.Status.Pending = intentTo(v1alpha1.KindVolume, "100", "110", time.Minute) }, "", ""},
		{"there, but not yet ACTIVE", both(pendingVolume(time.Minute), both(busy("MODIFYING"), sized(110))), "", ""},
		{"there", both(pendingVolume(time.Minute), sized(110)), v1alpha1.OutcomeCompleted, v1alpha1.ByAutopilot},
		{"there, whatever the Rds says by now", both(pendingVolume(time.Minute), both(sized(110), func(c *Case) { c.Wanted.VolumeGB = 100 })), v1alpha1.OutcomeCompleted, v1alpha1.ByAutopilot},
		{"larger than asked for", both(pendingVolume(time.Minute), sized(150)), v1alpha1.OutcomeCompleted, v1alpha1.ByAutopilot},
		{"the flavor is there", both(pendingFlavor(time.Minute), flavored(large)), v1alpha1.OutcomeCompleted, v1alpha1.ByAutopilot},
		{"the flavor was taken back before it came", both(pendingFlavor(time.Minute), func(c *Case) { c.Wanted.Flavor = "rds.mysql.n1.large.4" }), v1alpha1.OutcomeLost, v1alpha1.ByAutopilot},
		{"the flavor was asked for and then put back to what it was", both(pendingFlavor(time.Minute), func(c *Case) { asked(c); c.Wanted.Flavor = c.Instance.Flavor }), v1alpha1.OutcomeLost, v1alpha1.ByAutopilot},
		{"the size was asked for and then put back to what it was", both(pendingVolume(time.Minute), func(c *Case) { asked(c); c.Wanted.VolumeGB = 100 }), v1alpha1.OutcomeLost, v1alpha1.ByAutopilot},
		{"somebody else grew the volume", sized(150), v1alpha1.OutcomeCompleted, v1alpha1.ByOther},
		{"somebody else changed the flavor", flavored(large), v1alpha1.OutcomeCompleted, v1alpha1.ByOther},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quiet()
			tc.alter(&c)
			f := FollowUp(c)
			s, ended := f.Status, f.Ended
			if tc.outcome == "" {
				if len(ended) > 0 || s.Pending == nil {
					t.Fatalf("ended %+v, pending %+v; want it pending", ended, s.Pending)
				}
				return
			}
			if len(ended) == 0 || ended[0].Outcome != tc.outcome || ended[0].By != tc.by {
				t.Fatalf("ended %+v, want %s by %s", ended, tc.outcome, tc.by)
			}
			if s.Pending != nil || len(s.Changes) == 0 {
				t.Errorf("pending %+v, changes %+v; want it moved", s.Pending, s.Changes)
			}
		})
	}
}

func sized(gb int) func(*Case) { return func(c *Case) { c.Instance.VolumeGB = gb } }

func flavored(code string) func(*Case) { return func(c *Case) { c.Instance.Flavor = code } }

func TestFollowUpForgetsTheFormerInstance(t *testing.T) {
	c := quiet()
	pendingVolume(time.Minute)(&c)
	c.Status.Changes = []v1alpha1.Change{completedFlavor(time.Minute)}
	c.Status.Alarms.Rules = []v1alpha1.Rule{{Metric: v1alpha1.MetricStorage, AlarmID: "al1", Dimension: "rds_cluster_id:in01", State: v1alpha1.StateInsufficientData, StateTime: micro(noon())}}
	c.Instance.ID = "another"
	f := FollowUp(c)
	s, ended := f.Status, f.Ended
	if r := s.Alarms.Rules[0]; r != (v1alpha1.Rule{Metric: v1alpha1.MetricStorage, AlarmID: "al1"}) {
		t.Errorf("rule %+v says something about the former instance", r)
	}
	if s.Pending != nil || len(s.Changes) > 0 || len(ended) > 0 {
		t.Fatalf("kept %+v and %+v, ended %+v of the former instance", s.Pending, s.Changes, ended)
	}
	if s.Instance.ID != "another" || !s.Instance.ActiveSince.Time.Equal(noon()) {
		t.Errorf("instance %+v", s.Instance)
	}
}

func TestActiveSinceStartsAgainAfterAnotherStatus(t *testing.T) {
	c := quiet()
	s := FollowUp(c).Status
	if !s.Instance.ActiveSince.Time.Equal(noon().Add(-time.Hour)) {
		t.Errorf("active since %s, want an hour ago", s.Instance.ActiveSince)
	}
	c.Instance.Status = "MODIFYING"
	c.Status = FollowUp(c).Status
	if c.Status.Instance.ActiveSince != nil {
		t.Errorf("active since %s while MODIFYING", c.Status.Instance.ActiveSince)
	}
	c.Instance.Status = StatusActive
	if s = FollowUp(c).Status; !s.Instance.ActiveSince.Time.Equal(noon()) {
		t.Errorf("active since %s, want now", s.Instance.ActiveSince)
	}
}

func TestPrependChangeKeepsTheLastOfEachKind(t *testing.T) {
	var changes []v1alpha1.Change
	for range 20 {
		changes = prependChange(changes, v1alpha1.Change{Kind: v1alpha1.KindFlavor})
		changes = prependChange(changes, v1alpha1.Change{Kind: v1alpha1.KindVolume})
	}
	if len(changes) != volumeChanges+flavorChanges {
		t.Fatalf("%d changes kept, want %d", len(changes), volumeChanges+flavorChanges)
	}
}

func TestRecordIntentAndOutcome(t *testing.T) {
	t.Run("a flavor intent steps aside for storage", func(t *testing.T) {
		c := quiet()
		pendingFlavor(11 * time.Minute)(&c)
		c = c.with(storageAt(93))
		s := RecordIntent(c, Decide(c))
		if s.Pending == nil || s.Pending.Kind != v1alpha1.KindVolume || s.Overtaken == nil || s.Overtaken.Kind != v1alpha1.KindFlavor {
			t.Fatalf("pending %+v, overtaken %+v", s.Pending, s.Overtaken)
		}
	})
	t.Run("an intent that was never patched goes when its alarm went", func(t *testing.T) {
		c := quiet()
		c.Status.Pending = intentTo(v1alpha1.KindVolume, "100", "110", time.Minute)
		s := RecordIntent(c, Decide(c))
		if s.Pending != nil || len(s.Changes) != 0 {
			t.Fatalf("pending %+v, changes %+v", s.Pending, s.Changes)
		}
	})
	t.Run("equal answers are one record", func(t *testing.T) {
		c := quiet().with(storageAt(93))
		c.Spec.Storage.MaxGB = 100
		fresh := 0
		for range 30 {
			v := Decide(c)
			c.Status = RecordIntent(c, v)
			done := RecordOutcome(c, v, Followed{}, Patched{})
			c.Status = done.Status
			fresh += len(done.News)
			c.Now = c.Now.Add(time.Minute)
			c.Alarms[0].Evidence.Time = c.Now
		}
		if fresh != 1 || len(c.Status.Decisions) != 1 || c.Status.Decisions[0].Count != 6 {
			t.Fatalf("%d new, records %+v; want one with a count of 6, written every five minutes", fresh, c.Status.Decisions)
		}
	})
}

func TestAddSignalKeepsTheNewestOfEachMetric(t *testing.T) {
	sig := func(id string, age time.Duration) v1alpha1.Signal {
		return v1alpha1.Signal{Metric: v1alpha1.MetricCPU, MessageID: id, AlarmTime: ago(age)}
	}
	in, first := AddSignal(v1alpha1.Intake{}, sig("a", time.Minute))
	for _, tc := range []struct {
		name string
		sig  v1alpha1.Signal
		want SignalResult
	}{
		{"the same message", sig("a", time.Minute), SignalDuplicate},
		{"an older alarm", sig("b", 2*time.Minute), SignalStale},
		{"the same alarm under a fresh id", sig("c", time.Minute), SignalStale},
		{"a newer alarm", sig("d", 0), SignalAdded},
		{"another metric", v1alpha1.Signal{Metric: v1alpha1.MetricStorage, MessageID: "e", AlarmTime: ago(time.Hour)}, SignalAdded},
	} {
		if _, got := AddSignal(in, tc.sig); got != tc.want || first != SignalAdded {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
	if len(in.Signals) != 1 || in.Signals[0].MessageID != "a" {
		t.Errorf("the intake that was passed was altered: %+v", in)
	}
}

// asked is the round that sees the Rds ask for what is pending.
func asked(c *Case) { c.Status = FollowUp(*c).Status }
