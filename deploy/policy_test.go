// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// The least rights are those of the calls in the transport's table. The code cannot make other calls. Only one of the two
// files has the rights to change an instance.
func TestPoliciesAllowExactlyTheCallsOfTheCode(t *testing.T) {
	changes := []string{"rds:instance:extendSpace", "rds:instance:modifySpec"}
	needed := map[string]bool{}
	free := []string{"Login", "ListFlavors", "GetJob"} // RDS api: rds_actions.rst: no authorization required, or none documented
	for operation, right := range otc.Rights() {
		if (right == "") != slices.Contains(free, operation) {
			t.Errorf("%s needs the right %q", operation, right)
		}
		if right != "" && !slices.Contains(changes, right) {
			needed[right] = true
		}
	}
	reads := slices.Sorted(maps.Keys(needed))
	for file, want := range map[string][]string{
		"policy-read-only.json": reads, "policy-apply-cloud.json": slices.Sorted(slices.Values(slices.Concat(reads, changes))),
	} {
		if diff := cmp.Diff(want, allowed(t, file)); diff != "" {
			t.Errorf("%s (-code +file):\n%s", file, diff)
		}
	}
}

// allowed returns the actions that a policy of the examples allows, sorted.
func allowed(t *testing.T, file string) (actions []string) {
	t.Helper()
	var policy struct {
		Version   string
		Statement []struct {
			Effect string
			Action []string
		}
	}
	if err := json.Unmarshal([]byte(document(t, "deploy/examples/"+file)), &policy); err != nil || policy.Version != "1.1" {
		t.Fatalf("%s: %v: %+v", file, err, policy)
	}
	for _, s := range policy.Statement {
		if s.Effect != "Allow" {
			t.Errorf("%s: %+v", file, s)
		}
		actions = append(actions, s.Action...)
	}
	slices.Sort(actions)
	return actions
}
