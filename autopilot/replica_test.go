// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// withReplicas is a primary of 100 GB with two read replicas of that size, whose growth to 110 GB was decided a minute ago.
func withReplicas(usedGB float64) (Case, v1alpha1.Intent) {
	c := quiet().with(storageAt(usedGB))
	c.Spec.Apply = v1alpha1.ApplyCloud
	c.Instance.Replicas = []Replica{{ID: "r2", Name: "reports", VolumeGB: 100}, {ID: "r1", Name: "reader", VolumeGB: 100}}
	return c, *intentTo(v1alpha1.KindVolume, "100", "110", time.Minute)
}

func TestNextToGrowReturnsTheOrderOfPrimaryAndReplicas(t *testing.T) {
	type answers = map[string]GrowthAnswer
	const done, order, grows = GrowthSettled, GrowthOutOfOrder, GrowthUnderWay
	sizes := func(r1, r2 int) func(*Case, *v1alpha1.Intent) {
		return func(c *Case, _ *v1alpha1.Intent) {
			c.Instance.Replicas = []Replica{{ID: "r2", Name: "reports", VolumeGB: r2}, {ID: "r1", Name: "reader", VolumeGB: r1}}
		}
	}
	for name, tc := range map[string]struct {
		alter    func(*Case, *v1alpha1.Intent)
		answers  answers
		asked    []string
		waitsFor []string
	}{
		"no replica":                         {func(c *Case, _ *v1alpha1.Intent) { c.Instance.Replicas = nil }, nil, []string{"id"}, nil},
		"the replicas begin to grow":         {nil, answers{"r1": grows, "r2": grows}, []string{"r1", "r2"}, []string{"reader", "reports"}},
		"one has the size":                   {sizes(110, 100), answers{"r2": grows}, []string{"r2"}, []string{"reports"}},
		"both have the size":                 {sizes(110, 120), nil, []string{"id"}, nil},
		"a size is not known":                {sizes(0, 110), nil, []string{"id"}, nil},
		"the list was older than the growth": {nil, answers{"r1": done, "r2": done}, []string{"r1", "r2", "id"}, nil},
		"one is refused, one grows":          {nil, answers{"r1": done, "r2": grows}, []string{"r1", "r2"}, []string{"reports"}},
		"the cloud wants the primary first":  {nil, answers{"r1": order, "r2": order}, []string{"r1", "r2", "id"}, nil},
		"the cloud wants no order":           {nil, answers{"r1": order, "r2": done, "id": order}, []string{"r1", "r2", "id"}, nil},
		"nearly read-only":                   {func(c *Case, _ *v1alpha1.Intent) { c.Alarms[0].Evidence.UsedGB = 94 }, nil, []string{"id"}, nil},
		"nearly read-only, and the cloud wants the replicas first": {
			func(c *Case, _ *v1alpha1.Intent) { c.Alarms[0].Evidence.UsedGB = 94 },
			answers{"id": order, "r1": grows, "r2": done}, []string{"id", "r1", "r2"}, []string{"reader"},
		},
		"fills fast": {func(c *Case, _ *v1alpha1.Intent) {
			c.Alarms[0].Evidence.Filling = Filling{Known: true, Middle: 5, Fast: 7}
		}, nil, []string{"id"}, nil},
		"fills slowly": {
			func(c *Case, _ *v1alpha1.Intent) {
				c.Alarms[0].Evidence.Filling = Filling{Known: true, Middle: 1, Fast: 2}
			},
			answers{"r1": grows, "r2": grows}, []string{"r1", "r2"}, []string{"reader", "reports"},
		},
		"full":                {func(c *Case, _ *v1alpha1.Intent) { c.Instance.Status = StatusStorageFull }, nil, []string{"id"}, nil},
		"just below patience": {func(_ *Case, i *v1alpha1.Intent) { i.DecisionTime = ago(replicaPatience - time.Second) }, answers{"r1": grows, "r2": grows}, []string{"r1", "r2"}, []string{"reader", "reports"}},
		"waited for too long": {func(_ *Case, i *v1alpha1.Intent) { i.DecisionTime = ago(replicaPatience) }, nil, []string{"id"}, nil},
		"waited for too long, and the cloud wants the replicas first": {
			func(_ *Case, i *v1alpha1.Intent) { i.DecisionTime = ago(replicaPatience) },
			answers{"id": order, "r1": grows, "r2": grows}, []string{"id", "r1", "r2"}, []string{"reader", "reports"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, i := withReplicas(92)
			if tc.alter != nil {
				tc.alter(&c, &i)
			}
			round := answers{}
			var asked, waitsFor []string
			for len(asked) < 9 {
				id, waits := c.NextToGrow(i, round)
				if id == "" {
					for _, r := range waits {
						waitsFor = append(waitsFor, r.Name)
					}
					break
				}
				asked, round[id] = append(asked, id), tc.answers[id]
			}
			if !slices.Equal(asked, tc.asked) || !slices.Equal(waitsFor, tc.waitsFor) {
				t.Errorf("asked %v and waits for %v, want %v and %v", asked, waitsFor, tc.asked, tc.waitsFor)
			}
		})
	}
}

