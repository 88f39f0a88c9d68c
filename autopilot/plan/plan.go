// SPDX-License-Identifier: Apache-2.0

// Package plan answers what the autopilot would decide if an alarm came now. It runs the real decision on a supposed
// alarm and changes nothing. The command plan and the status page show its result.
package plan

import (
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
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
	// Storage only: how fast the used space grows, by the fast rate of the last hour, what fills the volume, and when a
	// volume of spec.storage.maxGB would be read-only. Absent if not known.
	FillingGBPerHour *float64              `json:"fillingGBPerHour,omitempty"`
	Cause            *v1alpha1.Cause       `json:"cause,omitempty"`
	CapForecast      *v1alpha1.CapForecast `json:"capForecast,omitempty"`

	// Decision names the first guard that prevents a change, or the change.
	Decision Answer `json:"decision"`
	// AtThreshold is the decision if the value were at the threshold. It is set only if Decision lacks such a
	// measurement.
	AtThreshold *Answer     `json:"atThreshold,omitempty"`
	Candidates  []Candidate `json:"candidates,omitempty"` // larger flavors, best first
}

// Answer is a decision.
type Answer struct {
	Action           autopilot.Action `json:"action"`
	From             string           `json:"from,omitempty"` // GB or a flavor's code
	To               string           `json:"to,omitempty"`
	Reason           autopilot.Reason `json:"reason"`
	Message          string           `json:"message"`
	NextCheckSeconds int64            `json:"nextCheckSeconds,omitempty"` // 0 means that an event starts the next check
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
	Notes           []string // sentences for the reader of the plan
}

// Plan answers for every metric as if its alarm, and no other, were in force. It does not modify the situation.
func (s *Situation) Plan() *Plan {
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
		p.Metrics = append(p.Metrics, s.metric(row))
	}
	return p
}

func (s *Situation) metric(row autopilot.MetricRow) Metric {
	e := s.Evidence[row.Metric]
	m := Metric{Metric: row.Metric, ThresholdPercent: s.threshold(row)}
	if e.Present() && s.Instance != nil {
		measured := metav1.NewTime(e.Time)
		m.MeasuredTime = &measured
		percent := e.Percent
		if row.InGB() {
			m.UsedGB = new(tenths(e.UsedGB))
			percent = 100 * e.UsedGB / float64(max(1, s.Instance.VolumeGB))
			m.Cause, m.CapForecast = s.Status.Cause, s.Status.CapForecast
			if e.Filling.Known {
				m.FillingGBPerHour = new(tenths(e.Filling.Fast))
			}
		}
		m.ValuePercent = new(tenths(percent))
	}
	d := s.decide(row.Metric, e)
	m.Decision = answer(d)
	if d.Reason.LacksEvidence() {
		m.AtThreshold = new(answer(s.decide(row.Metric, s.raised(row, e))))
	}
	for _, c := range s.LargerFlavors(row.Metric) {
		m.Candidates = append(m.Candidates, Candidate{c.Code, c.VCPUs, c.MemoryGB, string(c.Refused), c.Zone, c.State})
	}
	return m
}

// decide returns the decision on an alarm with this evidence. A deferred change may add decisions on other metrics.
func (s *Situation) decide(m v1alpha1.Metric, e autopilot.Evidence) autopilot.Decision {
	c := s.Case
	c.Alarms = []autopilot.Alarm{{Metric: m, State: v1alpha1.StateAlarm, StateTime: s.Now, Evidence: e}}
	for _, d := range autopilot.Decide(c).Decisions {
		if d.Metric == m {
			return d
		}
	}
	return autopilot.Decision{
		Metric: m, Action: autopilot.ActionNone, Reason: autopilot.ReasonStaleEvidence,
		Message: "Cloud Eye has no measurement from after the last change yet",
	}
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
	// A change that this very check has seen first counts as completed now, and only later evidence counts after it.
	e.Time = s.Now.Add(time.Millisecond)
	e.Percent = max(e.Percent, float64(threshold))
	if row.InGB() && s.Instance != nil {
		enough := math.Nextafter(float64(threshold*s.Instance.VolumeGB)/100, math.Inf(1))
		e.UsedGB = max(e.UsedGB, enough)
	}
	return e
}

func answer(d autopilot.Decision) Answer {
	return Answer{d.Action, d.From, d.To, d.Reason, d.Message, int64(math.Ceil(d.RequeueAfter.Seconds()))}
}

// tenths rounds a value to one digit in the same way as the messages of decisions.
func tenths(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'f', 1, 64), 64)
	return y
}
