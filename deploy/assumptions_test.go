package deploy_test

import (
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/internal/doctor"
)

func TestCloudFactsListTheAssumptions(t *testing.T) {
	var documented, coded []string
	for _, row := range tables(t, "docs/cloud-facts.md", "Assumptions")[0] {
		documented = append(documented, strings.Join(row, " | "))
	}
	for _, a := range doctor.Assumptions() {
		coded = append(coded, strings.Join([]string{"`" + a.ID + "`", a.Assumed, a.Why, a.IfWrong}, " | "))
	}
	compare(t, "assumptions", documented, coded)
}

func TestDoctorsPageListsTheChecks(t *testing.T) {
	var documented, coded []string
	for _, row := range tables(t, "docs/doctor.md", "Checks")[0] {
		documented = append(documented, strings.Join(row, " | "))
	}
	for _, c := range doctor.Checks() {
		coded = append(coded, "`"+c.ID+"` | "+c.Asks)
	}
	compare(t, "checks", documented, coded)
}
