// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"

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
