// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
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

// arm makes what another database, or another cluster, has.
func (w *world) arm(change func(*v1alpha1.DesiredAlarms)) (v1alpha1.DesiredAlarms, v1alpha1.Alarms) {
	w.t.Helper()
	want := w.want()
	change(&want)
	have, _, err := w.ensureWith(w.t.Context(), w.alarms, want, v1alpha1.Alarms{}, nil, func(v1alpha1.Alarms) error { return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return want, have
}

// removeOrphans lists and removes the orphans of the databases that exist.
func (w *world) removeOrphans(existing ...*v1alpha1.RdsAutopilot) (removed []string, foreign int) {
	w.t.Helper()
	w.listed = w.listing()
	removed, foreign, err := w.alarms.Orphans(w.t.Context(), w.clock(), existing, listOf(existing...))
	if err != nil {
		w.t.Fatal(err)
	}
	return removed, foreign
}

// listOf returns a function that lists these RdsAutopilots.
func listOf(all ...*v1alpha1.RdsAutopilot) func(context.Context) ([]*v1alpha1.RdsAutopilot, error) {
	return func(context.Context) ([]*v1alpha1.RdsAutopilot, error) { return all, nil }
}

func TestTwoClustersWithSameNamesDoNotTouchEachOther(t *testing.T) {
	w := newWorld(t)
	ours := w.alarms
	w.cluster = otherCluster
	w.alarms = w.process(w.cloud)
	theirs, theirRecord := w.arm(func(want *v1alpha1.DesiredAlarms) { want.Autopilot.UID = otherUID })
	theirProcess := w.alarms
	w.alarms = ours
	others := w.shown()
	w.ensure(w.want())
	if removed, foreign := w.removeOrphans(w.want().Autopilot); len(removed) != 0 || foreign != 4 {
		t.Errorf("both live: %q, %d foreign", removed, foreign)
	}
	w.checkQuiet(w.want())
	if removed, foreign := w.removeOrphans(); !slices.Equal(removed, []string{nameOf(w.want())}) || foreign != 4 {
		t.Errorf("ours is no more: %q, %d foreign", removed, foreign)
	}
	if diff := cmp.Diff(others, w.shown()); diff != "" {
		t.Error(diff)
	}
	if removed, foreign := w.removeOrphans(); len(removed) != 0 || foreign != 4 {
		t.Errorf("again: %q, %d foreign", removed, foreign)
	}
	w.ensure(w.want()) // what is recorded is gone
	if err := w.removeWith(w.alarms, w.want(), w.recorded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(others, w.shown()); diff != "" {
		t.Error(diff)
	}
	listed := w.listing()
	w.sim.ResetRequests()
	if _, repaired, err := w.ensureWith(t.Context(), theirProcess, theirs, theirRecord, listed, func(v1alpha1.Alarms) error { return nil }); err != nil || len(repaired) > 0 || len(w.sim.Requests()) > 0 {
		t.Errorf("theirs is not in order: %v, %q, %v", err, repaired, w.sim.Requests())
	}
}

func TestOrphansAreRemovedOnlyIfEveryNamespaceIsWatchedAndTheAPIServerHasNoOwner(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	all := w.shown()
	w.listed = w.listing()
	o := w.options(w.cloud)
	o.EveryNamespace = false
	for name, remove := range map[string]func() ([]string, int, error){
		"some namespaces are watched": func() ([]string, int, error) {
			return alarms.New(o).Orphans(t.Context(), w.clock(), nil, listOf())
		},
		"the cache lacks the owner": func() ([]string, int, error) {
			return w.alarms.Orphans(t.Context(), w.clock(), nil, listOf(w.want().Autopilot))
		},
	} {
		removed, _, err := remove()
		if diff := cmp.Diff(all, w.shown()); err != nil || len(removed) > 0 || diff != "" {
			t.Errorf("%s: removed %q, %v, %s", name, removed, err, diff)
		}
	}
	if removed, _ := w.removeOrphans(); len(removed) != 1 || len(w.shown()) > 0 {
		t.Errorf("removed %q, left %q", removed, w.shown())
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
			if removed, foreign := w.removeOrphans(); len(removed) != 0 || foreign != count {
				t.Errorf("%d foreign, want %d; removed: %q", foreign, count, removed)
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
	_, have := w.arm(func(want *v1alpha1.DesiredAlarms) {
		want.Autopilot.Namespace, want.Autopilot.Name, want.Autopilot.UID = long, strings.Repeat("y", 253), otherUID
	})
	if err := w.cloud.DeleteTopic(t.Context(), have.TopicURN); err != nil { // only rules are left
		t.Fatal(err)
	}
	w.arm(func(want *v1alpha1.DesiredAlarms) {
		want.Autopilot.Name, want.Autopilot.UID, want.Rules = "bills", otherUID, nil
	})
	removed, foreign := w.removeOrphans(w.want().Autopilot)
	if diff := cmp.Diff([]string{v1alpha1.CloudName("shop", "bills", otherUID), v1alpha1.CloudName(long, strings.Repeat("y", 253), otherUID)}, removed); diff != "" || foreign != 0 {
		t.Errorf("%d foreign, %s", foreign, diff)
	}
	if diff := cmp.Diff(living, w.shown()); diff != "" {
		t.Error(diff)
	}
	w.cluster = ""
	w.alarms = w.process(w.cloud)
	if removed, _ := w.removeOrphans(); len(removed) > 0 {
		t.Errorf("of no cluster: %q", removed)
	}
}

// Between the listing and the removal somebody may have taken over what was left.
func TestOrphansSkipsWhatHasChangedSinceTheSnapshot(t *testing.T) {
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
			w.listed = w.listing()
			removed, _, err := w.alarms.Orphans(t.Context(), w.clock(), nil, func(context.Context) ([]*v1alpha1.RdsAutopilot, error) {
				return nil, tt.do(w)
			})
			if err != nil || len(removed) != 1 {
				t.Fatalf("removed %q, %v", removed, err)
			}
			if _, _, err := w.alarms.Orphans(t.Context(), w.clock(), nil, listOf()); err != nil {
				t.Errorf("with the same listing again: %v", err)
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