func TestReplicaStepsFollowTheOrderOfTheGrowth(t *testing.T) {
	for name, tc := range map[string]struct {
		alter  func(*Case, *v1alpha1.Intent)
		r1, r2 ReplicaStep
	}{
		"both are smaller than the new size": {func(*Case, *v1alpha1.Intent) {}, ReplicaGrowsFirst, ReplicaStaysSmaller},
		"one has the new size": {func(c *Case, _ *v1alpha1.Intent) { c.Instance.Replicas[1].VolumeGB = 110 },
			ReplicaStays, ReplicaStaysSmaller},
		"one size is not known": {func(c *Case, _ *v1alpha1.Intent) { c.Instance.Replicas[1].VolumeGB = 0 },
			ReplicaSizeUnknown, ReplicaStaysSmaller},
		"the primary cannot wait": {func(c *Case, _ *v1alpha1.Intent) { c.Alarms[0].Evidence.UsedGB = 97 },
			ReplicaGrowsAfter, ReplicaStaysSmaller},
		"the primary has waited for 10 minutes": {func(_ *Case, i *v1alpha1.Intent) { i.DecisionTime = ago(replicaPatience) },
			ReplicaGrowsAfter, ReplicaStaysSmaller},
		"apply: Operator": {func(c *Case, _ *v1alpha1.Intent) { c.Spec.Apply = v1alpha1.ApplyOperator },
			ReplicaStaysSmaller, ReplicaStaysSmaller},
	} {
		t.Run(name, func(t *testing.T) {
			c, i := withReplicas(92)
			tc.alter(&c, &i)
			got := c.ReplicaSteps(i, func(id string) bool { return id == "r1" })
			if len(got) != 2 || got["r1"] != tc.r1 || got["r2"] != tc.r2 {
				t.Errorf("%v, want r1 %s and r2, which is not listed, %s", got, tc.r1, tc.r2)
			}
		})
	}
}

func TestReplicasFollowAGrowthOfTheirPrimary(t *testing.T) {
	grown := func(by v1alpha1.Author, age time.Duration) []v1alpha1.Change {
		return []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: by, From: "90", To: "100", Outcome: v1alpha1.OutcomeCompleted, CompletionTime: ago(age)}}
	}
	for name, tc := range map[string]struct {
		alter   func(*Case)
		follows bool
		warned  bool
	}{
		"just grown":             {func(*Case) {}, true, false},
		"grown 10 minutes ago":   {func(c *Case) { c.Status.Changes = grown(v1alpha1.ByAutopilot, replicaPatience) }, true, true},
		"grown an hour ago":      {func(c *Case) { c.Status.Changes = grown(v1alpha1.ByAutopilot, time.Hour) }, false, true},
		"grown by somebody else": {func(c *Case) { c.Status.Changes = grown(v1alpha1.ByOther, time.Minute) }, false, true},
		"not grown":              {func(c *Case) { c.Status.Changes = nil }, false, true},
		"growing again":          {func(c *Case) { c.Status.Pending = intentTo(v1alpha1.KindVolume, "100", "110", 0) }, false, true},
		"apply: Operator":        {func(c *Case) { c.Spec.Apply = v1alpha1.ApplyOperator }, false, true},
		"mode: Recommend":        {func(c *Case) { c.Mode = v1alpha1.ModeRecommend }, false, true},
		"another object's":       {func(c *Case) { c.ClaimedBy = "a/b" }, false, true},
		"as large":               {func(c *Case) { c.Instance.Replicas[0].VolumeGB = 100 }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := withReplicas(50)
			c.Instance.Replicas[0].VolumeGB, c.Status.Changes = 90, grown(v1alpha1.ByAutopilot, time.Minute)
			tc.alter(&c)
			if found := c.ReplicasToFollow(); len(found) > 1 || (len(found) == 1) != tc.follows {
				t.Errorf("%v follow, want %t", found, tc.follows)
			}
			if w := c.replicaWarning(); (len(w) > 0) != tc.warned {
				t.Errorf("warnings %v, want %t", w, tc.warned)
			}
		})
	}
}

// The wait for a replica is no refusal, and is not taken for a change that the cloud may have begun.
func TestWaitForReplicasIsCheckedAgainAfterTheRecheck(t *testing.T) {
	c, i := withReplicas(92)
	c.Status.Pending = &i
	s := c.Status.Copy()
	answers := c.recordAnswer(&s, *WaitForReplicas(i, c.Instance.Replicas))
	const says = "A read replica grows first (Storage 100 → 110 GB): reader (100 GB), reports (100 GB). Next check in 30 seconds"
	if len(answers) != 1 || answers[0].Message != says || answers[0].Reason.IsWarning() {
		t.Errorf("decisions %+v", answers)
	}
	if since, ok := MayHaveStarted(*s.Pending, v1alpha1.ApplyCloud); ok {
		t.Errorf("it may have started at %s", since)
	}
	c.Status = s
	c.Now = c.Now.Add(c.Recheck)
	if v := Decide(c); v.Intent == nil || !v.Intent.DecisionTime.Equal(&i.DecisionTime) {
		t.Errorf("intent %+v, want the time of its first decision", v.Intent)
	}
}
