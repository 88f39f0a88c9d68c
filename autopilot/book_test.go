// SPDX-License-Identifier: Apache-2.0

package autopilot_test

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/test/cases"
)

// Without an instance, the engine whose catalogue would answer is not known either.
func TestNothingIsContestedWithoutAnInstance(t *testing.T) {
	c := cases.Quiet()
	cases.Changed(2*time.Hour, "94.0")(&c)
	c.Wanted.Flavor, c.Catalogue = "rds.mysql.n1.large.2", nil
	if !c.NeedsCatalogue() {
		t.Fatal("with an instance, the catalogue says whether the other flavor is smaller")
	}
	c.Instance = nil
	if _, _, ok := c.Contest(); ok || c.NeedsCatalogue() {
		t.Errorf("contested %t, needs the catalogue %t", ok, c.NeedsCatalogue())
	}
}
