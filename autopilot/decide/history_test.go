// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// simulation is a database with its Rds, its operator and other writers. Its events come one after the other. A round calls
// record.FollowUp, Walk and record.Outcome as the loop does, and may be killed between any two of them.
type simulation struct {
	t      *rapid.T
	now    time.Time
	spec   v1alpha1.Spec
	status v1alpha1.Status
	wanted autopilot.Wanted
	inst   autopilot.Instance
	used   float64
	cpu    float64 // vCPUs in use
	alarms map[v1alpha1.Metric]v1alpha1.State
	old    []autopilot.Wanted // snapshots that the operator may still apply
	events []string

	accepted *metav1.MicroTime // request time of our last patch of the Rds

	grown map[int]float64            // the used space that led to a size
	asked map[string]v1alpha1.Change // the last intent that requested a flavor
}

func newSimulation(t *rapid.T) *simulation {
	s := &simulation{
		t: t, now: cases.Noon(), spec: cases.Policy(), alarms: map[v1alpha1.Metric]v1alpha1.State{}, used: 50, cpu: 1,
		grown: map[int]float64{}, asked: map[string]v1alpha1.Change{},
	}
	s.spec.Storage.StepGB = int32(10 * rapid.IntRange(1, 10).Draw(t, "step/10"))
	s.spec.Storage.StepPercent = max(0, rapid.Int32Range(-20, 20).Draw(t, "step percent"))
	s.spec.Storage.MaxGB = int32(10 * rapid.IntRange(10, 60).Draw(t, "max/10"))
	zero := int32(0)
	s.spec.Flavor.CooldownSeconds = &zero
	s.wanted = autopilot.Wanted{VolumeGB: 100, Flavor: "rds.mysql.n1.large.4"}
	s.inst = autopilot.Instance{ID: "id", Status: autopilot.StatusActive, Engine: "MySQL", Version: "8.0", Mode: "single", Zones: []string{"eu-de-01"}, VolumeGB: 100}
	s.setFlavor("rds.mysql.n1.large.4")
	return s
}

func (s *simulation) setFlavor(code string) {
	f, _ := flavors.Find(cases.Catalogue(), code)
	s.inst.Flavor, s.inst.VCPUs, s.inst.MemoryGB = code, f.VCPUs, f.MemoryGB
}

func (s *simulation) logf(format string, args ...any) {
	s.events = append(s.events, s.now.Format("15:04 ")+fmt.Sprintf(format, args...))
}

func (s *simulation) fail(format string, args ...any) {
	s.t.Fatalf("%s\nThe policy: steps of %d GB or %d %% up to %d GB. What happened:\n  %s", fmt.Sprintf(format, args...),
		s.spec.Storage.StepGB, s.spec.Storage.StepPercent, s.spec.Storage.MaxGB, strings.Join(s.events, "\n  "))
}

// round is one round of the loop. It is killed after that many steps; 3 is all of them.
func (s *simulation) round(killedAfter int) {
	read, before := s.status, s.status.DeepCopy()
	defer func() {
		if diff := cmp.Diff(*before, read); diff != "" {
			s.fail("the round has modified the status that it had read (-before +after):\n%s", diff)
		}
	}()
	inst := s.inst
	c := autopilot.Case{
		Now: s.now, Mode: v1alpha1.ModeAuto, Spec: s.spec, Generation: 1, Recheck: 30 * time.Second, Wanted: s.wanted,
		Instance: &inst, Status: s.status, Accepted: s.accepted, IsSpecLive: true,
	}
	c.Status = record.FollowUp(c).Status
	for _, m := range watched() {
		c.Alarms = append(c.Alarms, autopilot.Alarm{Metric: m})
	}
	v := Walk(context.Background(), &c, s.read)
	done := record.Outcome(c, v)
	c.Status = done.Status
	for _, d := range v.Decisions {
		s.logf("the autopilot decides on %s: %s (%s)", d.Metric, d.Message, d.Reason)
	}
	if killedAfter == 0 {
		s.logf("… and is killed before the status is stored")
		return
	}
	s.status = c.Status
	switch {
	case v.Change == nil:
		return
	case killedAfter == 1:
		s.accepted = nil
		s.logf("… and is killed between the intent and the patch")
		return
	}
	s.patch(*done.Attempt)
	s.accepted = done.Attempt.RequestTime
	if killedAfter == 2 {
		s.accepted = nil
		s.logf("… and is killed after the patch")
	}
}

