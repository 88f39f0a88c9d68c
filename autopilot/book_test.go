// SPDX-License-Identifier: Apache-2.0

package autopilot_test

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// What may have started counts for cooldown and budget. What was never requested counts for nothing and has no place.
func TestBookSaysWhatAChangeCountsFor(t *testing.T) {
	refused := func(reason autopilot.Reason) *v1alpha1.Refusal {
		return &v1alpha1.Refusal{Count: 1, Time: cases.Ago(time.Minute), Reason: string(reason)}
	}
	requested, started := new(cases.Ago(10*time.Minute)), new(cases.Ago(5*time.Minute))
	for name, tc := range map[string]struct {
		alter      func(*v1alpha1.Change)
		starts     time.Duration // ago; 0 if it has not
		place      bool
		isRefused  bool // its refusal prevents the next request
		isInBudget bool
	}{
		"decided":              {func(*v1alpha1.Change) {}, 0, true, false, false},
		"requested of the Rds": {func(ch *v1alpha1.Change) { ch.RequestTime = requested }, 10 * time.Minute, true, false, false},
		"accepted by the cloud": {func(ch *v1alpha1.Change) { ch.RequestTime, ch.StartTime = requested, started },
			5 * time.Minute, true, false, false},
		"requested almost two hours ago": {func(ch *v1alpha1.Change) { ch.RequestTime = new(cases.Ago(2*time.Hour - time.Second)) },
			2*time.Hour - time.Second, true, false, false},
		"requested two hours ago": {func(ch *v1alpha1.Change) { ch.RequestTime = new(cases.Ago(2 * time.Hour)) },
			2 * time.Hour, false, false, false},
		"requested growth": {func(ch *v1alpha1.Change) { ch.Kind, ch.RequestTime = v1alpha1.KindVolume, requested },
			10 * time.Minute, false, false, false},
		"refused by the API server": {func(ch *v1alpha1.Change) { ch.Refusal = refused("") }, 0, false, true, false},
		"refused by the cloud, and the Rds requests it": {func(ch *v1alpha1.Change) {
			ch.RequestTime, ch.Refusal = requested, refused(autopilot.ReasonQuotaExceeded)
		}, 0, false, true, false},
		"without a clear answer": {func(ch *v1alpha1.Change) {
			ch.RequestTime, ch.Refusal = requested, refused(autopilot.CloudUnreachable)
		}, 10 * time.Minute, true, true, false},
		"completed": {ended(v1alpha1.OutcomeCompleted, nil), 5 * time.Minute, false, false, true},
		"lost":      {ended(v1alpha1.OutcomeLost, nil), 5 * time.Minute, false, false, true},
		"reverted":  {ended(v1alpha1.OutcomeReverted, nil), 5 * time.Minute, false, false, true},
		"failed": {ended(v1alpha1.OutcomeFailed, refused(autopilot.ReasonJobFailed)), 5 * time.Minute, false, true,
			true},
		"refused until it was not needed": {func(ch *v1alpha1.Change) {
			ch.Outcome, ch.RequestTime = v1alpha1.OutcomeRefused, requested
		}, 0, false, false, false},
		"withdrawn":  {func(ch *v1alpha1.Change) { ch.Outcome = v1alpha1.OutcomeWithdrawn }, 0, false, false, false},
		"by another": {func(ch *v1alpha1.Change) { ch.DecisionTime, ch.RequestTime = nil, requested }, 0, false, false, false},
	} {
		ch := cases.PendingTo(v1alpha1.KindFlavor, "a", "b", 10*time.Minute)
		tc.alter(ch)
		all := []v1alpha1.Change{*ch}
		at, ok := autopilot.StartOf(*ch)
		if ok != (tc.starts > 0) || ok && !at.Equal(cases.Noon().Add(-tc.starts)) {
			t.Errorf("%s: started at %s, %t; want %s ago", name, at, ok, tc.starts)
		}
		if got := len(autopilot.FlavorStarts(all)) == 1; got != tc.isInBudget {
			t.Errorf("%s: counts for the budget %t", name, got)
		}
		if got := autopilot.HoldsPlace(all, cases.Noon()); got != tc.place {
			t.Errorf("%s: has a place %t", name, got)
		}
		if r, _ := autopilot.LastRefusal(all, v1alpha1.KindFlavor); (r != nil) != tc.isRefused {
			t.Errorf("%s: refusal %+v", name, r)
		}
	}
}

// ended returns the alteration that a change has started 5 minutes ago and ended so.
func ended(o v1alpha1.Outcome, r *v1alpha1.Refusal) func(*v1alpha1.Change) {
	return func(ch *v1alpha1.Change) {
		ch.StartTime, ch.Outcome, ch.CompletionTime, ch.Refusal = new(cases.Ago(5*time.Minute)), o, cases.Ago(0), r
	}
}

// Without an instance, the engine whose catalogue would answer is not known either.
func TestNothingIsContestedWithoutAnInstance(t *testing.T) {
	c := cases.Quiet()
	cases.Changed(2*time.Hour, "94.0")(&c)
	c.Wanted.Flavor, c.Catalogue = "rds.mysql.n1.large.2", nil
	if !c.NeedsCatalogue() {
		t.Fatal("with an instance, the catalogue says whether the other flavor is smaller")
	}
	c.Instance = nil
	if _, _, ok := c.Contest(); ok || c.NeedsCatalogue() {
		t.Errorf("contested %t, needs the catalogue %t", ok, c.NeedsCatalogue())
	}
}
