package autopilot

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// story is a database, its Rds, its operator and everybody who interferes, one event after the other. The autopilot's
// part is Follow, Decide and Apply as the loop calls them, killed wherever it can be.
type story struct {
	t      *rapid.T
	now    time.Time
	spec   v1alpha1.Spec
	status v1alpha1.Status
	wanted Wanted
	inst   Instance
	used   float64
	cpu    float64 // vCPUs in use
	alarms map[v1alpha1.Metric]v1alpha1.State
	old    []Wanted // snapshots that the operator may still apply
	told   []string

	grown    map[int]float64      // new size → used space that asked for it
	evidence map[string]time.Time // flavor → time of the evidence that asked for it
}

func newStory(t *rapid.T) *story {
	s := &story{
		t: t, now: noon(), spec: policy(), alarms: map[v1alpha1.Metric]v1alpha1.State{}, used: 50, cpu: 1,
		grown: map[int]float64{}, evidence: map[string]time.Time{},
	}
	s.spec.Storage.StepGB = int32(10 * rapid.IntRange(1, 10).Draw(t, "step/10"))
	s.spec.Storage.MaxGB = int32(10 * rapid.IntRange(10, 60).Draw(t, "max/10"))
	zero := int32(0)
	s.spec.Flavor.CooldownSeconds = &zero
	s.wanted = Wanted{VolumeGB: 100, Flavor: "rds.mysql.n1.large.4"}
	s.inst = Instance{ID: "id", Status: StatusActive, Engine: "MySQL", Version: "8.0", Mode: "single", Zones: []string{"eu-de-01"}, VolumeGB: 100}
	s.become("rds.mysql.n1.large.4")
	return s
}

func (s *story) become(code string) {
	f, _ := flavors.Find(catalogue(), code)
	s.inst.Flavor, s.inst.VCPUs, s.inst.MemoryGB = code, f.VCPUs, f.MemoryGB
}

func (s *story) say(format string, args ...any) {
	s.told = append(s.told, s.now.Format("15:04 ")+fmt.Sprintf(format, args...))
}

func (s *story) fail(format string, args ...any) {
	s.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(s.told, "\n"))
}

// round is one round of the loop, killed after so many of its steps.
func (s *story) round(killedAfter int) {
	inst := s.inst
	c := Case{
		Now: s.now, Mode: v1alpha1.ModeAuto, Enabled: true, Spec: s.spec, Generation: 1, Recheck: 30 * time.Second,
		Wanted: s.wanted, Instance: &inst, Status: s.status, Catalogue: catalogue(),
	}
	c.Status, _ = Follow(c)
	for _, m := range []v1alpha1.Metric{v1alpha1.MetricStorage, v1alpha1.MetricCPU} {
		c.Alarms = append(c.Alarms, Alarm{
			Metric: m, State: s.alarms[m], Grown: Grown(c.Status.Changes, s.now),
			Evidence: Evidence{Time: s.now, UsedGB: s.used, Percent: min(100, 100*s.cpu/float64(max(1, s.inst.VCPUs)))},
		})
	}
	v := Decide(c)
	next, _ := Apply(c, v)
	if killedAfter == 0 {
		s.say("killed before the status is stored")
		return
	}
	s.status = next
	if v.Intent == nil {
		return
	}
	s.say("intent %s → %s", v.Intent.From, v.Intent.To)
	if killedAfter == 1 {
		s.say("killed before the patch")
		return
	}
	s.patch(*v.Intent)
}

func (s *story) patch(i v1alpha1.Intent) {
	s.old = append(s.old, s.wanted)
	if i.Kind == v1alpha1.KindVolume {
		to := gigabytes(i.To)
		if to <= s.inst.VolumeGB || to <= s.wanted.VolumeGB {
			s.fail("volume patched from %d (cloud %d) to %d", s.wanted.VolumeGB, s.inst.VolumeGB, to)
		}
		if to > int(s.spec.Storage.MaxGB) {
			s.fail("volume patched to %d, past %d", to, s.spec.Storage.MaxGB)
		}
		for size, used := range s.grown {
			if used >= s.used && size < to && s.inst.VolumeGB >= size {
				s.fail("%g GB asked for %d, and after the volume had %d GB, %g GB asked for %d", used, size, size, s.used, to)
			}
		}
		s.grown[to] = max(s.grown[to], s.used)
		s.wanted.VolumeGB = to
		return
	}
	from, _ := flavors.Find(catalogue(), s.inst.Flavor)
	to, ok := flavors.Find(catalogue(), i.To)
	if !ok || to.VCPUs <= from.VCPUs || to.MemoryGB < from.MemoryGB {
		s.fail("flavor patched from %s to %s", s.inst.Flavor, i.To)
	}
	if at, again := s.evidence[i.To]; again && !i.EvidenceTime.After(at) {
		s.fail("flavor %s asked for twice by the evidence of %s", i.To, at)
	}
	for _, ch := range s.status.Changes {
		if ch.Kind == v1alpha1.KindFlavor && ch.Outcome == v1alpha1.OutcomeCompleted && !i.EvidenceTime.After(ch.CompletionTime.Time) {
			s.fail("flavor %s asked for by evidence of before the last change", i.To)
		}
	}
	s.evidence[i.To] = i.EvidenceTime.Time
	s.wanted.Flavor = i.To
}

