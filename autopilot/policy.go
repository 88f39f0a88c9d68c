package autopilot

import (
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// DefaultGrowth is how many times the instance at first arming a flavor may become, where the policy names no cap.
const DefaultGrowth = 4

// Narrower returns the mode that allows less. An empty one sets no bound.
func Narrower(a, b v1alpha1.Mode) v1alpha1.Mode {
	rank := func(m v1alpha1.Mode) int {
		switch m {
		case v1alpha1.ModeOff:
			return 0
		case v1alpha1.ModeRecommend:
			return 1
		}
		return 2
	}
	if rank(b) < rank(a) {
		return b
	}
	return a
}

// Validate finds what the CRD's schema cannot: the error names the field.
func Validate(spec v1alpha1.Spec) error {
	s := spec.Storage
	switch {
	case s.StepGB < volumeUnit || s.StepGB%volumeUnit != 0:
		return fmt.Errorf("spec.storage.stepGB: %d is not a multiple of %d", s.StepGB, volumeUnit)
	case s.MaxGB < 40 || s.MaxGB > 4000 || s.MaxGB%volumeUnit != 0:
		return fmt.Errorf("spec.storage.maxGB: %d is not a multiple of %d from 40 to 4000", s.MaxGB, volumeUnit)
	case s.ThresholdPercent < 1 || s.ThresholdPercent > 99:
		return fmt.Errorf("spec.storage.thresholdPercent: %d is not from 1 to 99", s.ThresholdPercent)
	}
	for _, t := range []struct {
		path string
		v1alpha1.Trigger
	}{{"cpu", spec.Flavor.CPU}, {"memory", spec.Flavor.Memory}} {
		if t.ThresholdPercent < 1 || t.ThresholdPercent > 100 {
			return fmt.Errorf("spec.flavor.%s.thresholdPercent: %d is not from 1 to 100", t.path, t.ThresholdPercent)
		}
	}
	if w := spec.Flavor.Window; w != nil {
		if _, err := readWindow(*w); err != nil {
			return fmt.Errorf("spec.flavor.window.%w", err)
		}
	}
	return nil
}

// Enabled reports whether the policy watches that metric.
func Enabled(spec v1alpha1.Spec, m v1alpha1.Metric) bool {
	on := func(t v1alpha1.Trigger) bool { return t.Enabled == nil || *t.Enabled }
	switch m {
	case v1alpha1.MetricCPU:
		return on(spec.Flavor.CPU)
	case v1alpha1.MetricMemory:
		return on(spec.Flavor.Memory)
	}
	return true
}

// given is the policy's threshold in percent, before the size of the volume has a say.
func given(spec v1alpha1.Spec, m v1alpha1.Metric) int {
	switch m {
	case v1alpha1.MetricCPU:
		return int(spec.Flavor.CPU.ThresholdPercent)
	case v1alpha1.MetricMemory:
		return int(spec.Flavor.Memory.ThresholdPercent)
	}
	return int(spec.Storage.ThresholdPercent)
}

// period is how long a measurement of a metric takes: its datapoint bears the time at which it began. That of storage is
// raw data.
func period(spec v1alpha1.Spec, m v1alpha1.Metric) time.Duration {
	if m == v1alpha1.MetricStorage {
		return 0
	}
	return time.Duration(spec.Flavor.Alarm.PeriodSeconds) * time.Second
}

// Metrics returns all metrics, storage first: it goes before flavors.
func Metrics() []v1alpha1.Metric {
	return []v1alpha1.Metric{v1alpha1.MetricStorage, v1alpha1.MetricCPU, v1alpha1.MetricMemory}
}

// Rule is an alarm rule as the policy wants it for an instance.
type Rule struct {
	Metric           v1alpha1.Metric
	ThresholdPercent int
	PeriodSeconds    int
	Count            int
	RepeatSeconds    int
}

// Rules returns the alarm rules that the policy wants for a volume of that many GB.
func Rules(spec v1alpha1.Spec, volumeGB int) []Rule {
	var rules []Rule
	for _, m := range Metrics() {
		if !Enabled(spec, m) {
			continue
		}
		r := Rule{Metric: m, ThresholdPercent: given(spec, m)}
		if m == v1alpha1.MetricStorage {
			a := spec.Storage.Alarm
			r.ThresholdPercent = Threshold(volumeGB, r.ThresholdPercent)
			r.PeriodSeconds, r.Count, r.RepeatSeconds = int(a.PeriodSeconds), int(a.Count), value(a.RepeatSeconds, 900)
		} else {
			a := spec.Flavor.Alarm
			r.PeriodSeconds, r.Count, r.RepeatSeconds = int(a.PeriodSeconds), int(a.Count), value(a.RepeatSeconds, 1800)
		}
		rules = append(rules, r)
	}
	return rules
}

func value(p *int32, fallback int) int {
	if p == nil {
		return fallback
	}
	return int(*p)
}

// caps are the largest flavor the policy allows; 0 means that none is known.
func caps(spec v1alpha1.Spec, b *v1alpha1.Baseline) (vcpus, memoryGB int) {
	if b != nil {
		vcpus, memoryGB = DefaultGrowth*int(b.VCPUs), DefaultGrowth*int(b.MemoryGB)
	}
	return value(spec.Flavor.MaxVCPUs, vcpus), value(spec.Flavor.MaxMemoryGB, memoryGB)
}
