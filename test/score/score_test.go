// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// computed returns the boards, which take some seconds and which all tests share.
var computed = sync.OnceValues(func() (boards, error) { return compute(func(string, string) {}) })

func scores(t *testing.T) boards {
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
	dominated := b.Storage.dominated()
	maps.Copy(dominated, b.Flavors.dominated())
	if diff := cmp.Diff(listed, dominated); diff != "" {
		t.Errorf("Improve the rule, or change exceptions (-exceptions +dominated):\n%s", diff)
	}
}
