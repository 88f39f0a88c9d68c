// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"

	"sigs.k8s.io/yaml"
)

func TestActionlintPasses(t *testing.T) {
	run(t, command(t, nil, tool(t, "actionlint")))
}

// workflow is the part of a workflow that the tests check.
type workflow struct {
	Jobs map[string]struct {
		Steps []struct {
			ID, Name, Run string
			Env           map[string]string
		}
	}
}

func readWorkflow(t *testing.T, path string) (w workflow) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, root+"/"+path), &w); err != nil {
		t.Fatal(err)
	}
	return w
}
