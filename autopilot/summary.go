// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"strings"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// summaryLimit is how long a summary may be, in characters: a column of a table.
const summaryLimit = 80

// Summarize says in a few words what was changed last and what was decided last, for the columns of kubectl get.
func Summarize(s *v1alpha1.Status) {
	s.Summary = v1alpha1.Summary{}
	if len(s.Changes) > 0 {
		s.Summary.LastChange = cut(summarizeChange(s.Changes[0]))
	}
	for _, p := range s.Intents() {
		if p.AskedTime != nil {
			s.Summary.LastChange = cut(shortStep(p.Kind, p.From, p.To) + ", under way")
			break
		}
	}
	if len(s.Decisions) > 0 {
		d := s.Decisions[0]
		s.Summary.LastDecision = cut(fmt.Sprintf("%s (%s)", d.Reason, d.Metric))
	}
}

func summarizeChange(ch v1alpha1.Change) string {
	what := shortStep(ch.Kind, ch.From, ch.To)
	switch {
	case ch.Outcome == v1alpha1.OutcomeRolledBack:
		return what + ", by the cloud"
	case ch.By == v1alpha1.ByOther:
		return what + ", by others"
	case ch.Outcome == v1alpha1.OutcomeLost:
		return what + ", lost"
	}
	return what
}

// shortStep names a change without what every flavor of the engine begins with.
func shortStep(kind v1alpha1.ChangeKind, from, to string) string {
	if kind == v1alpha1.KindVolume {
		return fmt.Sprintf("%s → %s GB", from, to)
	}
	return fmt.Sprintf("%s → %s", shortFlavor(from), shortFlavor(to))
}

// shortFlavor is n1.large.2 of rds.mysql.n1.large.2.
func shortFlavor(code string) string {
	if parts := strings.SplitN(code, ".", 3); len(parts) == 3 && parts[0] == "rds" {
		return parts[2]
	}
	return code
}

func cut(text string) string {
	if letters := []rune(text); len(letters) > summaryLimit {
		return string(letters[:summaryLimit-1]) + "…"
	}
	return text
}
