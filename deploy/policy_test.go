// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// The least rights are those of the calls in the transport's table. The code cannot make other calls. Rights to change an instance
// are a separate statement, which users leave out without --allow-apply=Cloud.
func TestPolicyAllowsExactlyTheCallsOfTheCode(t *testing.T) {
	text, err := os.ReadFile("examples/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	var policy struct {
		Version   string
		Statement []struct {
			Effect string
			Action []string
		}
	}
	if err := json.Unmarshal(text, &policy); err != nil || policy.Version != "1.1" || len(policy.Statement) != 2 || policy.Statement[0].Effect != "Allow" || policy.Statement[1].Effect != "Allow" {
		t.Fatalf("%v: %+v", err, policy)
	}
	changes := slices.Sorted(maps.Values(otc.ChangeRights()))
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
	compare(t, "rights", policy.Statement[0].Action, slices.Sorted(maps.Keys(needed)))
	compare(t, "rights to change an instance", policy.Statement[1].Action, changes)
}
