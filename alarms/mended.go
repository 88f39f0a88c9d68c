package alarms

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// tell adds a sentence to what was mended.
func (e *ensuring) tell(format string, args ...any) {
	e.mended = append(e.mended, fmt.Sprintf(format, args...))
}

// tellOf tells what was found and what was done about it, if anything was found.
func (e *ensuring) tellOf(found, done string) {
	if found != "" {
		e.tell("%s: %s", found, done)
	}
}

// tellRemoved tells of n rules that were removed, beside those that belong there.
func (e *ensuring) tellRemoved(metric string, n, belong int) {
	switch {
	case n == 0:
	case n > 1:
		e.tell("%d more %s rules: removed", n, metric)
	case belong == 0:
		e.tell("a %s rule that is not wanted: removed", metric)
	default:
		e.tell("a second %s rule: removed", metric)
	}
}

// tellNumbers tells what somebody has changed on a rule. The threshold is held against the recorded one; what is not
// recorded and follows the policy is told only while the threshold stays; the rest is the same under every policy.
func (e *ensuring) tellNumbers(found, want otc.Rule, known HaveRule) {
	rule := "the " + known.Metric + " rule"
	recorded := float64(known.ThresholdPercent)
	if found.Threshold != want.Threshold && found.Threshold != recorded {
		again := ""
		if want.Threshold == recorded {
			again = " again"
		}
		e.tell("%s's threshold was %s %%: set to %s %%%s", rule, plainNumber(found.Threshold), plainNumber(want.Threshold), again)
	}
	if want.Threshold == recorded && !e.want.Renewed {
		for _, n := range []struct {
			what        string
			found, want int
		}{{"period", found.Period, want.Period}, {"repeat", found.Repeat, want.Repeat}} {
			if n.found != n.want {
				e.tell("%s's %s was %d s: brought in line with %d s", rule, n.what, n.found, n.want)
			}
		}
		if found.Count != want.Count {
			e.tell("%s's count was %d: brought in line with %d", rule, found.Count, want.Count)
		}
	}
	if found.Comparison != want.Comparison {
		e.tell("%s's comparison was %q: set to %q again", rule, found.Comparison, want.Comparison)
	}
	if found.Filter != want.Filter {
		e.tell("%s's filter was %q: set to %q again", rule, found.Filter, want.Filter)
	}
	if found.Name != want.Name {
		e.tell("%s was named %q: named again", rule, found.Name)
	}
	if found.Description != want.Description {
		e.tell("%s's description was changed: written again", rule)
	}
	if found.ActionEnabled != want.ActionEnabled || !slices.Equal(found.AlarmActions, want.AlarmActions) || !slices.Equal(found.OKActions, want.OKActions) {
		e.tell("%s did not notify our topic: does again", rule)
	}
}

func plainNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
