// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// A clock that was hours ahead when it wrote the status delays storage by minutes at most.
func TestStorageDoesNotWaitForAClockThatWasAhead(t *testing.T) {
	ahead := cases.Ago(-5 * time.Hour)
	for name, change := range map[string]func(*autopilot.Case){
		"a growth, and its rule is in ok": func(c *autopilot.Case) {
			c.Alarms[0].State = v1alpha1.StateOK
			c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "90", To: "100", CompletionTime: ahead, Outcome: v1alpha1.OutcomeCompleted}}
		},
		"a size that was reverted": func(c *autopilot.Case) {
			c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "100", To: "110", CompletionTime: ahead, Outcome: v1alpha1.OutcomeLost, Count: 1}}
		},
		"a refused patch": func(c *autopilot.Case) {
			c.Status.Pending = cases.IntentTo(v1alpha1.KindVolume, "100", "110", -5*time.Hour)
			c.Status.Pending.Refusal = &v1alpha1.Refusal{Count: 1, Time: ahead}
		},
		"a pending flavor": cases.PendingFlavor(-5 * time.Hour),
		"a used space over its threshold, and no alarm": func(c *autopilot.Case) {
			since := metav1.NewTime(ahead.Time)
			c.Alarms[0].State, c.Status.OverThresholdSince = v1alpha1.StateOK, &since
		},
	} {
		c := cases.Quiet(cases.StorageAt(93))
		change(&c)
		grows := func() bool {
			next := c
			next.Alarms = slices.Clone(c.Alarms)
			next.Status = c.Status.Copy()
			autopilot.ClampTimes(&next.Status, next.Now)
			c.Status = next.Status // as each round stores it
			a := &next.Alarms[0]
			a.Evidence.Time, a.GrowthTime = next.Now, autopilot.RecentGrowth(next.Status.Changes, next.Now)
			if since := next.OverThresholdSince(a.Evidence); since != nil {
				a.AlarmOverdueSince = since.Time
			}
			v := verdictOf(next)
			return v.Intent != nil && v.Intent.Kind == v1alpha1.KindVolume
		}
		waited := time.Duration(0)
		for ; !grows() && waited < time.Hour; waited += time.Minute {
			c.Now = c.Now.Add(time.Minute)
		}
		if waited > 15*time.Minute {
			t.Errorf("%s: storage waits for %s", name, waited)
		}
	}
}
