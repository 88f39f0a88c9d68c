// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// computed returns the boards, which take some seconds and which all tests share.
var computed = sync.OnceValues(func() (board, error) { return compute(func(string, string) {}) })

func scores(t *testing.T) board {
	t.Helper()
	b, err := computed()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheScoreboardIsCurrent(t *testing.T) {
	files, err := scores(t).render()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		committed, err := os.ReadFile("../../" + f.name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f.text, string(committed)); diff != "" {
			t.Errorf("%s is stale: run make score (-computed +committed):\n%s", f.name, diff)
		}
	}
}

func TestExceptionsAreTheLoadsAtWhichAnotherRuleDominates(t *testing.T) {
	b, listed := scores(t), map[string][]string{}
	for _, e := range exceptions() {
		listed[e.Load] = e.Rules
	}
	if diff := cmp.Diff(listed, b.dominated()); diff != "" {
		t.Errorf("Improve the rule, or change exceptions (-exceptions +dominated):\n%s", diff)
	}
}
