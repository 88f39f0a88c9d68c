// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// strangers are things with names that look like ours, made by somebody with the same tenant.
func (f *fleet) strangers(a *v1alpha1.RdsAutopilot, like otcsim.Rule) (topics, rules []string) {
	f.t.Helper()
	cloud, ctx := f.person(), f.t.Context()
	base := name(a)
	for _, n := range []string{
		base + "0", "x" + base, base + "_storage",
		strings.Replace(base, "autopilot_", "autopilot-", 1),
		alarms.Name(a.Namespace, a.Name, "00000000-1111"), // exactly our form, but nobody's
	} {
		urn, err := cloud.CreateTopic(ctx, n, "somebody's")
		f.must(err)
		topics = append(topics, urn)
	}
	original, err := cloud.Rule(ctx, like.ID)
	f.must(err)
	for _, n := range []string{
		base, base + "_disk", base + "_storage2", base + "_storage_copy", base + "_copy_cpu", "my_" + base + "_cpu",
		alarms.RuleName(alarms.Name(a.Namespace, a.Name, "00000000-1111"), v1alpha1.MetricCPU), // as above
		alarms.RuleName(alarms.Name("other", "db", "deadbeef"), v1alpha1.MetricMemory),         // bears a mark, but another object's
	} {
		copied := original
		copied.Name = n
		if n != base+"_copy_cpu" && !strings.Contains(n, "_other_") { // these bear our mark
			copied.Description = "somebody's"
		}
		id, err := cloud.CreateRule(ctx, copied)
		f.must(err)
		rules = append(rules, id)
	}
	return topics, rules
}

// survive fails unless all of that is there.
func (f *fleet) survive(t *testing.T, when string, topics, rules []string) {
	t.Helper()
	for _, urn := range topics {
		if !slices.ContainsFunc(f.sim.Topics(), func(x otcsim.Topic) bool { return x.URN == urn }) {
			t.Errorf("%s a stranger's topic is gone: %s", when, urn)
		}
	}
	for _, id := range rules {
		if !slices.ContainsFunc(f.sim.Rules(), func(x otcsim.Rule) bool { return x.ID == id }) {
			t.Errorf("%s a stranger's rule is gone: %s", when, id)
		}
	}
}

func TestTwoClustersInOneTenant(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		a := newFleet(t, otcsim.Settings{})
		b := a.another()
		a.runCloud()
		a.database("default", "db", plain())
		b.database("default", "db", plain())
		inA, inB := a.start(flags{sweep: 2 * time.Minute}), b.start(flags{sweep: 2 * time.Minute})
		ofA, ofB := a.armedNow("default", "db"), b.armedNow("default", "db")
		hadA, hadB := a.whole(t, ofA), b.whole(t, ofB)
		if name(ofA) == name(ofB) || hadA.topics[0].DisplayName == hadB.topics[0].DisplayName {
			t.Fatalf("both are %s, %s", name(ofA), hadA.topics[0].DisplayName)
		}
		topics, rules := a.strangers(ofA, hadA.rule(v1alpha1.MetricCPU))
		foreign := func(s *service) float64 { return s.metric("rds_autopilot_foreign_objects") }
		inA.swept()
		inB.swept()
		a.survive(t, "after a sweep", topics, rules)
		// Four of the other cluster, and of the strangers a topic and two rules with exactly our form of name.
		if foreign(inA) != 7 || foreign(inB) != 7 {
			t.Errorf("foreign objects: %g and %g, want 7", foreign(inA), foreign(inB))
		}

		a.patch(a.rdss("default"), "db", `{"spec":{"autopilot":false}}`)
		a.released("default", "db", "NotEnabled")
		inA.swept()
		inB.swept()
		if err := same(hadB, b.whole(t, b.armedNow("default", "db"))); err != nil {
			t.Errorf("the other cluster: %v", err)
		}
		a.survive(t, "after disarming", topics, rules)
		if foreign(inB) != 3 {
			t.Errorf("foreign objects: %g, want the strangers' 3", foreign(inB))
		}

		// An autopilot that is deleted by force leaves orphans in A, which B must not touch.
		a.patch(a.rdss("default"), "db", `{"spec":{"autopilot":true}}`)
		a.whole(t, a.armedNow("default", "db"))
		inA.rest()
		inA.stop()
		a.patch(a.rdss("default"), "db", `{"spec":{"autopilot":null}}`)
		a.force("db")
		inB.swept()
		inB.swept()
		if n := a.thingsOf(name(ofA)).count(); n != 5 {
			t.Errorf("%d of 5 things of A are left by B", n)
		}
		second := a.start(flags{sweep: 2 * time.Minute})
		a.gone(ofA)
		a.survive(t, "after removing orphans", topics, rules)

		// The same while it runs: the one that is made again is not an orphan.
		a.patch(a.rdss("default"), "db", `{"spec":{"autopilot":true}}`)
		third := a.armedNow("default", "db")
		a.force("db")
		a.until("there is another one", func() bool {
			now := a.autopilot("default", "db")
			return now != nil && now.UID != third.UID && isArmed(now)
		})
		a.gone(third)
		second.swept()
		a.whole(t, a.autopilot("default", "db"))
		a.survive(t, "at the end", topics, rules)
		if err := same(hadB, b.whole(t, b.armedNow("default", "db"))); err != nil {
			t.Errorf("the other cluster: %v", err)
		}
		if foreign(second) != 7 {
			t.Errorf("foreign objects: %g, want 7", foreign(second))
		}
	})
}

// force deletes an autopilot past its finalizer, before the service can do what that stands for.
func (f *fleet) force(db string) {
	f.t.Helper()
	mend := f.breaks(func(*http.Request) *otcsim.Fault { return &otcsim.Fault{Status: http.StatusForbidden} })
	defer mend()
	was := f.autopilot("default", db)
	f.delete(f.raps("default"), db)
	f.patch(f.raps("default"), db, `{"metadata":{"finalizers":null}}`)
	if f.thingsOf(name(was)).count() != 5 {
		f.t.Fatal("there are no orphans to be")
	}
}

func TestNamesThatDifferAtTheirEndShareNothing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		f := newFleet(t, otcsim.Settings{})
		f.runCloud()
		long := strings.Repeat("a-very-long-name-", 10)
		names := []string{long + "1", long + "2"}
		for _, n := range names {
			f.database("default", n, plain())
		}
		s := f.start(flags{sweep: 2 * time.Minute})
		had := map[string]things{}
		for _, n := range names {
			a := f.armedNow("default", n)
			had[n] = f.whole(t, a)
			if len(name(a)) > 100 || len(had[n].topics[0].DisplayName) > 192 {
				t.Errorf("%s is %q", name(a), had[n].topics[0].DisplayName)
			}
		}
		exactly(t, f.sim, 2)
		f.patch(f.rdss("default"), names[0], `{"spec":{"autopilot":false}}`)
		f.released("default", names[0], "NotEnabled")
		s.swept()
		if err := same(had[names[1]], f.whole(t, f.armedNow("default", names[1]))); err != nil {
			t.Error(err)
		}
		exactly(t, f.sim, 1)
		if n := s.metric("rds_autopilot_foreign_objects"); n != 0 {
			t.Errorf("%g foreign objects", n)
		}
	})
}
