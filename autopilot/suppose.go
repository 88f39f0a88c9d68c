// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// supposition is a case in which the alarm of one metric has come. It is a value: what is taken out of one is still in
// the others.
type supposition struct {
	Case
	metric   MetricRow
	evidence Evidence
}

func (s supposition) verdict() Verdict {
	s.Alarms = []Alarm{{Metric: s.metric.Metric, State: v1alpha1.StateAlarm, StateTime: s.Now, Evidence: s.evidence}}
	return Decide(s.Case)
}

// decide is the answer to the alarm. A wish that waited for the window may be answered beside it.
func (s supposition) decide() Decision {
	for _, d := range s.verdict().Decisions {
		if d.Metric == s.metric.Metric {
			return d
		}
	}
	return Decision{
		Metric: s.metric.Metric, Action: ActionNone, Reason: ReasonStaleEvidence, Message: "What the last change came to is not measured yet",
	}
}

// threshold in percent at which the alarm comes.
func (s supposition) threshold() int {
	if s.Instance == nil {
		return s.metric.ConfiguredThreshold(s.Spec)
	}
	return s.metric.EffectiveThreshold(s.Spec, s.Instance.VolumeGB)
}

// atThreshold is the evidence of now with a value that is just enough.
func (s supposition) atThreshold() supposition {
	at := s.threshold()
	// A moment ahead, for a change that was first seen in this very look counts as of now.
	s.evidence.Time = s.Now.Add(time.Millisecond)
	s.evidence.Percent = max(s.evidence.Percent, float64(at))
	if s.metric.InGB() && s.Instance != nil {
		enough := math.Nextafter(float64(at*s.Instance.VolumeGB)/100, math.Inf(1))
		s.evidence.UsedGB = max(s.evidence.UsedGB, enough)
	}
	return s
}

// endsByItself reports whether time alone ends a guard.
func (s supposition) endsByItself(r Reason) bool {
	return r.EndsByItself() || r == ReasonInstanceBusy && s.Instance.Status == StatusActive
}

// without takes out of a case what a decision was held back by, so that the next guard is seen. It is false where the
// world has to change first: what would be decided then cannot be known.
func (s supposition) without(d Decision) (supposition, bool) {
	spec, status := s.Spec.DeepCopy(), s.Status.DeepCopy()
	switch d.Reason {
	case ReasonBelowThreshold, ReasonNoData, ReasonStaleEvidence:
		return s.atThreshold(), true
	case ReasonNotEnabled:
		s.Enabled = true
		if s.Mode == v1alpha1.ModeOff {
			s.Mode = v1alpha1.ModeAuto
		}
		spec.Flavor.CPU.Enabled, spec.Flavor.Memory.Enabled = new(true), new(true)
	case ReasonInstanceBusy:
		if s.Instance.Status != StatusActive || status.Instance == nil {
			return s, false
		}
		status.Instance.ActiveSince = long(s.Now)
	case ReasonCooldown:
		spec.Flavor.CooldownSeconds = new(int32(0))
	case ReasonBudgetSpent:
		if spec.Flavor.MaxChangesPerDay >= 10 { // no policy allows more
			return s, false
		}
		spec.Flavor.MaxChangesPerDay = 10
	case ReasonNoEffect:
		for i := range status.Changes {
			status.Changes[i].Metrics = nil
		}
	case ReasonContested:
		status.Changes, status.Conditions = nil, nil
	case ReasonOutsideWindow:
		spec.Flavor.Window = nil
	default:
		return s, false
	}
	s.Spec, s.Status = *spec, *status
	return s, true
}

// unhindered is the case with nothing in the way but what the cloud sells and the caps: people want to know what there
// is even while something else comes first.
func (s supposition) unhindered() supposition {
	s.Mode, s.Enabled, s.Shared = v1alpha1.ModeAuto, true, false
	s.Spec = *s.Spec.DeepCopy()
	s.Spec.Flavor.CPU.Enabled, s.Spec.Flavor.Memory.Enabled = new(true), new(true)
	if s.Instance != nil {
		inst := *s.Instance
		inst.Status = StatusActive
		s.Instance, s.Wanted = &inst, Wanted{VolumeGB: inst.VolumeGB, Flavor: inst.Flavor}
	}
	s.Status = v1alpha1.Status{Baseline: s.Status.Baseline, Instance: &v1alpha1.Instance{ActiveSince: long(s.Now)}}
	return s.atThreshold()
}

// ladder are the larger flavors; none for storage.
func (s supposition) ladder() []flavors.Candidate { return s.verdict().Ladder }

// long ago, as far as guards are concerned.
func long(now time.Time) *metav1.Time {
	t := metav1.NewTime(now.Add(-24 * time.Hour))
	return &t
}