// operate applies a snapshot of the Rds as the archived operator does: flavors in both directions, volumes upwards only.
func (s *story) operate(w Wanted) {
	if s.inst.Status != StatusActive {
		return
	}
	s.say("the operator applies %d GB, %s", w.VolumeGB, w.Flavor)
	s.inst.VolumeGB = max(s.inst.VolumeGB, w.VolumeGB)
	s.become(w.Flavor)
}

// happen lets one thing happen.
func (s *story) happen() {
	s.now = s.now.Add(time.Duration(rapid.IntRange(10, 1200).Draw(s.t, "seconds")) * time.Second)
	switch rapid.SampledFrom([]string{
		"round", "round", "round", "round", "killed", "operator", "operator", "old snapshot", "fills", "load", "alarm", "clears", "somebody",
		"native", "busy", "clock", "free",
	}).Draw(s.t, "what") {
	case "round":
		s.round(2)
	case "killed":
		s.round(rapid.IntRange(0, 1).Draw(s.t, "after"))
	case "operator":
		s.operate(s.wanted)
	case "old snapshot":
		if len(s.old) > 0 {
			s.operate(rapid.SampledFrom(s.old).Draw(s.t, "snapshot"))
		}
	case "fills":
		s.used = min(s.used+rapid.Float64Range(0, 60).Draw(s.t, "GB"), float64(s.inst.VolumeGB))
		s.say("%g GB used", s.used)
	case "free":
		s.used *= rapid.Float64Range(0.3, 1).Draw(s.t, "kept")
	case "load":
		s.cpu = rapid.Float64Range(0, 20).Draw(s.t, "vCPUs")
	case "alarm":
		s.alarms[rapid.SampledFrom([]v1alpha1.Metric{v1alpha1.MetricStorage, v1alpha1.MetricCPU}).Draw(s.t, "metric")] = v1alpha1.StateAlarm
	case "clears":
		s.alarms[rapid.SampledFrom([]v1alpha1.Metric{v1alpha1.MetricStorage, v1alpha1.MetricCPU}).Draw(s.t, "metric")] = v1alpha1.StateOK
	case "somebody":
		s.wanted.VolumeGB = 10 * rapid.IntRange(4, 60).Draw(s.t, "GB/10")
		s.wanted.Flavor = rapid.SampledFrom(catalogue()).Draw(s.t, "flavor").Code
		s.say("somebody asks for %d GB, %s", s.wanted.VolumeGB, s.wanted.Flavor)
	case "native":
		s.inst.VolumeGB += 10
	case "busy":
		s.inst.Status = rapid.SampledFrom([]string{"MODIFYING", StatusActive, StatusStorageFull, "BACKING UP"}).Draw(s.t, "status")
	case "clock":
		s.now = s.now.Add(time.Duration(rapid.IntRange(-3600, 3600).Draw(s.t, "jump")) * time.Second)
		s.say("the clock jumps")
	}
	s.bounds()
}

// bounds are what the status must keep to whatever happens.
func (s *story) bounds() {
	volumes, changes := 0, 0
	for _, ch := range s.status.Changes {
		if ch.Kind == v1alpha1.KindVolume {
			volumes++
		} else {
			changes++
		}
	}
	if volumes > volumeChanges || changes > flavorChanges || len(s.status.Decisions) > recordsKept {
		s.fail("%d volume changes, %d flavor changes, %d decisions kept", volumes, changes, len(s.status.Decisions))
	}
}

// Whatever happens in whatever order: never past the cap, never smaller, never twice for the same evidence.
func TestNoHistoryBreaksThePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStory(t)
		for range rapid.IntRange(5, 60).Draw(t, "events") {
			s.happen()
		}
	})
}
