// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"strings"

	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Summarize sets the texts for the columns of kubectl get: volume, cap, used part, last change and last decision.
func Summarize(s *v1alpha1.Status) {
	s.Summary = v1alpha1.Summary{}
	if s.Instance != nil && s.Instance.VolumeGB > 0 {
		s.Summary.Volume = fmt.Sprintf("%d GB", s.Instance.VolumeGB)
		if used, ok := s.Used.Value(); ok {
			s.Summary.Used = fmt.Sprintf("%.0f %%", 100*used/float64(s.Instance.VolumeGB))
		}
	}
	if s.MaxGB > 0 {
		s.Summary.Max = fmt.Sprintf("%d GB", s.MaxGB)
	}
	for _, ch := range s.Changes {
		if change.IsRequestOfOther(ch) || ch.State == v1alpha1.StateRefused || ch.State == v1alpha1.StateWithdrawn {
			continue
		}
		s.Summary.LastChange = summarizeChange(ch)
		break
	}
	if len(s.Decisions) > 0 {
		d := s.Decisions[0]
		s.Summary.LastDecision = fmt.Sprintf("%s (%s)", d.Reason, d.Metric)
	}
}

func summarizeChange(ch v1alpha1.Change) string {
	what := fmt.Sprintf("%s → %s GB", ch.From, ch.To)
	if ch.Kind == v1alpha1.KindFlavor {
		what = fmt.Sprintf("%s → %s", shortFlavor(ch.From), shortFlavor(ch.To))
	}
	switch {
	case change.IsPending(ch):
		return what + ", in progress"
	case !change.IsOurs(ch):
		return what + ", by others"
	case ch.State != v1alpha1.StateCompleted:
		return what + ", " + strings.ToLower(string(ch.State))
	}
	return what
}

// shortFlavor returns a flavor without the common prefix of its engine: n1.large.2 for rds.mysql.n1.large.2.
func shortFlavor(code string) string {
	if parts := strings.SplitN(code, ".", 3); len(parts) == 3 && parts[0] == "rds" {
		return parts[2]
	}
	return code
}
