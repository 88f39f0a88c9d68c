// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func TestFollowUpEndsChanges(t *testing.T) {
	const large = "rds.mysql.n1.4xlarge.4"
	for _, tc := range []struct {
		name    string
		alter   func(*autopilot.Case)
		outcome v1alpha1.ChangeState // empty: still pending
		by      v1alpha1.Author
	}{
		{"requested", cases.PendingVolume(time.Minute), "", ""},
		{"requested a minute ago, and not in the Rds", func(c *autopilot.Case) {
			cases.AddPending(&c.Status, cases.PendingTo(v1alpha1.KindVolume, "100", "110", time.Minute))
		}, "", ""},
		{"requested two minutes ago, and never in the Rds", func(c *autopilot.Case) {
			cases.AddPending(&c.Status, cases.PendingTo(v1alpha1.KindVolume, "100", "110", 2*time.Minute))
		}, v1alpha1.StateLost, v1alpha1.ByAutopilot},
		{"volume is grown, but not ACTIVE", cases.Both(cases.PendingVolume(time.Minute), cases.Both(cases.InStatus("MODIFYING"), cases.Sized(110))), v1alpha1.StateCompleted, v1alpha1.ByAutopilot},
		{"flavor is changed, but not ACTIVE", cases.Both(cases.PendingFlavor(time.Minute), cases.Both(cases.InStatus("MODIFYING"), cases.Flavored(large))), "", ""},
		{"volume is grown, and the Rds requests another size", cases.Both(cases.PendingVolume(time.Minute), cases.Both(cases.Sized(110), func(c *autopilot.Case) { c.Wanted.VolumeGB = 100 })), v1alpha1.StateCompleted, v1alpha1.ByAutopilot},
		{"flavor is changed", cases.Both(cases.PendingFlavor(time.Minute), cases.Flavored(large)), v1alpha1.StateCompleted, v1alpha1.ByAutopilot},
		{"Rds requests another flavor before the change", cases.Both(cases.PendingFlavor(time.Minute), func(c *autopilot.Case) { followedUp(c); c.Wanted.Flavor = "rds.mysql.n1.large.4" }), v1alpha1.StateReplaced, v1alpha1.ByAutopilot},
		{"Rds requests the former flavor again", cases.Both(cases.PendingFlavor(time.Minute), func(c *autopilot.Case) { followedUp(c); c.Wanted.Flavor = c.Instance.Flavor }), v1alpha1.StateReplaced, v1alpha1.ByAutopilot},
		{"Rds requests the former flavor again, but the cloud has begun ours", cases.Both(cases.PendingFlavor(time.Minute), func(c *autopilot.Case) {
			followedUp(c)
			c.Wanted.Flavor, c.Instance.Status = c.Instance.Flavor, "MODIFYING"
		}), "", ""},
		{"Rds requests the former size again", cases.Both(cases.PendingVolume(time.Minute), func(c *autopilot.Case) { followedUp(c); c.Wanted.VolumeGB = 100 }), v1alpha1.StateReplaced, v1alpha1.ByAutopilot},
		{"never requested, and the Rds requests another flavor", cases.Both(cases.PendingFlavor(time.Minute), func(c *autopilot.Case) { c.Wanted.Flavor = "rds.mysql.n1.large.4" }), "", ""},
		{"another writer grew the volume", cases.Sized(150), v1alpha1.StateCompleted, v1alpha1.ByOther},
		{"another writer changed the flavor", cases.Flavored(large), v1alpha1.StateCompleted, v1alpha1.ByOther},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cases.Quiet()
			c.IsSpecLive = true
			tc.alter(&c)
			f := FollowUp(c)
			s, ended := f.Status, f.Ended
			if tc.outcome == "" {
				if len(ended) > 0 || pendingOf(s) == nil {
					t.Fatalf("ended %+v, changes %+v; want it pending", ended, s.Changes)
				}
				return
			}
			if len(ended) == 0 || ended[0].State != tc.outcome || ended[0].By != tc.by {
				t.Fatalf("ended %+v, want %s by %s", ended, tc.outcome, tc.by)
			}
			if pendingOf(s) != nil || len(s.Changes) == 0 {
				t.Errorf("changes %+v; want it ended", s.Changes)
			}
		})
	}
}

