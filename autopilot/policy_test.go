// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestMaxGBDefaultsToFourTimesTheBaseline(t *testing.T) {
	for _, tc := range []struct{ given, baseline, now, want int }{
		{400, 40, 100, 400},
		{0, 40, 100, 200},
		{0, 50, 100, 200},
		{0, 60, 100, 240},
		{0, 100, 390, 400},
		{0, 1000, 1000, 4000},
		{0, 1500, 1500, 4000},
		{0, 0, 100, 400}, // not recorded yet
		{0, 0, 0, 0},
	} {
		var b *v1alpha1.Baseline
		if tc.baseline > 0 {
			b = &v1alpha1.Baseline{VolumeGB: int32(tc.baseline)}
		}
		spec := v1alpha1.Spec{Storage: v1alpha1.Storage{MaxGB: int32(tc.given)}}
		if got := MaxGB(spec, b, tc.now); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

func TestNarrowerModeReturnsTheStricterMode(t *testing.T) {
	fromStrictest := []v1alpha1.Mode{v1alpha1.ModeOff, v1alpha1.ModeRecommend, v1alpha1.ModeAuto}
	for i, policy := range fromStrictest {
		for j, flag := range fromStrictest {
			if got, want := NarrowerMode(policy, flag), fromStrictest[min(i, j)]; got != want {
				t.Errorf("policy %s, --mode %s: %s, want %s", policy, flag, got, want)
			}
		}
	}
}

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
func TestObjectOfTheOwnNamespaceInRecommendNeedsNoPermission(t *testing.T) {
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
}