// read reads a fact as the loop does. There is no resize list, and no writer is known.
func (s *simulation) read(_ context.Context, c *autopilot.Case, f autopilot.Fact) error {
	switch f {
	case alarmState:
		c.Alarms = slices.Clone(c.Alarms)
		for i := range c.Alarms {
			c.Alarms[i].State = s.alarms[c.Alarms[i].Metric]
		}
	case usedSpace:
		s.followReadOnly(c)
		c.SetEvidence(v1alpha1.MetricStorage, autopilot.Evidence{Time: s.now, UsedGB: s.used})
	case usage:
		percent := min(100, 100*s.cpu/float64(max(1, s.inst.VCPUs)))
		c.SetEvidence(v1alpha1.MetricCPU, autopilot.Evidence{Time: s.now, Percent: percent})
	case catalogue:
		c.Catalogue = cases.Catalogue()
	case place:
		c.HasPlace = true
	}
	return nil
}

// followReadOnly sets status.readOnly from the used space.
func (s *simulation) followReadOnly(c *autopilot.Case) {
	size := s.inst.VolumeGB
	switch {
	case s.used >= autopilot.ReadOnlyAt(size):
		c.Status.ReadOnly = &v1alpha1.ReadOnly{SinceTime: *autopilot.Seconds(s.now)}
	case s.used <= 0.87*float64(size): // the volumes are smaller than 1000 GB
		c.Status.ReadOnly = nil
	}
}

func watched() []v1alpha1.Metric {
	return []v1alpha1.Metric{v1alpha1.MetricStorage, v1alpha1.MetricCPU}
}

// patch writes the intent into the Rds.
func (s *simulation) patch(i v1alpha1.Change) {
	s.old = append(s.old, s.wanted)
	if i.Kind == v1alpha1.KindVolume && autopilot.Gigabytes(i.To) <= s.wanted.VolumeGB {
		s.fail("volume patched from %d to %s", s.wanted.VolumeGB, i.To)
	}
	if s.checkChange(i); i.Kind == v1alpha1.KindVolume {
		s.wanted.VolumeGB = autopilot.Gigabytes(i.To)
	} else {
		s.wanted.Flavor = i.To
	}
}

// checkChange fails if a requested change is smaller, past the cap, or a second one for the same evidence.
func (s *simulation) checkChange(i v1alpha1.Change) {
	if i.Kind == v1alpha1.KindVolume {
		to := autopilot.Gigabytes(i.To)
		if to <= s.inst.VolumeGB {
			s.fail("volume patched from %d (cloud %d) to %d", s.wanted.VolumeGB, s.inst.VolumeGB, to)
		}
		if to > int(s.spec.Storage.MaxGB) {
			s.fail("volume patched to %d, past %d", to, s.spec.Storage.MaxGB)
		}
		for size, used := range s.grown {
			if used >= s.used && size < to && s.inst.VolumeGB >= size {
				s.fail("%.1f GB led to %d GB, and once the volume had them, %.1f GB led to %d GB", used, size, s.used, to)
			}
		}
		s.grown[to] = max(s.grown[to], s.used)
		return
	}
	from, _ := flavors.Find(cases.Catalogue(), s.inst.Flavor)
	to, ok := flavors.Find(cases.Catalogue(), i.To)
	if !ok || to.VCPUs <= from.VCPUs || to.MemoryGB < from.MemoryGB {
		s.fail("flavor patched from %s to %s", s.inst.Flavor, i.To)
	}
	if was, again := s.asked[i.To]; again && !i.EvidenceTime.After(was.EvidenceTime.Time) {
		s.fail("flavor %s requested twice by the evidence of %s", i.To, was.EvidenceTime)
	}
	for _, ch := range s.status.Changes {
		if ch.Kind == v1alpha1.KindFlavor && ch.State == v1alpha1.StateCompleted && !i.EvidenceTime.After(ch.EndTime.Time) {
			s.fail("flavor %s requested by evidence that is older than the last change", i.To)
		}
	}
	s.asked[i.To] = i
}

