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
		"all instances":                           {Allowed{v1alpha1.ApplyCloud, []string{"*/*"}}, cloud, of("shop", "a"), false},
		"listed":                                  {Allowed{v1alpha1.ApplyCloud, listed}, cloud, of("shop", "a"), false},
		"not listed":                              {Allowed{v1alpha1.ApplyCloud, listed}, cloud, of("shop", "b"), true},
		"listed for another namespace":            {Allowed{v1alpha1.ApplyCloud, listed}, cloud, of("other", "a"), true},
		"listed for all namespaces":               {Allowed{v1alpha1.ApplyCloud, []string{"*/a"}}, cloud, of("other", "a"), false},
		"Rds without an instance":                 {Allowed{v1alpha1.ApplyCloud, []string{"shop/a"}}, cloud, rds("shop", ""), false},
		"Rds of another namespace":                {Allowed{v1alpha1.ApplyCloud, listed}, v1alpha1.Spec{}, rds("other", "a"), true},
		"Rds of another namespace, operator only": {Allowed{v1alpha1.ApplyOperator, listed}, v1alpha1.Spec{}, rds("other", "a"), true},
		"listed Rds":                              {Allowed{v1alpha1.ApplyOperator, listed}, v1alpha1.Spec{}, rds("billing", "c"), false},
	} {
		if got := tc.allowed.Refuses(tc.spec, tc.target); (got != "") != tc.refuses {
			t.Errorf("%s: %q", name, got)
		}
	}
}
