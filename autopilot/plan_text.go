// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Text is the plan for people, as a table and details below it.
func (p *Plan) Text() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s/%s, mode %s: ", p.Namespace, p.Name, p.Mode)
	if i := p.Instance; i != nil {
		fmt.Fprintf(&out, "%s %s %s, %d GB, %s (%d vCPUs, %d GB), %s, in %s\n", i.Engine, i.Version, i.Mode, i.VolumeGB,
			i.Flavor, i.VCPUs, i.MemoryGB, i.Status, strings.Join(i.Zones, ", "))
	} else {
		fmt.Fprintln(&out, "no instance in the cloud")
	}
	for _, n := range p.Notes {
		fmt.Fprintf(&out, "  %s\n", n)
	}
	fmt.Fprintln(&out)
	rows := [][]string{{"IF THE ALARM CAME", "VALUE NOW", "ALARM AT", "ANSWER NOW", "REASON", "LOOKS AGAIN"}}
	for _, m := range p.Metrics {
		rows = append(rows, []string{
			string(m.Metric), valueNow(m), fmt.Sprintf("%d %%", m.ThresholdPercent), actionText(m.Decision), string(m.Decision.Reason), nextLook(m.Decision),
		})
	}
	if err := columns(&out, "", rows); err != nil {
		return nil, err
	}
	for _, m := range p.Metrics {
		if err := writeDetails(&out, m, p.Time.Time); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func writeDetails(out io.Writer, m MetricPlan, now time.Time) error {
	fmt.Fprintf(out, "\n%s: %s\n", m.Metric, m.Decision.Message)
	if a := m.AtThreshold; a != nil {
		fmt.Fprintf(out, "  At %d %%: %s\n", m.ThresholdPercent, answerText(*a))
	}
	if len(m.Guards) > 0 && !onlyRepeats(m) {
		rows := [][]string{}
		for _, g := range m.Guards {
			ends := "until something changes"
			if g.Ends != nil {
				ends = fmt.Sprintf("until %s (%s)", g.Ends.UTC().Format(time.RFC3339), fromNow(g.Ends.Sub(now)))
			}
			rows = append(rows, []string{string(g.Reason), ends, g.Message})
		}
		fmt.Fprintln(out, "  Held back by")
		if err := columns(out, "    ", rows); err != nil {
			return err
		}
	}
	if a := m.Afterwards; a != nil {
		fmt.Fprintf(out, "  After that: %s\n", answerText(*a))
	}
	if row, err := LookupMetric(m.Metric); err != nil || row.HelpedBy != v1alpha1.KindFlavor {
		return err
	}
	if len(m.Candidates) == 0 {
		fmt.Fprintln(out, "  No larger flavor is known")
		return nil
	}
	return writeCandidates(out, m.Candidates)
}

// shownOf is how many of the candidates that are refused for the same reason are named.
const shownOf = 3

// writeCandidates names every flavor that could be had, best first, and the first few of those that are refused.
func writeCandidates(out io.Writer, all []Candidate) error {
	rows := [][]string{{"CANDIDATE", "VCPUS", "GB", "REFUSED"}}
	refused := map[string]int{}
	for _, c := range all {
		if refused[c.Refused]++; c.Refused == "" || refused[c.Refused] <= shownOf {
			rows = append(rows, []string{c.Code, strconv.Itoa(c.VCPUs), strconv.Itoa(c.MemoryGB), refusalText(c)})
		}
	}
	if err := columns(out, "  ", rows); err != nil {
		return err
	}
	delete(refused, "")
	for _, why := range slices.Sorted(maps.Keys(refused)) {
		if more := refused[why] - shownOf; more > 0 {
			fmt.Fprintf(out, "  and %d more: %s\n", more, why)
		}
	}
	return nil
}

// onlyRepeats reports whether the only guard is the decision itself, and has no end.
func onlyRepeats(m MetricPlan) bool {
	return len(m.Guards) == 1 && m.Guards[0].Message == m.Decision.Message && m.Guards[0].Ends == nil
}

// valueNow is what is measured now.
func valueNow(m MetricPlan) string {
	switch {
	case m.ValuePercent == nil:
		return "no data"
	case m.UsedGB != nil:
		return fmt.Sprintf("%.1f %% (%.1f GB)", *m.ValuePercent, *m.UsedGB)
	}
	return fmt.Sprintf("%.1f %%", *m.ValuePercent)
}

// actionText is what is done.
func actionText(a Answer) string {
	if a.Action == ActionNone {
		return "nothing"
	}
	return fmt.Sprintf("%s %s → %s", a.Action, a.From, a.To)
}

func nextLook(a Answer) string {
	if a.LooksAgainSeconds == 0 {
		return "at an event"
	}
	return fromNow(time.Duration(a.LooksAgainSeconds) * time.Second)
}

func answerText(a Answer) string {
	if a.Action == ActionNone {
		return fmt.Sprintf("nothing (%s). %s", a.Reason, a.Message)
	}
	return fmt.Sprintf("%s (%s)", a.Message, a.Reason)
}

func refusalText(c Candidate) string {
	switch {
	case c.Refused == "":
		return "no"
	case c.Zone == "":
		return c.Refused
	case c.ZoneState == "":
		return fmt.Sprintf("%s: not known in %s", c.Refused, c.Zone)
	}
	return fmt.Sprintf("%s: %s in %s", c.Refused, c.ZoneState, c.Zone)
}

// fromNow is a time from now as people say it.
func fromNow(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = d.Round(time.Second); {
	case d >= day:
		return fmt.Sprintf("in %dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("in %dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	switch {
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("in %dm", d/time.Minute)
	}
	return "in " + d.String()
}

// columns writes rows under each other, as narrow as they can be.
func columns(out io.Writer, indent string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(w, indent+strings.Join(r, "\t"))
	}
	return w.Flush()
}
