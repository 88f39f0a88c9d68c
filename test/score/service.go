// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/flavors"
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
	metric    v1alpha1.Metric
	spec      v1alpha1.Spec
	catalogue []flavors.Flavor
	status    v1alpha1.Status
	wanted    autopilot.Wanted
	sizeGB    int                  // the volume for which rule is
	rule      v1alpha1.DesiredRule // as the service writes it to Cloud Eye
	state     v1alpha1.State       // of that rule
	since     time.Time            // of that state
	due       time.Time            // the next check that the last one requested
}

func newService(m v1alpha1.Metric) *service {
	return &service{metric: m, spec: autopilot.DefaultSpec(), catalogue: cases.Catalogue(), state: v1alpha1.StateOK}
}

// at returns the time of a minute.
func at(minute int) time.Time { return cases.Noon().Add(time.Duration(minute) * time.Minute) }

// measured returns the newest full period of the metric's rule in percent, and whether as many periods as the rule
// needs are at or over its threshold.
func (s *service) measured(percent []float64, sizeGB int) (e autopilot.Evidence, isOver bool) {
	if s.sizeGB != sizeGB {
		s.sizeGB, s.rule = sizeGB, autopilot.Row(s.metric).Rule(s.spec, sizeGB)
	}
	period := max(1, s.rule.PeriodSeconds/60) // a period of 1 second means raw data, which comes every minute
	end := len(percent) / period * period
	isOver = true
	for i := range s.rule.Count {
		begin := end - (i+1)*period
		sum := 0.0
		for _, value := range percent[begin : begin+period] {
			sum += value / float64(period)
		}
		if i == 0 {
			e = autopilot.Evidence{Time: at(begin), Percent: sum}
		}
		isOver = isOver && sum+1e-9 >= float64(s.rule.ThresholdPercent) // a sum of fractions may be a little too small
	}
	return e, isOver
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
	a := autopilot.Alarm{Metric: s.metric}
	if autopilot.Row(s.metric).InGB() {
		a.GrowthTime = autopilot.RecentGrowth(c.Status.Changes, now)
		if over := c.Status.OverThresholdSince; over != nil {
			a.AlarmOverdueSince = over.Time
		}
	}
	c.Alarms = []autopilot.Alarm{a}
	v := decide.Walk(context.Background(), &c, func(_ context.Context, c *autopilot.Case, f autopilot.Fact) error {
		s.read(c, f, e)
		return nil
	})
	c.Status = record.Intent(c, v)
	var p record.Patched
	if i := v.Intent; i != nil {
		p.Result = record.PatchAccepted
		if i.Kind == v1alpha1.KindVolume {
			s.wanted.VolumeGB = autopilot.Gigabytes(i.To)
		} else {
			s.wanted.Flavor = i.To
		}
	}
	done := record.Outcome(c, v, f, p)
	s.status, s.due = done.Status, time.Time{}
	if done.RequeueAfter > 0 {
		s.due = now.Add(done.RequeueAfter)
	}
}

// read enters a fact. The cloud has all flavors of the catalogue, and no change waits for a place.
func (s *service) read(c *autopilot.Case, f autopilot.Fact, e autopilot.Evidence) {
	switch f {
	case autopilot.FactAlarmState:
		c.Alarms = []autopilot.Alarm{c.Alarms[0]}
		c.Alarms[0].State, c.Alarms[0].StateTime = s.state, s.since
	case autopilot.FactUsedSpace, autopilot.FactUsage:
		c.SetEvidence(s.metric, e, nil)
	case autopilot.FactCatalogue:
		c.Catalogue = s.catalogue
	case autopilot.FactResizeList:
		c.IsOffered = true
		for _, f := range s.catalogue {
			c.Offered = append(c.Offered, f.Code)
		}
	case autopilot.FactPlace:
		c.HasPlace = true
	}
}

// storageService is the product as a rule for a volume.
type storageService struct{ *service }

func newStorageService() storageService {
	s := newService(v1alpha1.MetricStorage)
	s.spec.Storage.MaxGB = largestGB
	return storageService{s}
}

func (s storageService) next(v *volume) int {
	s.wanted.VolumeGB = max(s.wanted.VolumeGB, v.sizeGB)
	newest := len(v.used) - 1
	percent := make([]float64, s.spec.Storage.Alarm.Count)
	for i := range percent {
		m := newest + 1 - len(percent) + i
		percent[i] = 100 * v.used[m] / float64(v.sizes[m])
	}
	e, isOver := s.measured(percent, v.sizeGB)
	e.Time, e.UsedGB = at(newest), v.last()
	s.check(v.minute, autopilot.Instance{Status: autopilot.StatusActive, VolumeGB: v.sizeGB}, e, isOver)
	return s.wanted.VolumeGB
}

// flavorService is the product as a rule for CPU.
type flavorService struct{ *service }

func (s flavorService) next(v *server) int {
	if s.wanted.VolumeGB == 0 {
		s.wanted = autopilot.Wanted{VolumeGB: 100, Flavor: s.flavor(v.vcpus).Code}
	}
	f := s.flavor(v.vcpus)
	inst := autopilot.Instance{Status: autopilot.StatusActive, VolumeGB: 100, Flavor: f.Code, VCPUs: f.VCPUs, MemoryGB: f.MemoryGB}
	if v.changing {
		inst.Status = "MODIFYING"
	}
	e, isOver := s.measured(v.percent, inst.VolumeGB)
	s.check(v.minute, inst, e, isOver)
	wanted, _ := flavors.Find(s.catalogue, s.wanted.Flavor)
	return wanted.VCPUs
}

// flavor returns the flavor with so many vCPUs.
func (s flavorService) flavor(vcpus int) flavors.Flavor {
	i := slices.IndexFunc(s.catalogue, func(f flavors.Flavor) bool { return f.VCPUs == vcpus })
	return s.catalogue[i]
}
