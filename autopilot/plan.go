// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Plan is what would be decided for a database. Its JSON is read by programs: keys are added, never changed.
type Plan struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Time      metav1.Time   `json:"time"`
	Mode      v1alpha1.Mode `json:"mode"` // the policy's or --mode, whichever allows less
	Instance  *PlanInstance `json:"instance,omitempty"`
	Notes     []string      `json:"notes"`
	Metrics   []MetricPlan  `json:"metrics"`
}

// PlanInstance is the database as the cloud has it now.
type PlanInstance struct {
	ID       string   `json:"id"`
	Status   string   `json:"status"`
	Engine   string   `json:"engine"`
	Version  string   `json:"version"`
	Mode     string   `json:"mode"` // single, ha or replica
	Flavor   string   `json:"flavor"`
	VCPUs    int      `json:"vcpus"`
	MemoryGB int      `json:"memoryGB"`
	VolumeGB int      `json:"volumeGB"`
	Zones    []string `json:"zones"`
}

// MetricPlan is the answer to the alarm of one metric, if it came now.
type MetricPlan struct {
	Metric           v1alpha1.Metric `json:"metric"`
	ValuePercent     *float64        `json:"valuePercent,omitempty"` // none where Cloud Eye has none
	UsedGB           *float64        `json:"usedGB,omitempty"`       // storage only
	MeasuredTime     *metav1.Time    `json:"measuredTime,omitempty"`
	ThresholdPercent int             `json:"thresholdPercent"`

	Decision Answer `json:"decision"`
	// AtThreshold is the decision if the value were at the threshold; only where the real one decides nothing.
	AtThreshold *Answer `json:"atThreshold,omitempty"`
	// Guards hold a change back, in the order in which they would be named. Behind one that has no end of its own and
	// that no policy lifts, nothing can be known.
	Guards []Guard `json:"guards"`
	// Afterwards is the decision once no guard holds; none where that cannot be known.
	Afterwards *Answer     `json:"afterwards,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"` // larger flavors, best first
}

// Answer is a decision.
type Answer struct {
	Action            Action `json:"action"`
	From              string `json:"from,omitempty"` // GB or a flavor's code
	To                string `json:"to,omitempty"`
	Reason            Reason `json:"reason"`
	Message           string `json:"message"`
	LooksAgainSeconds int64  `json:"looksAgainSeconds,omitempty"` // 0: an event will tell
}

// Guard is something that holds a change back.
type Guard struct {
	Reason  Reason       `json:"reason"`
	Message string       `json:"message"`
	Ends    *metav1.Time `json:"ends,omitempty"` // by itself; none where something has to happen first
}

// Candidate is a larger flavor, and why it is not to be had.
type Candidate struct {
	Code      string `json:"code"`
	VCPUs     int    `json:"vcpus"`
	MemoryGB  int    `json:"memoryGB"`
	Refused   string `json:"refused,omitempty"`
	Zone      string `json:"zone,omitempty"` // in which it is not to be had
	ZoneState string `json:"zoneState,omitempty"`
}

// Situation is what there is to decide on for a database, without an alarm.
type Situation struct {
	Case
	Namespace, Name string
	Evidence        map[v1alpha1.Metric]Evidence
	Notes           []string // for the person who asks for the plan
}

// Plan answers for every metric as if its alarm, and no other, were in force.
func (s *Situation) Plan() *Plan {
	p := &Plan{
		Namespace: s.Namespace, Name: s.Name, Time: metav1.NewTime(s.Now.Truncate(time.Second)), Mode: s.Mode,
		Notes: append(slices.Clone(s.Notes), "Not considered: flavors that are changing elsewhere in the cluster (--max-flavor-changes)"),
	}
	if i := s.Instance; i != nil {
		p.Instance = &PlanInstance{
			ID: i.ID, Status: i.Status, Engine: i.Engine, Version: i.Version, Mode: i.Mode, Flavor: i.Flavor,
			VCPUs: i.VCPUs, MemoryGB: i.MemoryGB, VolumeGB: i.VolumeGB, Zones: i.Zones,
		}
	}
	for _, m := range MetricTable() {
		p.Metrics = append(p.Metrics, s.metric(m))
	}
	return p
}

func (s *Situation) metric(m MetricRow) MetricPlan {
	w := supposition{Case: s.Case, metric: m, evidence: s.Evidence[m.Metric]}
	p := MetricPlan{Metric: m.Metric, ThresholdPercent: w.threshold(), Guards: []Guard{}}
	if e := w.evidence; e.Present() && s.Instance != nil {
		measured := metav1.NewTime(e.Time)
		p.MeasuredTime = &measured
		percent := e.Percent
		if m.InGB() {
			p.UsedGB = new(tenths(e.UsedGB))
			percent = 100 * e.UsedGB / float64(max(1, s.Instance.VolumeGB))
		}
		p.ValuePercent = new(tenths(percent))
	}
	d := w.decide()
	p.Decision = answered(d)
	if d.Reason.LacksEvidence() {
		at, _ := w.without(d)
		p.AtThreshold = new(answered(at.decide()))
	}
	for range 20 { // there are fewer guards than that
		if d.Action != ActionNone {
			if len(p.Guards) > 0 {
				p.Afterwards = new(answered(d))
			}
			break
		}
		if !d.Reason.LacksEvidence() {
			p.Guards = append(p.Guards, w.guard(d))
		}
		var known bool
		if w, known = w.without(d); !known {
			break
		}
		d = w.decide()
	}
	for _, c := range (supposition{Case: s.Case, metric: m}).unhindered().ladder() {
		p.Candidates = append(p.Candidates, Candidate{c.Code, c.VCPUs, c.MemoryGB, string(c.Refused), c.Zone, c.State})
	}
	return p
}

func answered(d Decision) Answer {
	return Answer{d.Action, d.From, d.To, d.Reason, d.Message, int64(math.Ceil(d.Again.Seconds()))}
}

func (s supposition) guard(d Decision) Guard {
	g := Guard{Reason: d.Reason, Message: d.Message}
	if d.Again > 0 && s.endsByItself(d.Reason) {
		ends := metav1.NewTime(s.Now.Add(d.Again).Round(time.Second))
		g.Ends = &ends
	}
	return g
}

func tenths(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', 1, 64), 64) // as decisions write it
	return y
}
