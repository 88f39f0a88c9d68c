// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func TestFollowUpEndsIntents(t *testing.T) {
	const large = "rds.mysql.n1.4xlarge.4"
	for _, tc := range []struct {
		name    string
		alter   func(*autopilot.Case)
		outcome v1alpha1.Outcome // empty: still pending
		by      v1alpha1.Author
	}{
		{"requested", cases.PendingVolume(time.Minute), "", ""},
		{"recorded, but not requested", func(c *autopilot.Case) {
			c.Status.Pending = cases.IntentTo(v1alpha1.KindVolume, "100", "110", time.Minute)
		}, "", ""},
		{"volume is grown, but not ACTIVE", cases.Both(cases.PendingVolume(time.Minute), cases.Both(cases.InStatus("MODIFYING"), cases.Sized(110))), v1alpha1.OutcomeCompleted, v1alpha1.ByAutopilot},
		{"flavor is changed, but not ACTIVE", cases.Both(cases.PendingFlavor(time.Minute), cases.Both(cases.InStatus("MODIFYING"), cases.Flavored(large))), "", ""},
		{"volume is grown", cases.Both(cases.PendingVolume(time.Minute), cases.Sized(110)), v1alpha1.OutcomeCompleted, v1alpha1.ByAutopilot},
		{"volume is grown, and the Rds requests another size", cases.Both(cases.PendingVolume(time.Minute), cases.Both(cases.Sized(110), func(c *autopilot.Case) { c.Wanted.VolumeGB = 100 })), v1alpha1.OutcomeCompleted, v1alpha1.ByAutopilot},
		{"volume is larger than requested", cases.Both(cases.PendingVolume(time.Minute), cases.Sized(150)), v1alpha1.OutcomeCompleted, v1alpha1.ByAutopilot},
		{"flavor is changed", cases.Both(cases.PendingFlavor(time.Minute), cases.Flavored(large)), v1alpha1.OutcomeCompleted, v1alpha1.ByAutopilot},
		{"Rds requests another flavor before the change", cases.Both(cases.PendingFlavor(time.Minute), func(c *autopilot.Case) { c.Wanted.Flavor = "rds.mysql.n1.large.4" }), v1alpha1.OutcomeLost, v1alpha1.ByAutopilot},
		{"Rds requests the former flavor again", cases.Both(cases.PendingFlavor(time.Minute), func(c *autopilot.Case) { followedUp(c); c.Wanted.Flavor = c.Instance.Flavor }), v1alpha1.OutcomeLost, v1alpha1.ByAutopilot},
		{"Rds requests the former size again", cases.Both(cases.PendingVolume(time.Minute), func(c *autopilot.Case) { followedUp(c); c.Wanted.VolumeGB = 100 }), v1alpha1.OutcomeLost, v1alpha1.ByAutopilot},
		{"another writer grew the volume", cases.Sized(150), v1alpha1.OutcomeCompleted, v1alpha1.ByOther},
		{"another writer changed the flavor", cases.Flavored(large), v1alpha1.OutcomeCompleted, v1alpha1.ByOther},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cases.Quiet()
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
				t.Errorf("pending %+v, changes %+v; want it in changes", s.Pending, s.Changes)
			}
		})
	}
}

func TestFollowUpClearsTheStatusOfAFormerInstance(t *testing.T) {
	c := cases.Quiet()
	cases.PendingVolume(time.Minute)(&c)
	c.Status.Changes = []v1alpha1.Change{cases.CompletedFlavor(time.Minute)}
	c.Status.Alarms.Rules = []v1alpha1.Rule{{Metric: v1alpha1.MetricStorage, AlarmID: "al1", Dimension: "rds_cluster_id:in01", State: v1alpha1.StateInsufficientData, StateTime: autopilot.Micro(cases.Noon())}}
	c.Instance.ID = "another"
	f := FollowUp(c)
	s, ended := f.Status, f.Ended
	if r := s.Alarms.Rules[0]; r != (v1alpha1.Rule{Metric: v1alpha1.MetricStorage, AlarmID: "al1"}) {
		t.Errorf("rule %+v has values of the former instance", r)
	}
	if s.Pending != nil || len(s.Changes) > 0 || len(ended) > 0 {
		t.Fatalf("kept %+v and %+v, ended %+v of the former instance", s.Pending, s.Changes, ended)
	}
	if s.Instance.ID != "another" || !s.Instance.ActiveSince.Time.Equal(cases.Noon()) {
		t.Errorf("instance %+v", s.Instance)
	}
}

