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
