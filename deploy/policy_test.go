// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// The least rights are those of the calls that the code can make, and no others: what is in no row of the transport's table
// cannot be called at all.
func TestThePolicyAllowsEachCallAndNothingElse(t *testing.T) {
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
	if err := json.Unmarshal(text, &policy); err != nil || policy.Version != "1.1" || len(policy.Statement) != 1 || policy.Statement[0].Effect != "Allow" {
		t.Fatalf("%v: %+v", err, policy)
	}
	needed := map[string]bool{}
	free := []string{"Login", "ListFlavors"} // RDS api: rds_actions.rst: no authorization required
	for operation, right := range otc.Rights() {
		if needed[right] = true; (right == "") != slices.Contains(free, operation) {
			t.Errorf("%s needs the right %q", operation, right)
		}
	}
	delete(needed, "")
	var coded []string
	for right := range needed {
		coded = append(coded, right)
	}
	slices.Sort(coded)
	compare(t, "rights", policy.Statement[0].Action, coded)
}
