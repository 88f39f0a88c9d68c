// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestAllowedRefusesInstancesThatItDoesNotList(t *testing.T) {
	cloud := v1alpha1.Spec{Apply: v1alpha1.ApplyCloud}
	of := func(namespace, id string) *Target { return &Target{Namespace: namespace, InstanceID: id, NoRds: true} }
	rds := func(namespace, id string) *Target { return &Target{Namespace: namespace, InstanceID: id} }
	listed := []string{"billing/*", "shop/a"}
	for name, tc := range map[string]struct {
		allowed Allowed
		spec    v1alpha1.Spec
		target  *Target
		refuses bool
	}{
		"apply Cloud is not allowed":              {Allowed{Apply: v1alpha1.ApplyOperator}, cloud, of("shop", "a"), true},
		"zero value":                              {Allowed{}, cloud, of("shop", "a"), true},
		"zero value, apply Operator":              {Allowed{}, v1alpha1.Spec{}, rds("shop", "a"), false},
		"without a list":                          {Allowed{Apply: v1alpha1.ApplyCloud}, cloud, of("shop", "a"), true},
		"all instances":                           {Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}}, cloud, of("shop", "a"), false},
		"listed":                                  {Allowed{Apply: v1alpha1.ApplyCloud, Instances: listed}, cloud, of("shop", "a"), false},
		"not listed":                              {Allowed{Apply: v1alpha1.ApplyCloud, Instances: listed}, cloud, of("shop", "b"), true},
		"listed for another namespace":            {Allowed{Apply: v1alpha1.ApplyCloud, Instances: listed}, cloud, of("other", "a"), true},
		"listed for all namespaces":               {Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/a"}}, cloud, of("other", "a"), false},
		"Rds without an instance":                 {Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"shop/a"}}, cloud, rds("shop", ""), false},
		"Rds of another namespace":                {Allowed{Apply: v1alpha1.ApplyCloud, Instances: listed}, v1alpha1.Spec{}, rds("other", "a"), true},
		"Rds of another namespace, operator only": {Allowed{Apply: v1alpha1.ApplyOperator, Instances: listed}, v1alpha1.Spec{}, rds("other", "a"), true},
		"listed Rds":                              {Allowed{Apply: v1alpha1.ApplyOperator, Instances: listed}, v1alpha1.Spec{}, rds("billing", "c"), false},
	} {
		if got := tc.allowed.Refuses(tc.spec, tc.target); (got != "") != tc.refuses {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Doctor rehearses with such an object.
func TestObjectOfTheOwnNamespaceInRecommendNeedsNoPermissionAndClaimsNothing(t *testing.T) {
	own := Allowed{Apply: v1alpha1.ApplyOperator, Instances: []string{"shop/*"}, OwnNamespace: "autopilot"}
	for name, tc := range map[string]struct {
		namespace string
		mode      v1alpha1.Mode
		refuses   bool
	}{
		"in Recommend":         {"autopilot", v1alpha1.ModeRecommend, false},
		"in Auto":              {"autopilot", v1alpha1.ModeAuto, true},
		"of another namespace": {"shop", v1alpha1.ModeRecommend, true},
		"without a namespace":  {"", v1alpha1.ModeRecommend, true},
	} {
		spec := v1alpha1.Spec{Mode: tc.mode, Apply: v1alpha1.ApplyCloud, InstanceID: "a"}
		target := &Target{Namespace: tc.namespace, InstanceID: "a", NoRds: true}
		if got := own.Refuses(spec, target); (got != "") != tc.refuses {
			t.Errorf("%s: %q", name, got)
		}
	}
	all := Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}, OwnNamespace: "autopilot"}
	claim := func(mode v1alpha1.Mode) *Target {
		return &Target{Namespace: "autopilot", InstanceID: "a", NoRds: true, Autopilot: &v1alpha1.RdsAutopilot{
			Spec: v1alpha1.Spec{Mode: mode, Apply: v1alpha1.ApplyCloud, InstanceID: "a"},
		}}
	}
	if all.FirstClaim([]*Target{claim(v1alpha1.ModeRecommend)}, v1alpha1.ModeAuto) != nil {
		t.Error("a rehearsal claims its instance")
	}
	if all.FirstClaim([]*Target{claim(v1alpha1.ModeAuto)}, v1alpha1.ModeAuto) == nil {
		t.Error("an object of the own namespace in Auto claims no instance")
	}
}

