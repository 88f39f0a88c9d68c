// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

const (
	sweepMinutes   = 5 // the default of --sweep-interval
	recheckSeconds = 30
)

// service is the product: it follows up, decides and records as the leader does, with the default policy. Only
// Kubernetes and the cloud are replaced. The Rds is patched at once, and the cloud begins at once.
type service struct {
	spec   v1alpha1.Spec
	status v1alpha1.Status
	wanted autopilot.Wanted
	sizeGB int                  // the volume for which rule is
	rule   v1alpha1.DesiredRule // as the service writes it to Cloud Eye
	state  v1alpha1.State       // of that rule
	since  time.Time            // of that state
	due    time.Time            // the next check that the last one requested
}

func newService() *service {
	s := &service{spec: autopilot.DefaultSpec(), state: v1alpha1.StateOK}
	s.spec.Storage.MaxGB = largestGB
	return s
}

// at returns the time of a minute.
func at(minute int) time.Time { return cases.Noon().Add(time.Duration(minute) * time.Minute) }

// isOver reports whether as many values as the rule needs are at or over its threshold.
func (s *service) isOver(v *volume) bool {
	if s.sizeGB != v.sizeGB {
		s.sizeGB, s.rule = v.sizeGB, autopilot.Row(v1alpha1.MetricStorage).Rule(s.spec, v.sizeGB)
	}
	for m := len(v.used) - s.rule.Count; m < len(v.used); m++ {
		if 100*v.used[m]/float64(v.sizes[m])+1e-9 < float64(s.rule.ThresholdPercent) { // fractions may be a little too small
			return false
		}
	}
	return true
}

// next is the product as a rule for a volume.
func (s *service) next(v *volume) int {
	s.wanted.VolumeGB = max(s.wanted.VolumeGB, v.sizeGB)
	newest := len(v.used) - 1
	e := autopilot.Evidence{Time: at(newest), UsedGB: v.last(), Percent: 100 * v.last() / float64(v.sizes[newest])}
	s.check(v.minute, autopilot.Instance{Status: autopilot.StatusActive, VolumeGB: v.sizeGB}, e, s.isOver(v))
	return s.wanted.VolumeGB
}

// check makes one check of the database if there is a reason: a new alarm, a sweep, or the last check requested it.
func (s *service) check(minute int, inst autopilot.Instance, e autopilot.Evidence, isOver bool) {
	now, state := at(minute), v1alpha1.StateOK
	if isOver {
		state = v1alpha1.StateAlarm
	}
	isSweep, isNews := minute%sweepMinutes == 0, state != s.state && isOver
	if state != s.state {
		s.state, s.since = state, now
	}
	if !isSweep && !isNews && (s.due.IsZero() || now.Before(s.due)) {
		return
	}
	inst.ID, inst.Engine, inst.Version, inst.Mode, inst.Zones = "id", "MySQL", "8.0", "single", []string{"eu-de-01"}
	if s.status.Instance == nil { // the database is older than the replay
		s.status.Instance = inst.Observed(nil, now.Add(-time.Hour))
	}
	c := autopilot.Case{
		Now: now, Mode: v1alpha1.ModeAuto, Spec: s.spec, Generation: 1, Recheck: recheckSeconds * time.Second, Wanted: s.wanted,
		IsSweep: isSweep, Instance: &inst, Claim: v1alpha1.Claim{Holds: true}, Status: s.status,
	}
	f := record.FollowUp(c)
	c.Status = f.Status
	a := autopilot.Alarm{Metric: v1alpha1.MetricStorage}
	c.Alarms = []autopilot.Alarm{a}
	v := decide.Walk(context.Background(), &c, func(_ context.Context, c *autopilot.Case, f autopilot.Fact) error {
		s.read(c, f, e)
		return nil
	})
	if i := v.Change; i != nil {
		s.wanted.VolumeGB = autopilot.Gigabytes(i.To)
	}
	done := record.Outcome(c, v)
	s.status, s.due = done.Status, time.Time{}
	if done.RequeueAfter > 0 {
		s.due = now.Add(done.RequeueAfter)
	}
}

// read enters a fact.
func (s *service) read(c *autopilot.Case, f autopilot.Fact, e autopilot.Evidence) {
	switch f {
	case autopilot.FactAlarmState:
		c.Alarms = []autopilot.Alarm{c.Alarms[0]}
		c.Alarms[0].State, c.Alarms[0].StateTime = s.state, s.since
	case autopilot.FactUsedSpace:
		c.SetEvidence(v1alpha1.MetricStorage, e)
	}
}
