// SPDX-License-Identifier: Apache-2.0

// Package plan answers what the autopilot would decide if an alarm came now. It runs the real decision on a supposed
// alarm and changes nothing. The command plan shows its result.
package plan

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Plan is the answer for one database. Programs read its JSON: keys may be added, and never change.
type Plan struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Time      metav1.Time   `json:"time"`
	Mode      v1alpha1.Mode `json:"mode"` // the stricter of the policy's and --mode
	Instance  *Instance     `json:"instance,omitempty"`
	Notes     []string      `json:"notes"`
	Metrics   []Metric      `json:"metrics"`
	// Replicas holds what happens to each read replica when the volume grows, now or at the alarm.
	Replicas []Replica `json:"replicas,omitempty"`
}

// Instance is the database as the cloud reports it now.
type Instance struct {
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

// Metric is the answer to the alarm of one metric, if it came now.
type Metric struct {
	Metric           v1alpha1.Metric `json:"metric"`
	ValuePercent     *float64        `json:"valuePercent,omitempty"` // absent if Cloud Eye has no measurement
	UsedGB           *float64        `json:"usedGB,omitempty"`       // storage only
	MeasuredTime     *metav1.Time    `json:"measuredTime,omitempty"`
	ThresholdPercent int             `json:"thresholdPercent"`
	// Storage only: what fills the volume, and when the largest volume that the policy allows would be read-only. Absent
	// if not known.
	Cause       *v1alpha1.Cause       `json:"cause,omitempty"`
	CapForecast *v1alpha1.CapForecast `json:"capForecast,omitempty"`
	// Decision names the first guard that prevents a change, or the change.
	Decision Answer `json:"decision"`
	// AtThreshold is the decision if the value were at the threshold. It is set only if Decision lacks such a
	// measurement.
	AtThreshold *Answer     `json:"atThreshold,omitempty"`
	Candidates  []Candidate `json:"candidates,omitempty"` // larger flavors, best first
	// Findings say why a larger flavor may not help.
	Findings []v1alpha1.Finding `json:"findings,omitempty"`
}

// Replica is a read replica and what happens to it when its primary grows.
type Replica struct {
	ID       string                `json:"id"`
	Name     string                `json:"name"`
	VolumeGB int                   `json:"volumeGB"` // 0 if it is not known
	Step     autopilot.ReplicaStep `json:"step"`
	Message  string                `json:"message"`
}

// Answer is a decision.
type Answer struct {
	Action           autopilot.Action `json:"action"`
	From             string           `json:"from,omitempty"` // GB or a flavor's code
	To               string           `json:"to,omitempty"`
	Reason           autopilot.Reason `json:"reason"`
	Message          string           `json:"message"`
	NextCheckSeconds int64            `json:"nextCheckSeconds,omitempty"` // 0 means that an event starts the next check
	Guard            string           `json:"guard,omitempty"`            // the condition that prevents the action
}

// Candidate is a larger flavor. Refused gives the reason why it is not available; it is empty for an available flavor.
type Candidate struct {
	Code      string `json:"code"`
	VCPUs     int    `json:"vcpus"`
	MemoryGB  int    `json:"memoryGB"`
	Refused   string `json:"refused,omitempty"`
	Zone      string `json:"zone,omitempty"` // the zone in which it is not available
	ZoneState string `json:"zoneState,omitempty"`
}

// Situation holds the state of a database on which the plan is made, without an alarm.
type Situation struct {
	autopilot.Case
	Namespace, Name string
	Evidence        map[v1alpha1.Metric]autopilot.Evidence
	// Insight explains the present situation; its parts are nil if they are not known.
	Insight v1alpha1.Insight
	// Read reads the facts that the walks need and the case lacks.
	Read  func(ctx context.Context, c *autopilot.Case, facts []autopilot.Fact)
	Notes []string // sentences for the reader of the plan
}

// Plan answers for every metric as if its alarm, and no other, were in force. It walks through the same guards as the
// loop, and keeps the facts that it has read on the way.
func (s *Situation) Plan(ctx context.Context) *Plan {
	p := &Plan{
		Namespace: s.Namespace, Name: s.Name, Time: metav1.NewTime(s.Now.Truncate(time.Second)), Mode: s.Mode,
		Notes: append(slices.Clone(s.Notes), "The plan ignores flavor changes of other databases in the cluster (--max-flavor-changes)"),
	}
	if i := s.Instance; i != nil {
		p.Instance = &Instance{
			ID: i.ID, Status: i.Status, Engine: i.Engine, Version: i.Version, Mode: i.Mode, Flavor: i.Flavor,
			VCPUs: i.VCPUs, MemoryGB: i.MemoryGB, VolumeGB: i.VolumeGB, Zones: i.Zones,
		}
	}
	for _, row := range autopilot.MetricTable() {
		p.Metrics = append(p.Metrics, s.metric(ctx, row))
	}
	p.Replicas = s.replicas(ctx)
	return p
}

func (s *Situation) metric(ctx context.Context, row autopilot.MetricRow) Metric {
	e := s.Evidence[row.Metric]
	m := Metric{Metric: row.Metric, ThresholdPercent: s.threshold(row)}
	if e.Present() && s.Instance != nil {
		measured := metav1.NewTime(e.Time)
		m.MeasuredTime = &measured
		percent := e.Percent
		if row.InGB() {
			m.UsedGB = new(tenths(e.UsedGB))
			percent = 100 * e.UsedGB / float64(max(1, s.Instance.VolumeGB))
			m.Cause, m.CapForecast = s.Insight.Cause, s.Insight.Cap
		}
		m.ValuePercent = new(tenths(percent))
	}
	d, _ := s.decide(ctx, row.Metric, e)
	m.Decision = answer(d)
	if d.Reason.LacksEvidence() {
		d, _ = s.decide(ctx, row.Metric, s.raised(row, e))
		m.AtThreshold = new(answer(d))
	}
	if f := s.Insight.Flavor; f != nil {
		for _, found := range f.Findings {
			if found.Metric == row.Metric {
				m.Findings = append(m.Findings, found)
			}
		}
	}
	for _, c := range decide.LargerFlavors(s.Case, row.Metric) {
		m.Candidates = append(m.Candidates, Candidate{c.Code, c.VCPUs, c.MemoryGB, string(c.Refused), c.Zone, c.State})
	}
	return m
}

// replicas returns what happens to the read replicas when the volume grows: now or, if it would not grow now, at its
// threshold.
func (s *Situation) replicas(ctx context.Context) (replicas []Replica) {
	if s.Instance == nil || len(s.Instance.Replicas) == 0 {
		return nil
	}
	row, err := autopilot.LookupMetric(v1alpha1.MetricStorage)
	if err != nil {
		return nil
	}
	e := s.Evidence[row.Metric]
	d, v := s.decide(ctx, row.Metric, e)
	if d.Reason.LacksEvidence() {
		e = s.raised(row, e)
		d, v = s.decide(ctx, row.Metric, e)
	}
	c := s.Case
	c.Alarms = s.supposed(row.Metric, e)
	intent := v.Intent
	if intent == nil { // the autopilot requests nothing, of its replicas neither
		intent = &v1alpha1.Intent{Kind: v1alpha1.KindVolume, To: cmp.Or(d.To, strconv.Itoa(s.Instance.VolumeGB))}
		c.Spec.Apply = v1alpha1.ApplyOperator
	}
	steps := c.ReplicaSteps(*intent)
	for _, r := range s.Instance.Replicas {
		step, obstacle := steps[r.ID], ""
		if c.Spec.Apply == v1alpha1.ApplyCloud {
			obstacle = r.Obstacle(autopilot.Gigabytes(intent.To))
		}
		replicas = append(replicas, Replica{r.ID, r.Name, r.VolumeGB, step, stepText(step, r.VolumeGB, intent.To, obstacle)})
	}
	slices.SortFunc(replicas, func(a, b Replica) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return replicas
}

// supposed returns an alarm with this evidence that is in force now.
func (s *Situation) supposed(m v1alpha1.Metric, e autopilot.Evidence) []autopilot.Alarm {
	return []autopilot.Alarm{{Metric: m, State: v1alpha1.StateAlarm, StateTime: s.Now, Evidence: e}}
}

// decide returns the decision on an alarm with this evidence, and the verdict that it is part of. A deferred change may
// add decisions on other metrics. Facts that the walk reads stay in the situation, so that no walk reads them again.
func (s *Situation) decide(ctx context.Context, m v1alpha1.Metric, e autopilot.Evidence,
) (autopilot.Decision, autopilot.Verdict) {
	c := s.Case
	c.Alarms = s.supposed(m, e)
	for _, f := range []autopilot.Fact{autopilot.FactAlarmState, autopilot.FactUsedSpace, autopilot.FactUsage} {
		c.SetFact(f, nil)
	}
	v := decide.Walk(ctx, &c, s.Read)
	c.Alarms = nil
	s.Case = c
	for _, d := range v.Decisions {
		if d.Metric == m {
			return d, v
		}
	}
	return autopilot.Decision{
		Metric: m, Action: autopilot.ActionNone, Reason: autopilot.ReasonStaleEvidence,
		Message: "Cloud Eye has no measurement from after the last change yet",
	}, v
}

// threshold returns the percentage at which the alarm is raised.
func (s *Situation) threshold(row autopilot.MetricRow) int {
	if s.Instance == nil {
		return row.ConfiguredThreshold(s.Spec)
	}
	return row.EffectiveThreshold(s.Spec, s.Instance.VolumeGB)
}

// raised returns the evidence with a value that is at least at the threshold.
func (s *Situation) raised(row autopilot.MetricRow, e autopilot.Evidence) autopilot.Evidence {
	threshold := s.threshold(row)
	// The measurement must be newer than every change, also than one that this check has found completed just now.
	e.Time = s.Now.Add(time.Millisecond)
	e.Percent = max(e.Percent, float64(threshold))
	if row.InGB() && s.Instance != nil {
		enough := math.Nextafter(float64(threshold*s.Instance.VolumeGB)/100, math.Inf(1))
		e.UsedGB = max(e.UsedGB, enough)
	}
	return e
}

func answer(d autopilot.Decision) Answer {
	return Answer{d.Action, d.From, d.To, d.Reason, d.Text(), int64(math.Ceil(d.RequeueAfter.Seconds())), d.Guard}
}

// tenths rounds a value to one digit in the same way as the messages of decisions.
func tenths(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', 1, 64), 64)
	return y
}
