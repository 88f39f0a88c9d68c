// SPDX-License-Identifier: Apache-2.0

package plan

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

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Text returns the plan for people: a table, and the details of each metric below it.
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
	rows := [][]string{{"IF THE ALARM CAME", "VALUE NOW", "ALARM AT", "DECISION NOW", "REASON", "NEXT CHECK"}}
	for _, m := range p.Metrics {
		rows = append(rows, []string{
			string(m.Metric), valueText(m), fmt.Sprintf("%d %%", m.ThresholdPercent), actionText(m.Decision),
			string(m.Decision.Reason), nextCheckText(m.Decision),
		})
	}
	if err := columns(&out, "", rows); err != nil {
		return nil, err
	}
	for _, m := range p.Metrics {
		if err := writeDetails(&out, m); err != nil {
			return nil, err
		}
		if m.Metric != v1alpha1.MetricStorage {
			continue
		}
		for _, r := range p.Replicas {
			fmt.Fprintf(&out, "  Read replica %s (%s): %s\n", r.Name, r.ID, r.Message)
		}
	}
	return out.Bytes(), nil
}

func writeDetails(out io.Writer, m Metric) error {
	fmt.Fprintf(out, "\n%s: %s\n", m.Metric, m.Decision.Message)
	if m.Decision.Guard != "" {
		fmt.Fprintf(out, "  Not met: %s\n", m.Decision.Guard)
	}
	if a := m.AtThreshold; a != nil {
		fmt.Fprintf(out, "  At %d %%: %s\n", m.ThresholdPercent, answerText(*a))
		if a.Guard != "" {
			fmt.Fprintf(out, "  Not met: %s\n", a.Guard)
		}
	}
	if row, err := autopilot.LookupMetric(m.Metric); err != nil || row.HelpedBy != v1alpha1.KindFlavor {
		return err
	}
	if len(m.Candidates) == 0 {
		fmt.Fprintln(out, "  No larger flavor is known")
		return nil
	}
	return writeCandidates(out, m.Candidates)
}

// shownPerRefusal is how many of the flavors with the same refusal are listed. A region has dozens of flavors above a
// cap.
const shownPerRefusal = 3

// writeCandidates lists every available flavor, best first, and the first few of the refused ones.
func writeCandidates(out io.Writer, all []Candidate) error {
	rows := [][]string{{"CANDIDATE", "VCPUS", "GB", "REFUSED"}}
	refused := map[string]int{}
	for _, c := range all {
		if refused[c.Refused]++; c.Refused == "" || refused[c.Refused] <= shownPerRefusal {
			rows = append(rows, []string{c.Code, strconv.Itoa(c.VCPUs), strconv.Itoa(c.MemoryGB), refusalText(c)})
		}
	}
	if err := columns(out, "  ", rows); err != nil {
		return err
	}
	delete(refused, "")
	for _, refusal := range slices.Sorted(maps.Keys(refused)) {
		if more := refused[refusal] - shownPerRefusal; more > 0 {
			fmt.Fprintf(out, "  and %d more: %s\n", more, refusal)
		}
	}
	return nil
}

// stepText returns what happens to a read replica when the volume of its primary grows to that many GB. obstacle says
// why the replica does not grow; it is empty if nothing else is to be said.
func stepText(step autopilot.ReplicaStep, volumeGB int, to, obstacle string) string {
	switch step {
	case autopilot.ReplicaGrowsFirst:
		return fmt.Sprintf("%d → %s GB before the primary", volumeGB, to)
	case autopilot.ReplicaGrowsAfter:
		return fmt.Sprintf("%d → %s GB after the primary, which cannot wait", volumeGB, to)
	case autopilot.ReplicaStaysSmaller:
		why := ""
		if obstacle != "" {
			why = ", because " + obstacle
		}
		const reports = "%s reports a replica that is smaller than its primary"
		return fmt.Sprintf("stays at %d GB%s. "+reports, volumeGB, why, autopilot.ReasonReplicaSmaller)
	case autopilot.ReplicaSizeUnknown:
		return "the cloud reports no size, so the autopilot does not grow it"
	}
	return fmt.Sprintf("stays at %d GB", volumeGB)
}

func valueText(m Metric) string {
	switch {
	case m.ValuePercent == nil:
		return "no data"
	case m.UsedGB != nil:
		return fmt.Sprintf("%.1f %% (%.1f GB)", *m.ValuePercent, *m.UsedGB)
	}
	return fmt.Sprintf("%.1f %%", *m.ValuePercent)
}

func actionText(a Answer) string {
	if a.Action == autopilot.ActionNone {
		return "nothing"
	}
	return fmt.Sprintf("%s %s → %s", a.Action, a.From, a.To)
}

func nextCheckText(a Answer) string {
	if a.NextCheckSeconds == 0 {
		return "on an event"
	}
	return fromNow(time.Duration(a.NextCheckSeconds) * time.Second)
}

func answerText(a Answer) string {
	if a.Action == autopilot.ActionNone {
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

// fromNow returns a duration from now in at most two units.
func fromNow(d time.Duration) string {
	const day = 24 * time.Hour
	d = d.Round(time.Second)
	switch {
	case d >= day:
		return fmt.Sprintf("in %dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("in %dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("in %dm", d/time.Minute)
	}
	return "in " + d.String()
}

// columns writes rows as aligned columns.
func columns(out io.Writer, indent string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(w, indent+strings.Join(r, "\t"))
	}
	return w.Flush()
}