// applyRds applies a snapshot of the Rds as the archived operator does: flavors in both directions, volumes upwards only.
func (s *simulation) applyRds(w autopilot.Wanted) {
	if s.inst.Status != autopilot.StatusActive {
		return
	}
	s.logf("the operator applies %d GB, %s", w.VolumeGB, w.Flavor)
	s.inst.VolumeGB = max(s.inst.VolumeGB, w.VolumeGB)
	s.setFlavor(w.Flavor)
}

// applyEvent draws one event and applies it.
func (s *simulation) applyEvent() {
	s.now = s.now.Add(time.Duration(rapid.IntRange(10, 1200).Draw(s.t, "seconds")) * time.Second)
	switch rapid.SampledFrom([]string{
		"round", "round", "round", "round", "killed", "operator", "operator", "old snapshot", "fills", "load", "alarm", "clears", "another writer",
		"autoscaling", "busy", "clock", "free",
	}).Draw(s.t, "what") {
	case "round":
		s.round(3)
	case "killed":
		s.round(rapid.IntRange(0, 2).Draw(s.t, "after"))
	case "operator":
		s.applyRds(s.wanted)
	case "old snapshot":
		if len(s.old) > 0 {
			s.applyRds(rapid.SampledFrom(s.old).Draw(s.t, "snapshot"))
		}
	case "fills":
		s.used = min(s.used+rapid.Float64Range(0, 60).Draw(s.t, "GB"), float64(s.inst.VolumeGB))
		s.logf("%.1f GB used", s.used)
	case "free":
		s.used *= rapid.Float64Range(0.3, 1).Draw(s.t, "kept")
		s.logf("%.1f GB used after a clean-up", s.used)
	case "load":
		s.cpu = rapid.Float64Range(0, 20).Draw(s.t, "vCPUs")
		s.logf("%.1f vCPUs are busy", s.cpu)
	case "alarm":
		m := rapid.SampledFrom(watched()).Draw(s.t, "metric")
		s.alarms[m] = v1alpha1.StateAlarm
		s.logf("Cloud Eye reports alarm for %s", m)
	case "clears":
		m := rapid.SampledFrom(watched()).Draw(s.t, "metric")
		s.alarms[m] = v1alpha1.StateOK
		s.logf("Cloud Eye reports ok for %s", m)
	case "another writer":
		s.wanted.VolumeGB = 10 * rapid.IntRange(4, 60).Draw(s.t, "GB/10")
		s.wanted.Flavor = rapid.SampledFrom(cases.Catalogue()).Draw(s.t, "flavor").Code
		s.logf("another writer requests %d GB, %s", s.wanted.VolumeGB, s.wanted.Flavor)
	case "autoscaling":
		s.inst.VolumeGB += 10
		s.logf("the cloud grows the volume to %d GB by its autoscaling", s.inst.VolumeGB)
	case "busy":
		s.inst.Status = rapid.SampledFrom([]string{"MODIFYING", autopilot.StatusActive, autopilot.StatusStorageFull, "BACKING UP"}).Draw(s.t, "status")
		if s.inst.Status == autopilot.StatusStorageFull {
			s.used = max(s.used, autopilot.ReadOnlyAt(s.inst.VolumeGB))
		}
		s.logf("the instance is in %s, with %.1f GB used", s.inst.Status, s.used)
	case "clock":
		s.now = s.now.Add(time.Duration(rapid.IntRange(-3600, 3600).Draw(s.t, "jump")) * time.Second)
		s.logf("the clock has jumped")
	}
}

// In any order of events: never past the cap, never smaller, never twice for the same evidence.
func TestNoHistoryBreaksThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t)
		for range rapid.IntRange(5, 60).Draw(t, "events") {
			s.applyEvent()
		}
	})
}
