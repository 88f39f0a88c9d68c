// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// lookAlikes are others' names that resemble ours.
func lookAlikes(base string) []string {
	return []string{base + "2", base + "_", base + "_storage2", base + "_disk", base + "_CPU", "x" + base, base[:len(base)-1], "autopilot_shop", "shop_orders"}
}

func TestRemoveLeavesNothingOfOursAndAllOfOthers(t *testing.T) {
	w := newWorld(t)
	base := nameOf(w.want())
	for _, name := range append(lookAlikes(base), base+"_memoryx") {
		urn, err := w.cloud.CreateTopic(t.Context(), name, "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.cloud.Subscribe(t.Context(), urn, "https", ourURL, "rds-autopilot"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.cloud.CreateRule(t.Context(), foreignRule(name, urn)); err != nil {
			t.Fatal(err)
		}
	}
	others := w.shown()
	for name, change := range map[string]func(h *v1alpha1.Alarms){
		"recorded":                   func(*v1alpha1.Alarms) {},
		"nothing recorded":           func(h *v1alpha1.Alarms) { *h = v1alpha1.Alarms{} },
		"only the topic recorded":    func(h *v1alpha1.Alarms) { *h = v1alpha1.Alarms{TopicURN: h.TopicURN} },
		"only the rules recorded":    func(h *v1alpha1.Alarms) { *h = v1alpha1.Alarms{Rules: h.Rules} },
		"a foreign rule recorded":    func(h *v1alpha1.Alarms) { h.Rules[0].AlarmID = w.sim.Rules()[0].ID },
		"a lost rule recorded":       func(h *v1alpha1.Alarms) { h.Rules[0].AlarmID = "al1700000000000AbCdEfGhIj" },
		"a foreign topic recorded":   func(h *v1alpha1.Alarms) { h.TopicURN = w.sim.Topics()[0].URN },
		"foreign subscription there": func(h *v1alpha1.Alarms) { h.SubscriptionURN = w.sim.Subscriptions()[0].URN },
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.recorded = v1alpha1.Alarms{}
			w.ensure(w.want())
			have := w.recorded
			change(&have)
			for range 2 { // the second time all is gone
				if err := w.removeWith(w.alarms, w.want(), have); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(others, w.shown()); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}

func TestRemoveCompletesAfterCrashAtAnyWrite(t *testing.T) {
	w := newWorld(t)
	for _, applied := range []bool{false, true} {
		for n := 1; ; n++ {
			w.reset()
			w.ensure(w.want())
			cloud := &crashing{Cloud: w.cloud, n: n, applied: applied}
			err := w.removeWith(w.process(cloud), w.want(), w.recorded)
			if err == nil {
				if n != 5 {
					t.Errorf("removing has %d writes, want 4", n-1)
				}
				break
			}
			if !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			if err := w.removeWith(w.alarms, w.want(), w.recorded); err != nil {
				t.Fatal(err)
			}
			if left := w.shown(); len(left) > 0 {
				t.Errorf("crash at write %d, applied %v: left %v", n, applied, left)
			}
		}
	}
}
