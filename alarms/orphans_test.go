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

// ensureOther creates the alarms of another database. They are not recorded.
func (w *world) ensureOther(change func(*v1alpha1.DesiredAlarms)) v1alpha1.Alarms {
	w.t.Helper()
	want := w.desired()
	change(&want)
	observed, _, err := w.ensureWith(w.t.Context(), w.alarms, want, v1alpha1.Alarms{}, nil, noRecord)
	if err != nil {
		w.t.Fatal(err)
	}
	return observed
}

func noRecord(v1alpha1.Alarms) error { return nil }

// kinds returns the kinds of all objects in the cloud.
func (w *world) kinds() (kinds []string) {
	for _, line := range w.objects() {
		kind, _, _ := strings.Cut(line, " ")
		kinds = append(kinds, kind)
	}
	return kinds
}

// removeOrphans lists and removes the orphans of the databases that exist.
func (w *world) removeOrphans(existing ...*v1alpha1.RdsAutopilot) (removed []string, foreign int) {
	w.t.Helper()
	w.listed = w.snapshot()
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

func TestOrphansAreRemovedOnlyIfEveryNamespaceIsWatchedAndTheAPIServerHasNoOwner(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	all := w.objects()
	w.listed = w.snapshot()
	o := w.options(w.cloud)
	o.EveryNamespace = false
	for name, remove := range map[string]func() ([]string, int, error){
		"some namespaces are watched": func() ([]string, int, error) {
			return alarms.New(o).Orphans(t.Context(), w.clock(), nil, listOf())
		},
		"the cache lacks the owner": func() ([]string, int, error) {
			return w.alarms.Orphans(t.Context(), w.clock(), nil, listOf(w.desired().Autopilot))
		},
	} {
		removed, _, err := remove()
		if diff := cmp.Diff(all, w.objects()); err != nil || len(removed) > 0 || diff != "" {
			t.Errorf("%s: removed %q, %v, %s", name, removed, err, diff)
		}
	}
	if removed, _ := w.removeOrphans(); len(removed) != 1 || len(w.objects()) > 0 {
		t.Errorf("removed %q, left %q", removed, w.objects())
	}
}

// Others may give their topics and rules names that resemble ours.
func TestObjectsWithSimilarNamesAreNoOrphans(t *testing.T) {
	ours, theirs := alarms.Mark("ns", "db", clusterID), alarms.Mark("ns", "db", otherCluster)
	tests := map[string]struct {
		names   []string
		mark    string
		foreign bool
	}{
		"other names, with our mark": {
			append(similarNames("autopilot_ns_db_12345678"), "autopilot_x", "autopilot_ns_db_1234567G", "autopilot__db_12345678",
				"autopilot_ns_12345678", "autopilot_ns_db_x_12345678", "Autopilot_ns_db_12345678",
				"autopilot_ns_db_12345678_storage_cpu"),
			ours, false,
		},
		"our name, without a mark":              {[]string{"autopilot_ns_db_12345678"}, "", true},
		"our name, a text with our mark":        {[]string{"autopilot_ns_db_12345678"}, "my " + ours, true},
		"our name, the mark of another cluster": {[]string{"autopilot_ns_db_12345678"}, theirs, true},
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
				if tt.foreign {
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
			before := w.objects()
			if removed, foreign := w.removeOrphans(); len(removed) != 0 || foreign != count {
				t.Errorf("%d foreign, want %d; removed: %q", foreign, count, removed)
			}
			if diff := cmp.Diff(before, w.objects()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOrphansFindsTopicsAndRulesOfDeletedDatabases(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	existing := w.objects()
	long := strings.Repeat("x", 63)
	observed := w.ensureOther(func(want *v1alpha1.DesiredAlarms) {
		want.Autopilot.Namespace, want.Autopilot.Name, want.Autopilot.UID = long, strings.Repeat("y", 253), otherUID
	})
	if err := w.cloud.DeleteTopic(t.Context(), observed.TopicURN); err != nil { // only rules are left
		t.Fatal(err)
	}
	w.ensureOther(func(want *v1alpha1.DesiredAlarms) {
		want.Autopilot.Name, want.Autopilot.UID, want.Rules = "bills", otherUID, nil
	})
	removed, foreign := w.removeOrphans(w.desired().Autopilot)
	want := []string{
		v1alpha1.CloudName("shop", "bills", otherUID), v1alpha1.CloudName(long, strings.Repeat("y", 253), otherUID),
	}
	if diff := cmp.Diff(want, removed); diff != "" || foreign != 0 {
		t.Errorf("%d foreign, %s", foreign, diff)
	}
	if diff := cmp.Diff(existing, w.objects()); diff != "" {
		t.Error(diff)
	}
}

// Somebody may adopt an orphan between the snapshot and its removal.
func TestOrphansSkipsWhatHasChangedSinceTheSnapshot(t *testing.T) {
	rename := func(r *otc.Rule) { r.Name = v1alpha1.CloudName("shop", "orders", otherUID) + "_cpu" }
	tests := map[string]struct {
		do   func(*world, context.Context) error
		left []string
	}{
		"topic and rule deleted": {func(w *world, ctx context.Context) error {
			return errors.Join(w.cloud.DeleteTopic(ctx, w.recorded.TopicURN), deleteRule(v1alpha1.MetricCPU)(w, ctx))
		}, nil},
		"display name of the topic": {func(w *world, ctx context.Context) error {
			return w.cloud.UpdateTopic(ctx, w.recorded.TopicURN, "mine")
		}, []string{"subscription", "topic"}},
		"description of a rule": {
			modifyRule(v1alpha1.MetricCPU, func(r *otc.Rule) { r.Description = "mine" }), []string{"rule"},
		},
		"name of a rule": {modifyRule(v1alpha1.MetricCPU, rename), []string{"rule"}},
	}
	w := newWorld(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.reset()
			w.ensure(w.desired())
			w.listed = w.snapshot()
			live := func(ctx context.Context) ([]*v1alpha1.RdsAutopilot, error) { return nil, tt.do(w, ctx) }
			removed, _, err := w.alarms.Orphans(t.Context(), w.clock(), nil, live)
			if err != nil || len(removed) != 1 {
				t.Fatalf("removed %q, %v", removed, err)
			}
			if _, _, err := w.alarms.Orphans(t.Context(), w.clock(), nil, listOf()); err != nil {
				t.Errorf("with the same snapshot again: %v", err)
			}
			if left := w.kinds(); !slices.Equal(tt.left, left) {
				t.Errorf("left %q, want %q", left, tt.left)
			}
		})
	}
}