func TestTargetArmedFirstManagesInstance(t *testing.T) {
	t.Parallel()
	all := Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}}
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	target := func(namespace string, created time.Time, armed bool) *Target {
		of := &v1alpha1.RdsAutopilot{Status: v1alpha1.Status{Instance: &v1alpha1.Instance{ID: "a"}, Switch: v1alpha1.SwitchOn}}
		if armed {
			of.Status.Alarms.Rules = []v1alpha1.Rule{{AlarmID: "al", Dimension: "rds_cluster_id:a"}}
		}
		return &Target{Namespace: namespace, Name: "db", InstanceID: "a", Created: created, Autopilot: of}
	}
	with := func(t *Target, change func(*Target)) *Target { change(t); return t }
	noRds := func(t *Target) *Target { t.NoRds = true; return t }
	operator, younger := Allowed{Apply: v1alpha1.ApplyOperator}, target("shop", day.Add(time.Hour), false)
	for name, tc := range map[string]struct {
		allowed Allowed
		targets []*Target
		first   string // namespace
	}{
		"alone":                              {all, []*Target{target("shop", day, false)}, "shop"},
		"armed, although younger":            {all, []*Target{target("old", day, false), target("shop", day.Add(time.Hour), true)}, "shop"},
		"the older of two":                   {all, []*Target{target("young", day.Add(time.Hour), false), target("shop", day, false)}, "shop"},
		"the older of two that are armed":    {all, []*Target{target("young", day.Add(time.Hour), true), target("shop", day, true)}, "shop"},
		"of the same age, the first by name": {all, []*Target{target("shop", day, false), target("a", day, false)}, "a"},
		"an instance that is not listed for its namespace": {
			Allowed{Apply: v1alpha1.ApplyOperator, Instances: []string{"shop/*"}}, []*Target{target("a", day, true), target("shop", day.Add(time.Hour), false)}, "shop",
		},
		"none is listed":               {Allowed{Apply: v1alpha1.ApplyOperator, Instances: []string{"shop/*"}}, []*Target{target("a", day, true)}, ""},
		"off by its mode":              {all, []*Target{with(target("a", day, true), func(t *Target) { t.Autopilot.Spec.Mode = v1alpha1.ModeOff }), younger}, "shop"},
		"off by spec.autopilot":        {all, []*Target{with(target("a", day, true), func(t *Target) { t.Switch = v1alpha1.SwitchOff }), younger}, "shop"},
		"off by the last switch":       {all, []*Target{with(target("a", day, true), func(t *Target) { t.Autopilot.Status.Switch = v1alpha1.SwitchOff }), younger}, "shop"},
		"an Rds that is being deleted": {all, []*Target{with(target("a", day, true), func(t *Target) { t.Deleting = true }), younger}, "shop"},
		"an RdsAutopilot that is being deleted": {
			all, []*Target{with(target("a", day, true), func(t *Target) { t.Autopilot.DeletionTimestamp = &metav1.Time{Time: day} }), younger}, "shop",
		},
		"an Rds without autopilot":            {all, []*Target{with(target("a", day, false), func(t *Target) { t.Autopilot = nil }), younger}, "shop"},
		"an Rds that gets its RdsAutopilot":   {all, []*Target{with(target("a", day, false), func(t *Target) { t.Autopilot, t.Switch = nil, v1alpha1.SwitchOn }), younger}, "a"},
		"one whose spec.apply is not allowed": {operator, []*Target{with(target("a", day, true), func(t *Target) { t.Autopilot.Spec.Apply = v1alpha1.ApplyCloud }), younger}, "shop"},
		"without an Rds where only the operator applies": {
			operator, []*Target{noRds(target("a", day, false)), target("shop", day.Add(time.Hour), false)}, "shop",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if first := tc.allowed.FirstClaim(tc.targets, v1alpha1.ModeAuto); first != nil {
				got = first.Namespace
			}
			if got != tc.first {
				t.Errorf("%q manages the instance, want %q", got, tc.first)
			}
		})
	}
}
