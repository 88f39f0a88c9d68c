// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// TestEveryReasonHasItsPage looks for the section of each reason, with its meaning.
func TestEveryReasonHasItsPage(t *testing.T) {
	page := document(t, "docs/runbooks/reasons.md")
	sections := 0
	for _, row := range autopilot.ReasonTable() {
		_, section, found := strings.Cut(page, "\n## "+string(row.Reason)+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if text := strings.Join(strings.Fields(section), " "); !found || !strings.HasPrefix(text, row.Meaning+". - Look: ") || !strings.Contains(text, " - Do: ") {
			t.Errorf("docs/runbooks/reasons.md: the section %s says %q, want its meaning, where to look and what to do", row.Reason, text)
		}
		sections++
	}
	if got := strings.Count(page, "\n## "); got != sections {
		t.Errorf("%d sections for %d reasons", got, sections)
	}
}
