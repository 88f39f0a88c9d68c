// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestAllowedRefusesWhatItDoesNotList(t *testing.T) {
	cloud := v1alpha1.Spec{Apply: v1alpha1.ApplyCloud}
	of := func(namespace, id string) *Target { return &Target{Namespace: namespace, InstanceID: id, NoRds: true} }
	for name, tc := range map[string]struct {
		allowed Allowed
		spec    v1alpha1.Spec
		target  *Target
		refuses bool
	}{
		"by default":                      {Allowed{Apply: v1alpha1.ApplyOperator}, cloud, of("shop", "a"), true},
		"without a word":                  {Allowed{}, cloud, of("shop", "a"), true},
		"who does not ask for it":         {Allowed{}, v1alpha1.Spec{}, of("shop", "a"), false},
		"all instances":                   {Allowed{Apply: v1alpha1.ApplyCloud}, cloud, of("shop", "a"), false},
		"this one":                        {Allowed{v1alpha1.ApplyCloud, []string{"billing/*", "shop/a"}}, cloud, of("shop", "a"), false},
		"another one":                     {Allowed{v1alpha1.ApplyCloud, []string{"billing/*", "shop/a"}}, cloud, of("shop", "b"), true},
		"one of another namespace":        {Allowed{v1alpha1.ApplyCloud, []string{"billing/*", "shop/a"}}, cloud, of("other", "a"), true},
		"this one, for everybody":         {Allowed{v1alpha1.ApplyCloud, []string{"*/a"}}, cloud, of("other", "a"), false},
		"an Rds that has no instance yet": {Allowed{v1alpha1.ApplyCloud, []string{"shop/a"}}, cloud, &Target{Namespace: "shop"}, false},
	} {
		if got := tc.allowed.Refuses(tc.spec, tc.target); (got != "") != tc.refuses {
			t.Errorf("%s: %q", name, got)
		}
	}
	a := Allowed{v1alpha1.ApplyCloud, []string{"shop/*"}}
	rds := &Target{Namespace: "other", InstanceID: "a"}
	if a.ClaimedTwice([]*Target{rds, of("other", "a")}) || !a.ClaimedTwice([]*Target{rds, of("shop", "a")}) || a.ClaimedTwice([]*Target{rds}) {
		t.Error("only who may have an instance shares it")
	}
}
