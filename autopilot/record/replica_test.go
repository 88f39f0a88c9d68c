// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func TestReplicasFollowAGrowthOfTheirPrimary(t *testing.T) {
	grown := func(by v1alpha1.Author, age time.Duration) []v1alpha1.Change {
		return []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: by, From: "90", To: "100", Outcome: v1alpha1.OutcomeCompleted, CompletionTime: cases.Ago(age)}}
	}
	for name, tc := range map[string]struct {
		alter   func(*autopilot.Case)
		follows bool
		warned  bool
	}{
		"just grown":              {func(*autopilot.Case) {}, true, false},
		"grown 10 minutes ago":    {func(c *autopilot.Case) { c.Status.Changes = grown(v1alpha1.ByAutopilot, autopilot.ReplicaPatience) }, true, true},
		"grown an hour ago":       {func(c *autopilot.Case) { c.Status.Changes = grown(v1alpha1.ByAutopilot, time.Hour) }, false, true},
		"grown by another writer": {func(c *autopilot.Case) { c.Status.Changes = grown(v1alpha1.ByOther, time.Minute) }, false, true},
		"not grown":               {func(c *autopilot.Case) { c.Status.Changes = nil }, false, true},
		"growing again":           {func(c *autopilot.Case) { c.Status.Pending = cases.IntentTo(v1alpha1.KindVolume, "100", "110", 0) }, false, true},
		"apply: Operator":         {func(c *autopilot.Case) { c.Spec.Apply = v1alpha1.ApplyOperator }, false, true},
		"mode: Recommend":         {func(c *autopilot.Case) { c.Mode = v1alpha1.ModeRecommend }, false, true},
		"another object's":        {func(c *autopilot.Case) { c.ClaimedBy = "a/b" }, false, true},
		"a cap of its own":        {func(c *autopilot.Case) { c.Instance.Replicas[0].MaxGB = 95 }, false, true},
		"forbidden":               {func(c *autopilot.Case) { c.Instance.Replicas[0].IsForbidden = true }, false, true},
		"as large":                {func(c *autopilot.Case) { c.Instance.Replicas[0].VolumeGB = 100 }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := cases.TwoReplicas(50)
			c.Instance.Replicas[0].VolumeGB, c.Status.Changes = 90, grown(v1alpha1.ByAutopilot, time.Minute)
			tc.alter(&c)
			if found := c.ReplicasToFollow(); len(found) > 1 || (len(found) == 1) != tc.follows {
				t.Errorf("%v follow, want %t", found, tc.follows)
			}
			if w := replicaWarning(c); (len(w) > 0) != tc.warned {
				t.Errorf("warnings %v, want %t", w, tc.warned)
			}
		})
	}
}

// The wait for a replica is neither a refusal nor a change that the cloud may have begun.
func TestWaitForReplicasIsCheckedAgainAfterTheRecheck(t *testing.T) {
	c, i := cases.TwoReplicas(92)
	c.Status.Pending = &i
	s := c.Status.Copy()
	answers := recordAnswer(c, &s, *WaitForReplicas(i, c.Instance.Replicas))
	const message = "A read replica grows first (Storage 100 → 110 GB): reader (100 GB), reports (100 GB)"
	if len(answers) != 1 || answers[0].Message != message || answers[0].Reason.IsWarning() {
		t.Errorf("decisions %+v", answers)
	}
	if mayHaveStarted(*s.Pending, v1alpha1.ApplyCloud) {
		t.Error("the growth counts as started")
	}
	c.Status = s
	c.Now = c.Now.Add(c.Recheck)
	if v := verdictOf(c); v.Intent == nil || !v.Intent.DecisionTime.Equal(&i.DecisionTime) {
		t.Errorf("intent %+v, want the time of its first decision", v.Intent)
	}
}