func TestFollowUpClearsTheStatusOfAFormerInstance(t *testing.T) {
	c := cases.Quiet()
	cases.PendingVolume(time.Minute)(&c)
	c.Status.Changes = append(c.Status.Changes, cases.CompletedFlavor(time.Minute))
	c.Status.Alarms.Rules = []v1alpha1.Rule{{Metric: v1alpha1.MetricStorage, AlarmID: "al1", Dimension: "rds_cluster_id:in01", State: v1alpha1.StateInsufficientData, StateTime: autopilot.Micro(cases.Noon())}}
	c.Status.Warned = []v1alpha1.Warned{{}}
	cases.ReadOnly(&c)
	c.Instance.ID = "another"
	f := FollowUp(c)
	s, ended := f.Status, f.Ended
	if r := s.Alarms.Rules[0]; r != (v1alpha1.Rule{Metric: v1alpha1.MetricStorage, AlarmID: "al1"}) {
		t.Errorf("rule %+v has values of the former instance", r)
	}
	if pendingOf(s) != nil || len(s.Changes) > 1 || len(ended) > 0 || s.Warned != nil || s.ReadOnly != nil { // one is the size that the Rds requests
		t.Fatalf("kept %+v, ended %+v of the former instance", s.Changes, ended)
	}
	if s.Instance.ID != "another" || !s.Instance.ActiveSince.Time.Equal(cases.Noon()) {
		t.Errorf("instance %+v", s.Instance)
	}
}

// A person may grow a read-only database a little while autopilot is off. It stays read-only.
func TestOffKeepsWhatDependsOnTheInstance(t *testing.T) {
	c := cases.Quiet()
	cases.Both(cases.RefusedPatch, cases.ReadOnly)(&c)
	cases.PendingFlavor(time.Minute)(&c)
	s := c.Status.Copy()
	s.Used, s.Deferred, s.Held = &v1alpha1.UsedSpace{GB: "97.0"}, &v1alpha1.Deferred{}, []v1alpha1.Held{{}}
	ClearOn(c, &s)
	if s.ReadOnly == nil || s.Used == nil || s.Baseline == nil || pendingOf(s) == nil || s.Deferred != nil || s.Held != nil {
		t.Errorf("off has left %+v", s)
	}
	if ch := s.Changes[0]; ch.State != v1alpha1.StateWithdrawn || ch.Refusal == nil {
		t.Errorf("the refused change is %+v", ch)
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

func TestOutcomeKeepsStartedChangesAndFoldsEqualDecisions(t *testing.T) {
	t.Run("a stalled flavor is overtaken by storage", func(t *testing.T) {
		c := cases.Quiet()
		cases.PendingFlavor(11 * time.Minute)(&c)
		c = cases.With(c, cases.StorageAt(93))
		if s := Outcome(c, verdictOf(c)).Status; len(s.Changes) != 2 || !change.IsPending(s.Changes[0]) || !change.IsPending(s.Changes[1]) {
			t.Fatalf("changes %+v, want both pending", s.Changes)
		}
	})
	t.Run("equal decisions are one record", func(t *testing.T) {
		c := cases.Quiet(cases.StorageAt(93))
		c.Spec.Storage.MaxGB = 100
		recorded := 0
		for range 30 {
			known, v := walked(c)
			read := known.Status.DeepCopy()
			done := Outcome(known, v)
			if diff := cmp.Diff(read.Decisions, known.Status.Decisions); diff != "" {
				t.Fatalf("the status that was read is modified:\n%s", diff)
			}
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

// The list of instances may lack a flavor for a while.
func TestUnknownFlavorMovesNothing(t *testing.T) {
	for _, state := range []v1alpha1.ChangeState{v1alpha1.StateRequested, v1alpha1.StateStarted} {
		c := cases.Quiet()
		cases.PendingFlavor(20 * time.Minute)(&c)
		cases.WithoutRds(&c)
		ch := &c.Status.Changes[0]
		ch.State, ch.JobID, ch.StartTime = state, "j1", ch.RequestTime
		c.Jobs = map[string]autopilot.Job{"j1": {State: autopilot.JobDone, EndTime: c.Now.Add(-5 * time.Minute)}}
		c.Instance.Flavor, c.Wanted.Flavor = "", ""
		if next := FollowUp(c).Status.Changes[0].State; next != state {
			t.Errorf("%s becomes %s", state, next)
		}
	}
}
