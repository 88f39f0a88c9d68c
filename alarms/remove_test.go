// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// similarNames returns names of others that resemble ours.
func similarNames(base string) []string {
	return []string{
		base + "2", base + "_", base + "_storage2", base + "_disk", base + "_CPU", "x" + base, base[:len(base)-1],
		"autopilot_shop", "shop_orders",
	}
}

func TestRemoveDeletesAllObjectsOfTheDatabaseAndNoOther(t *testing.T) {
	w := newWorld(t)
	base := nameOf(w.desired())
	for _, name := range similarNames(base) {
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
	others := w.objects()
	for name, change := range map[string]func(a *v1alpha1.Alarms){
		"recorded":                        func(*v1alpha1.Alarms) {},
		"nothing recorded":                func(a *v1alpha1.Alarms) { *a = v1alpha1.Alarms{} },
		"only the topic recorded":         func(a *v1alpha1.Alarms) { *a = v1alpha1.Alarms{TopicURN: a.TopicURN} },
		"only the rules recorded":         func(a *v1alpha1.Alarms) { *a = v1alpha1.Alarms{Rules: a.Rules} },
		"a foreign rule recorded":         func(a *v1alpha1.Alarms) { a.Rules[0].AlarmID = w.sim.Rules()[0].ID },
		"a deleted rule recorded":         func(a *v1alpha1.Alarms) { a.Rules[0].AlarmID = "al1700000000000AbCdEfGhIj" },
		"a foreign topic recorded":        func(a *v1alpha1.Alarms) { a.TopicURN = w.sim.Topics()[0].URN },
		"a foreign subscription recorded": func(a *v1alpha1.Alarms) { a.SubscriptionURN = w.sim.Subscriptions()[0].URN },
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.recorded = v1alpha1.Alarms{}
			w.ensure(w.desired())
			recorded := w.recorded
			change(&recorded)
			for range 2 { // the second run finds nothing
				if err := w.removeWith(w.alarms, w.desired(), recorded); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(others, w.objects()); diff != "" {
					t.Fatal(diff)
				}
			}
		})
	}
}
