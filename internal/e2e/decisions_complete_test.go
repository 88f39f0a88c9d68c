// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// The rows here are those of package autopilot: none is left out.
func TestEveryRowOfTheDecisionIsStaged(t *testing.T) {
	staged := map[string]bool{}
	for _, r := range slices.Concat(manyRows(), limitRows(), silentRows(), oldSchemaRows()) {
		if staged[r.name] {
			t.Errorf("twice: %s", r.name)
		}
		staged[r.name] = true
	}
	for file, test := range map[string]string{"decide_test.go": "TestDecide", "failure_test.go": "TestSomebodyElsesSizeThatDoesNotCome"} {
		names := rowNames(t, "../../autopilot/"+file, test)
		if len(names) == 0 {
			t.Errorf("%s has no rows", test)
		}
		for _, name := range names {
			if !staged[name] {
				t.Errorf("%s: not staged: %s", test, name)
			}
		}
	}
}

// rowNames are the first fields of a test's rows.
func rowNames(t *testing.T, file, test string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := parsed.Scope.Lookup(test).Decl.(*ast.FuncDecl) //nolint:staticcheck // one file, one name
	ast.Inspect(f, func(n ast.Node) bool {
		if row, ok := n.(*ast.CompositeLit); ok && row.Type == nil && len(row.Elts) > 1 {
			if first, ok := row.Elts[0].(*ast.BasicLit); ok && first.Kind == token.STRING {
				name, _ := strconv.Unquote(first.Value) // it was parsed
				names = append(names, name)
				return false
			}
		}
		return true
	})
	return names
}
