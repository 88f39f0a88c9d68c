// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// shownPerRefusal is how many flavors with the same refusal a plan lists. A region has dozens of flavors above a cap.
const shownPerRefusal = 3

// Plan is a database now, without an alarm, for the question what the autopilot would decide if an alarm came.
type Plan struct {
	autopilot.Case
	Namespace, Name string
	Evidence        map[v1alpha1.Metric]autopilot.Evidence
	Read            autopilot.Reader // reads the facts that the walks need and the case lacks
	Notes           []string         // sentences for the reader
}

// Text returns for every metric the decision if its alarm, and no other, were in force. It walks through the same
// guards as the loop. It keeps the facts that it reads on the way, so no walk reads them again.
func (p *Plan) Text(ctx context.Context) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s/%s, mode %s: %s\n", p.Namespace, p.Name, p.Mode, p.instanceText())
	for _, n := range p.Notes {
		fmt.Fprintf(&out, "  %s\n", n)
	}
	for _, row := range autopilot.MetricTable() {
		e := p.Evidence[row.Metric]
		d := p.suppose(ctx, row.Metric, e)
		fmt.Fprintf(&out, "\n%s: ", row.Metric)
		writeDecision(&out, d)
		if d.Reason.LacksEvidence() {
			fmt.Fprintf(&out, "  At %d %%: ", p.threshold(row))
			writeDecision(&out, p.suppose(ctx, row.Metric, p.raised(row, e)))
		}
		if row.HelpedBy == flavor {
			writeCandidates(&out, LargerFlavors(p.Case, row.Metric))
		}
	}
	return out.String()
}

func (p *Plan) instanceText() string {
	i := p.Instance
	if i == nil {
		return "no instance in the cloud"
	}
	return fmt.Sprintf("%s %s %s, %d GB, %s (%d vCPUs, %d GB), %s, in %s", i.Engine, i.Version, i.Mode, i.VolumeGB, i.Flavor,
		i.VCPUs, i.MemoryGB, i.Status, strings.Join(i.Zones, ", "))
}

// suppose returns the decision on an alarm with this evidence. A deferred change may add decisions on other metrics.
func (p *Plan) suppose(ctx context.Context, m v1alpha1.Metric, e autopilot.Evidence) autopilot.Decision {
	p.Alarms = []autopilot.Alarm{{Metric: m, State: v1alpha1.StateAlarm, StateTime: p.Now, Evidence: e}}
	v := Walk(ctx, &p.Case, func(ctx context.Context, c *autopilot.Case, f autopilot.Fact) error {
		switch f {
		case autopilot.FactAlarmState, autopilot.FactUsedSpace, autopilot.FactUsage: // supposed
			return nil
		}
		return p.Read(ctx, c, f)
	})
	p.Alarms = nil
	for _, d := range v.Decisions {
		if d.Metric == m {
			return d
		}
	}
	return autopilot.Decision{
		Metric: m, Action: autopilot.ActionNone, Reason: autopilot.ReasonStaleEvidence,
		Message: "Cloud Eye has no measurement from after the last change yet",
	}
}

func (p *Plan) threshold(row autopilot.MetricRow) int {
	if p.Instance == nil {
		return row.ConfiguredThreshold(p.Spec)
	}
	return row.EffectiveThreshold(p.Spec, p.Instance.VolumeGB)
}

// raised returns the evidence with a value that is at least at the threshold.
func (p *Plan) raised(row autopilot.MetricRow, e autopilot.Evidence) autopilot.Evidence {
	threshold := p.threshold(row)
	// The measurement must be newer than every change, also than one that this check has found completed just now.
	e.Time = p.Now.Add(time.Millisecond)
	e.Percent = max(e.Percent, float64(threshold))
	if row.InGB() && p.Instance != nil {
		enough := math.Nextafter(float64(threshold*p.Instance.VolumeGB)/100, math.Inf(1))
		e.UsedGB = max(e.UsedGB, enough)
	}
	return e
}

func writeDecision(out io.Writer, d autopilot.Decision) {
	action := "nothing"
	if d.Action != autopilot.ActionNone {
		action = fmt.Sprintf("%s %s → %s", d.Action, d.From, d.To)
	}
	fmt.Fprintf(out, "%s (%s). %s\n", action, d.Reason, d.Text())
	if d.Guard != "" {
		fmt.Fprintf(out, "  Not met: %s\n", d.Guard)
	}
}

// writeCandidates writes every available flavor, best first, and the first few of each refusal.
func writeCandidates(out io.Writer, all []flavors.Candidate) {
	if len(all) == 0 {
		fmt.Fprintln(out, "  No larger flavor is known")
	}
	refused := map[flavors.Refusal]int{}
	for _, c := range all {
		text := "available"
		if c.Refused != "" {
			if refused[c.Refused]++; refused[c.Refused] > shownPerRefusal {
				continue
			}
			text = string(c.Refused)
		}
		if c.Zone != "" {
			text += fmt.Sprintf(", %s in %s", zoneStateText(c.State), c.Zone)
		}
		fmt.Fprintf(out, "  %s (%d vCPUs, %d GB): %s\n", c.Code, c.VCPUs, c.MemoryGB, text)
	}
}
