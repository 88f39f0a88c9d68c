// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// fleetOfAllStates returns one database of every state.
func fleetOfAllStates() *cache {
	c := &cache{}
	c.add("a", "armed", withUsage("40", now().Add(-time.Hour)))
	c.add("a", "waiting", func(a *v1alpha1.RdsAutopilot) {
		a.Status.Deferred = &v1alpha1.Deferred{FirstTime: metav1.NewTime(now())}
	})
	c.add("a", "changing", withUsage("91", now().Add(-time.Minute)), func(a *v1alpha1.RdsAutopilot) {
		a.Status.Pending = &v1alpha1.Intent{Kind: v1alpha1.KindVolume, From: "100", To: "110", AskedTime: new(metav1.NewMicroTime(now()))}
	})
	c.add("b", "alarm", inAlarm, withUsage("92", now().Add(-time.Minute)))
	c.add("b", "limited", func(a *v1alpha1.RdsAutopilot) {
		record.SetCondition(&a.Status, v1alpha1.ConditionLimited, true, "CapReached", "The volume has maxGB", 1, now())
	})
	c.add("b", "refused", func(a *v1alpha1.RdsAutopilot) {
		a.Status.Pending = &v1alpha1.Intent{Kind: v1alpha1.KindVolume, From: "100", To: "110", Refusal: &v1alpha1.Refusal{Count: 2, Message: "denied by policy"}}
	})
	c.add("b", "stalled", func(a *v1alpha1.RdsAutopilot) {
		long := now().Add(-time.Hour)
		a.Status.Instance.ActiveSince = new(metav1.NewTime(long))
		a.Status.Unfulfilled = []v1alpha1.Unfulfilled{{Kind: v1alpha1.KindVolume, To: "200", SinceTime: metav1.NewTime(long)}}
	})
	c.add("b", "contested", func(a *v1alpha1.RdsAutopilot) {
		record.SetCondition(&a.Status, v1alpha1.ConditionContested, true, "Contested", "Somebody took it back", 1, now())
	})
	c.add("b", "unread", func(a *v1alpha1.RdsAutopilot) { record.SetReady(&a.Status, true, 1, now()) })
	c.add("c", "disarmed", notArmed)
	c.add("c", "new", func(a *v1alpha1.RdsAutopilot) { a.Status = v1alpha1.Status{Instance: &v1alpha1.Instance{}} })
	c.add("c", "full", func(a *v1alpha1.RdsAutopilot) {
		a.Status.ReadOnly = &v1alpha1.ReadOnly{SinceTime: metav1.NewTime(now())}
	})
	c.add("c", "off", func(a *v1alpha1.RdsAutopilot) { a.Spec.Mode = v1alpha1.ModeOff })
	c.targets = append(c.targets, &autopilot.Target{Namespace: "c", Name: "plain"})
	return c
}

func TestOverviewSortsTheWorstStateFirst(t *testing.T) {
	t.Parallel()
	root := get(t, pageOf(t, fleetOfAllStates()), "/", http.StatusOK)
	want := []string{
		"c/full", "c/disarmed", "c/new", "b/contested", "b/refused", "b/stalled", "b/unread", "b/limited", "b/alarm", "a/changing", "a/waiting", "a/armed", "c/off", "c/plain",
	}
	if diff := cmp.Diff(want, names(root)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	got := text(root)
	for _, want := range []string{
		"11 of 14 armed", "2 Not armed", "1 Read-only", "SubscriptionPending: The topic's subscription is not confirmed yet", "denied by policy",
		"92 of 100 GB used (92 %), at most 500", "Storage 100 → 110 GB", "within 30s: change pending", "within 5m: alarm in force", "14 of 14 databases", "pod-2 decides",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the overview lacks %q", want)
		}
	}
}

func TestOverviewFiltersSortsAndPages(t *testing.T) {
	t.Parallel()
	h := pageOf(t, fleetOfAllStates())
	for url, want := range map[string][]string{
		"/?namespace=a&sort=database":              {"a/armed", "a/changing", "a/waiting"},
		"/?namespace=a&sort=database&order=desc":   {"a/waiting", "a/changing", "a/armed"},
		"/?state=not-armed":                        {"c/disarmed", "c/new"},
		"/?q=POLICY":                               {"b/refused"},
		"/?q=%E2%86%92&sort=database":              {"a/changing", "b/refused"},
		"/?sort=storage&order=desc&namespace=b":    {"b/alarm", "b/unread", "b/stalled", "b/refused", "b/limited", "b/contested"},
		"/?namespace=nope":                         nil,
		"/?namespace=a&state=armed&q=large&page=9": {"a/armed"},
	} {
		if diff := cmp.Diff(want, names(get(t, h, url, http.StatusOK))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", url, diff)
		}
	}
	root := get(t, h, "/?namespace=a&sort=flavor", http.StatusOK)
	for _, th := range elements(root, "th") {
		sorted, label := attribute(th, "aria-sort"), text(th)
		if attribute(th, "scope") == "" || (sorted == "ascending") != (label == "Flavor") {
			t.Errorf("column %q: scope %q, aria-sort %q", label, attribute(th, "scope"), sorted)
		}
		if label == "Flavor" {
			if link := attribute(elements(th, "a")[0], "href"); link != "./?namespace=a&order=desc&sort=flavor" {
				t.Errorf("the sorted column leads to %s", link)
			}
		}
	}
}

// largeFleet returns n databases, each with a long sentence in its row.
func largeFleet(n int) *cache {
	c := &cache{}
	for i := range n {
		c.add(fmt.Sprintf("team-%04d", i%500), fmt.Sprintf("database-with-a-long-name-%04d", i), withUsage("91.5", now()), inAlarm, func(a *v1alpha1.RdsAutopilot) {
			a.Status.Decisions = []v1alpha1.DecisionRecord{{Time: metav1.NewTime(now()), Metric: v1alpha1.MetricStorage, Action: "None", Reason: "CapReached", Message: strings.Repeat("a long sentence ", 60)}}
			a.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "90", To: "100", Outcome: v1alpha1.OutcomeCompleted, CompletionTime: metav1.NewMicroTime(now().Add(-time.Hour))}}
		})
	}
	return c
}

func TestTwoThousandDatabasesFitOnPages(t *testing.T) {
	t.Parallel()
	h := pageOf(t, largeFleet(2000))
	seen := map[string]bool{}
	url, pages := "/?sort=database", 0
	for ; url != ""; pages++ {
		root := get(t, h, url, http.StatusOK) // at most 200 kB
		for _, name := range names(root) {
			seen[name] = true
		}
		url = ""
		for _, a := range elements(root, "a") {
			if attribute(a, "rel") == "next" {
				url = strings.TrimPrefix(attribute(a, "href"), ".")
			}
		}
	}
	if len(seen) != 2000 || pages != 20 {
		t.Errorf("%d databases on %d pages", len(seen), pages)
	}
}

func BenchmarkOverview(b *testing.B) {
	for _, n := range []int{2000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h := pageOf(b, largeFleet(n))
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				b.ReportMetric(float64(w.Body.Len()), "bytes/page")
			}
		})
	}
}