func TestActiveSinceStartsAgainAfterAnotherStatus(t *testing.T) {
	c := cases.Quiet()
	s := FollowUp(c).Status
	if !s.Instance.ActiveSince.Time.Equal(cases.Noon().Add(-time.Hour)) {
		t.Errorf("active since %s, want an hour ago", s.Instance.ActiveSince)
	}
	c.Instance.Status = "MODIFYING"
	c.Status = FollowUp(c).Status
	if c.Status.Instance.ActiveSince != nil {
		t.Errorf("active since %s while MODIFYING", c.Status.Instance.ActiveSince)
	}
	c.Instance.Status = autopilot.StatusActive
	if s = FollowUp(c).Status; !s.Instance.ActiveSince.Time.Equal(cases.Noon()) {
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

// The next step of storage depends on our last growth.
func TestPrependChangeKeepsOurLastGrowth(t *testing.T) {
	lost, byOther := cases.GrownVolume("180", "190", 0), cases.GrownVolume("180", "200", 0)
	lost.Outcome, byOther.By = v1alpha1.OutcomeLost, v1alpha1.ByOther
	changes := []v1alpha1.Change{cases.GrownVolume("100", "180", time.Hour), cases.GrownVolume("60", "100", 2*time.Hour)}
	ours := func() string { return changes[autopilot.LastGrowth(changes)].To }
	for _, ch := range []v1alpha1.Change{lost, byOther, lost, byOther} {
		changes = prependChange(changes, ch)
		if len(changes) != volumeChanges || changes[0].By != ch.By || ours() != "180" {
			t.Fatalf("%+v", changes)
		}
	}
	if changes = prependChange(changes, cases.GrownVolume("200", "230", 0)); ours() != "230" {
		t.Fatalf("our newest growth does not count: %+v", changes)
	}
}

func TestIntentKeepsStartedChangesAndOutcomeFoldsEqualDecisions(t *testing.T) {
	t.Run("a stalled flavor is overtaken by storage", func(t *testing.T) {
		c := cases.Quiet()
		cases.PendingFlavor(11 * time.Minute)(&c)
		c = cases.With(c, cases.StorageAt(93))
		s := Intent(c, verdictOf(c))
		if s.Pending == nil || s.Pending.Kind != v1alpha1.KindVolume || s.Overtaken == nil || s.Overtaken.Kind != v1alpha1.KindFlavor {
			t.Fatalf("pending %+v, overtaken %+v", s.Pending, s.Overtaken)
		}
	})
	t.Run("an unrequested intent is dropped with its alarm", func(t *testing.T) {
		c := cases.Quiet()
		c.Status.Pending = cases.IntentTo(v1alpha1.KindVolume, "100", "110", time.Minute)
		s := Intent(c, verdictOf(c))
		if s.Pending != nil || len(s.Changes) != 0 {
			t.Fatalf("pending %+v, changes %+v", s.Pending, s.Changes)
		}
	})
	t.Run("equal decisions are one record", func(t *testing.T) {
		c := cases.Quiet(cases.StorageAt(93))
		c.Spec.Storage.MaxGB = 100
		recorded := 0
		for range 30 {
			known, v := decided(c)
			done := Outcome(known, v, Followed{}, Patched{})
			c.Status = done.Status
			recorded += len(done.News)
			c.Now = c.Now.Add(time.Minute)
			c.Alarms[0].Evidence.Time = c.Now
		}
		if recorded != 1 || len(c.Status.Decisions) != 1 || c.Status.Decisions[0].Count != 6 {
			t.Fatalf("%d new, records %+v; want one with a count of 6, written every five minutes", recorded, c.Status.Decisions)
		}
	})
}

// followedUp is the alteration that a check has seen what the Rds requests.
func followedUp(c *autopilot.Case) { c.Status = FollowUp(*c).Status }
