// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	otherUID     = "2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d"
	otherCluster = "9a7b330a-a736-35e5-af0a-9eaed6e7e3a6"
)

func nobody(string) bool { return false }

// arm makes what another database, or another cluster, has.
func (w *world) arm(change func(*alarms.Desired)) (alarms.Desired, v1alpha1.Alarms) {
	w.t.Helper()
	want := w.want()
	change(&want)
	have, _, err := w.alarms.Ensure(w.t.Context(), want, v1alpha1.Alarms{}, nil, func(v1alpha1.Alarms) error { return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return want, have
}

// removeOrphans sweeps, and returns how many there were.
func (w *world) removeOrphans(alive func(string) bool) (ours []alarms.Orphan, foreign int) {
	w.t.Helper()
	ours, foreign = w.alarms.Orphans(w.listing(), clusterID, alive)
	for _, o := range ours {
		if err := w.alarms.RemoveOrphan(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
	return ours, foreign
}

func TestTwoClustersWithSameNamesDoNotTouchEachOther(t *testing.T) {
	w := newWorld(t)
	theirs, theirRecord := w.arm(func(want *alarms.Desired) {
		want.Name, want.ClusterID = v1alpha1.CloudName("shop", "orders", otherUID), otherCluster
	})
	others := w.shown()
	w.ensure(w.want())
	alive := func(name string) bool { return name == w.want().Name }
	if ours, foreign := w.removeOrphans(alive); len(ours) != 0 || foreign != 4 {
		t.Errorf("both live: %+v, %d foreign", ours, foreign)
	}
	w.checkQuiet(w.want())
	ours, foreign := w.removeOrphans(nobody)
	if len(ours) != 1 || ours[0].Name != w.want().Name || ours[0].TopicURN != w.recorded.TopicURN || len(ours[0].RuleIDs) != 3 || foreign != 4 {
		t.Errorf("ours is no more: %+v, %d foreign", ours, foreign)
	}
	if diff := cmp.Diff(others, w.shown()); diff != "" {
		t.Error(diff)
	}
	if ours, foreign := w.removeOrphans(nobody); len(ours) != 0 || foreign != 4 {
		t.Errorf("again: %+v, %d foreign", ours, foreign)
	}
	w.ensure(w.want()) // what is recorded is gone
	if err := w.alarms.Remove(t.Context(), w.want().Name, w.recorded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(others, w.shown()); diff != "" {
		t.Error(diff)
	}
	listed := w.listing()
	w.sim.ResetRequests()
	if _, repaired, err := w.alarms.Ensure(t.Context(), theirs, theirRecord, listed, func(v1alpha1.Alarms) error { return nil }); err != nil || len(repaired) > 0 || len(w.sim.Requests()) > 0 {
		t.Errorf("theirs is not in order: %v, %q, %v", err, repaired, w.sim.Requests())
	}
}

// What others have made, and named like ours, stays.
func TestLookAlikesAreNoOrphans(t *testing.T) {
	ours := alarms.Mark("ns", "db", clusterID)
	tests := map[string]struct {
		names []string
		mark  string
		count bool // as foreign
	}{
		"other names, with our mark": {
			append(lookAlikes("autopilot_ns_db_12345678"), "autopilot_x", "autopilot_ns_db_1234567", "autopilot_ns_db_12345678_storage_x", "autopilot_ns_db_123456789",
				"autopilot_ns_db_1234567G", "autopilot_ns_db_ABCDEF01", "autopilot__db_12345678", "autopilot_ns__12345678", "autopilot_ns_12345678",
				"autopilot_ns_db_x_12345678", "Autopilot_ns_db_12345678", "autopilot_ns_db_12345678_disk", "autopilot_ns_db_12345678_", "autopilot_ns_db_12345678_storage_cpu",
				"autopilot_ns_"+strings.Repeat("d", 100)+"_12345678"),
			ours, false,
		},
		"our name, without a mark":              {[]string{"autopilot_ns_db_12345678"}, "", true},
		"our name, another's text":              {[]string{"autopilot_ns_db_12345678"}, "my " + ours, true},
		"our name, the mark of another cluster": {[]string{"autopilot_ns_db_12345678"}, alarms.Mark("ns", "db", otherCluster), true},
		"our name, the mark of another object":  {[]string{"autopilot_ns_db2_12345678"}, ours, true},
	}
	w := newWorld(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.reset()
			count := 0
			for _, base := range tt.names {
				urn, err := w.cloud.CreateTopic(t.Context(), base, tt.mark)
				if err != nil {
					t.Fatal(err)
				}
				rules := []string{base}
				if tt.count {
					count += 3
					rules = []string{base + "_storage", base + "_memory", base + "_disk"}
				}
				for _, name := range rules {
					rule := foreignRule(name, urn)
					rule.Description = tt.mark
					if _, err := w.cloud.CreateRule(t.Context(), rule); err != nil {
						t.Fatal(err)
					}
				}
			}
			before := w.shown()
			if ours, foreign := w.removeOrphans(nobody); len(ours) != 0 || foreign != count {
				t.Errorf("%d foreign, want %d; ours: %+v", foreign, count, ours)
			}
			if diff := cmp.Diff(before, w.shown()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOrphansFindsTopicsAndRulesOfDeletedDatabases(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	living := w.shown()
	long := strings.Repeat("x", 63)
	_, have := w.arm(func(want *alarms.Desired) {
		want.Namespace, want.ObjectName = long, strings.Repeat("y", 253)
		want.Name = v1alpha1.CloudName(want.Namespace, want.ObjectName, otherUID)
	})
	if err := w.cloud.DeleteTopic(t.Context(), have.TopicURN); err != nil { // only rules are left
		t.Fatal(err)
	}
	w.arm(func(want *alarms.Desired) {
		want.ObjectName, want.Rules = "bills", nil
		want.Name = v1alpha1.CloudName("shop", "bills", otherUID)
	})
	ours, foreign := w.removeOrphans(func(name string) bool { return name == w.want().Name })
	var found []string
	for _, o := range ours {
		found = append(found, o.Name)
		if (o.TopicURN == "") != (len(o.RuleIDs) == 3) {
			t.Errorf("%+v", o)
		}
	}
	if diff := cmp.Diff([]string{v1alpha1.CloudName("shop", "bills", otherUID), v1alpha1.CloudName(long, strings.Repeat("y", 253), otherUID)}, found); diff != "" || foreign != 0 {
		t.Errorf("%d foreign, %s", foreign, diff)
	}
	if diff := cmp.Diff(living, w.shown()); diff != "" {
		t.Error(diff)
	}
	if ours, _ := w.alarms.Orphans(w.listing(), "", nobody); len(ours) > 0 {
		t.Errorf("of no cluster: %+v", ours)
	}
}

// Between the listing and the removal somebody may have taken over what was left.
func TestRemoveOrphanSkipsWhatHasChangedSinceTheSnapshot(t *testing.T) {
	tests := map[string]struct {
		do   func(*world) error
		left []string // prefixes of what is shown
	}{
		"nobody": {func(*world) error { return nil }, nil},
		"all gone": {func(w *world) error {
			return errors.Join(w.cloud.DeleteTopic(t.Context(), w.recorded.TopicURN), w.cloud.DeleteRule(t.Context(), ruleID(w, v1alpha1.MetricCPU)))
		}, nil},
		"the topic": {func(w *world) error { return w.cloud.UpdateTopic(t.Context(), w.recorded.TopicURN, "mine") }, []string{"subscription", "topic"}},
		"a rule":    {func(w *world) error { return modified(func(r *otc.Rule) { r.Description = "mine" })(w, t.Context()) }, []string{"rule"}},
		"a rule by name": {func(w *world) error {
			return modified(func(r *otc.Rule) { r.Name = v1alpha1.CloudName("shop", "orders", otherUID) + "_cpu" })(w, t.Context())
		}, []string{"rule"}},
	}
	w := newWorld(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.reset()
			w.ensure(w.want())
			ours, _ := w.alarms.Orphans(w.listing(), clusterID, nobody)
			if len(ours) != 1 {
				t.Fatal(ours)
			}
			if err := tt.do(w); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time it is gone
				if err := w.alarms.RemoveOrphan(t.Context(), ours[0]); err != nil {
					t.Fatal(err)
				}
			}
			var left []string
			for _, line := range w.shown() {
				kind, _, _ := strings.Cut(line, " ")
				left = append(left, kind)
			}
			if !slices.Equal(tt.left, left) {
				t.Errorf("left %q, want %q", left, tt.left)
			}
		})
	}
}

// An orphan names what was listed; it is no order to remove something else.
func TestRemoveOrphanSkipsOtherNames(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	living := w.shown()
	for _, name := range []string{"", "x", v1alpha1.CloudName("shop", "orders", otherUID)} {
		o := alarms.Orphan{Name: name, ClusterID: clusterID, TopicURN: w.recorded.TopicURN, RuleIDs: []string{ruleID(w, v1alpha1.MetricCPU)}}
		if err := w.alarms.RemoveOrphan(t.Context(), o); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(living, w.shown()); diff != "" {
		t.Error(diff)
	}
}
