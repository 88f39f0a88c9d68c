// SPDX-License-Identifier: Apache-2.0

package autopilot_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func TestNextToGrowReturnsTheOrderOfPrimaryAndReplicas(t *testing.T) {
	type answers = map[string]autopilot.GrowthAnswer
	const settled, outOfOrder, growing = autopilot.GrowthSettled, autopilot.GrowthOutOfOrder, autopilot.GrowthUnderWay
	sizes := func(r1, r2 int) func(*autopilot.Case, *v1alpha1.Intent) {
		return func(c *autopilot.Case, _ *v1alpha1.Intent) {
			c.Instance.Replicas = []autopilot.Replica{{ID: "r2", Name: "reports", VolumeGB: r2}, {ID: "r1", Name: "reader", VolumeGB: r1}}
		}
	}
	for name, tc := range map[string]struct {
		alter    func(*autopilot.Case, *v1alpha1.Intent)
		answers  answers
		asked    []string
		waitsFor []string
	}{
		"no replica":                 {func(c *autopilot.Case, _ *v1alpha1.Intent) { c.Instance.Replicas = nil }, nil, []string{"id"}, nil},
		"the replicas begin to grow": {nil, answers{"r1": growing, "r2": growing}, []string{"r1", "r2"}, []string{"reader", "reports"}},
		"one has the new size":       {sizes(110, 100), answers{"r2": growing}, []string{"r2"}, []string{"reports"}},
		"one has a cap of its own":   {func(c *autopilot.Case, _ *v1alpha1.Intent) { c.Instance.Replicas[1].MaxGB = 100 }, answers{"r2": growing}, []string{"r2"}, []string{"reports"}},
		"both have a cap of their own": {func(c *autopilot.Case, _ *v1alpha1.Intent) {
			c.Instance.Replicas[0].MaxGB, c.Instance.Replicas[1].MaxGB = 100, 109
		}, nil, []string{"id"}, nil},
		"a cap at the new size":             {func(c *autopilot.Case, _ *v1alpha1.Intent) { c.Instance.Replicas[1].MaxGB = 110 }, answers{"r1": growing, "r2": growing}, []string{"r1", "r2"}, []string{"reader", "reports"}},
		"both have the new size":            {sizes(110, 120), nil, []string{"id"}, nil},
		"the size of one is unknown":        {sizes(0, 110), nil, []string{"id"}, nil},
		"both have grown since the list":    {nil, answers{"r1": settled, "r2": settled}, []string{"r1", "r2", "id"}, nil},
		"one is refused, and one grows":     {nil, answers{"r1": settled, "r2": growing}, []string{"r1", "r2"}, []string{"reports"}},
		"the cloud wants the primary first": {nil, answers{"r1": outOfOrder, "r2": outOfOrder}, []string{"r1", "r2", "id"}, nil},
		"the cloud refuses both orders":     {nil, answers{"r1": outOfOrder, "r2": settled, "id": outOfOrder}, []string{"r1", "r2", "id"}, nil},
		"nearly read-only":                  {func(c *autopilot.Case, _ *v1alpha1.Intent) { c.Alarms[0].Evidence.UsedGB = 94 }, nil, []string{"id"}, nil},
		"nearly read-only, and the cloud wants the replicas first": {
			func(c *autopilot.Case, _ *v1alpha1.Intent) { c.Alarms[0].Evidence.UsedGB = 94 },
			answers{"id": outOfOrder, "r1": growing, "r2": settled}, []string{"id", "r1", "r2"}, []string{"reader"},
		},
		"read-only at 92 %": {func(c *autopilot.Case, _ *v1alpha1.Intent) { cases.ReadOnly(c) }, nil, []string{"id"}, nil},
		"full":              {func(c *autopilot.Case, _ *v1alpha1.Intent) { c.Instance.Status = autopilot.StatusStorageFull }, nil, []string{"id"}, nil},
		"waited for 10 minutes less a second": {func(_ *autopilot.Case, i *v1alpha1.Intent) {
			i.DecisionTime = cases.Ago(autopilot.ReplicaPatience - time.Second)
		}, answers{"r1": growing, "r2": growing}, []string{"r1", "r2"}, []string{"reader", "reports"}},
		"waited for 10 minutes": {func(_ *autopilot.Case, i *v1alpha1.Intent) { i.DecisionTime = cases.Ago(autopilot.ReplicaPatience) }, nil, []string{"id"}, nil},
		"waited for 10 minutes, and the cloud wants the replicas first": {
			func(_ *autopilot.Case, i *v1alpha1.Intent) { i.DecisionTime = cases.Ago(autopilot.ReplicaPatience) },
			answers{"id": outOfOrder, "r1": growing, "r2": growing}, []string{"id", "r1", "r2"}, []string{"reader", "reports"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, i := cases.TwoReplicas(92)
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
		alter  func(*autopilot.Case, *v1alpha1.Intent)
		r1, r2 autopilot.ReplicaStep
	}{
		"both are smaller than the new size": {func(*autopilot.Case, *v1alpha1.Intent) {}, autopilot.ReplicaGrowsFirst, autopilot.ReplicaStaysSmaller},
		"one has the new size": {func(c *autopilot.Case, _ *v1alpha1.Intent) { c.Instance.Replicas[1].VolumeGB = 110 },
			autopilot.ReplicaStays, autopilot.ReplicaStaysSmaller},
		"one size is not known": {func(c *autopilot.Case, _ *v1alpha1.Intent) { c.Instance.Replicas[1].VolumeGB = 0 },
			autopilot.ReplicaSizeUnknown, autopilot.ReplicaStaysSmaller},
		"the primary cannot wait": {func(c *autopilot.Case, _ *v1alpha1.Intent) { c.Alarms[0].Evidence.UsedGB = 97 },
			autopilot.ReplicaGrowsAfter, autopilot.ReplicaStaysSmaller},
		"the primary has waited for 10 minutes": {func(_ *autopilot.Case, i *v1alpha1.Intent) { i.DecisionTime = cases.Ago(autopilot.ReplicaPatience) },
			autopilot.ReplicaGrowsAfter, autopilot.ReplicaStaysSmaller},
		"apply: Operator": {func(c *autopilot.Case, _ *v1alpha1.Intent) { c.Spec.Apply = v1alpha1.ApplyOperator },
			autopilot.ReplicaStaysSmaller, autopilot.ReplicaStaysSmaller},
	} {
		t.Run(name, func(t *testing.T) {
			c, i := cases.TwoReplicas(92)
			tc.alter(&c, &i)
			c.Instance.Replicas[0].IsForbidden = true
			got := c.ReplicaSteps(i)
			if len(got) != 2 || got["r1"] != tc.r1 || got["r2"] != tc.r2 {
				t.Errorf("%v, want r1 %s and r2, which is not listed, %s", got, tc.r1, tc.r2)
			}
		})
	}
}
