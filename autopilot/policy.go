package autopilot

import (
	"fmt"
	"math"
	"slices"
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

// Validate finds what the CRD's schema cannot, or an older one does not, in the part of the policy that goes for that
// metric: storage, or flavors for both others. The error names the field.
func Validate(spec v1alpha1.Spec, m v1alpha1.Metric) error {
	if m == v1alpha1.MetricStorage {
		return validateStorage(spec.Storage)
	}
	return validateFlavor(spec.Flavor)
}

func validateStorage(s v1alpha1.Storage) error {
	switch {
	case s.StepGB < volumeUnit || s.StepGB%volumeUnit != 0:
		return fmt.Errorf("spec.storage.stepGB: %d is not a multiple of %d", s.StepGB, volumeUnit)
	case s.MaxGB < 40 || s.MaxGB > 4000 || s.MaxGB%volumeUnit != 0:
		return fmt.Errorf("spec.storage.maxGB: %d is not a multiple of %d from 40 to 4000", s.MaxGB, volumeUnit)
	case s.ThresholdPercent < 1 || s.ThresholdPercent > 99:
		return fmt.Errorf("spec.storage.thresholdPercent: %d is not from 1 to 99", s.ThresholdPercent)
	}
	return nil
}

func validateFlavor(f v1alpha1.Flavor) error {
	for _, field := range []struct {
		path            string
		is, least, most int
	}{
		{"cpu.thresholdPercent", int(f.CPU.ThresholdPercent), 1, 100},
		{"memory.thresholdPercent", int(f.Memory.ThresholdPercent), 1, 100},
		{"alarm.count", int(f.Alarm.Count), 1, 5},
		{"maxVCPUs", value(f.MaxVCPUs, 1), 1, math.MaxInt32},
		{"maxMemoryGB", value(f.MaxMemoryGB, 1), 1, math.MaxInt32},
		{"cooldownSeconds", value(f.CooldownSeconds, 0), 0, math.MaxInt32},
		{"maxChangesPerDay", int(f.MaxChangesPerDay), 1, 10},
	} {
		if field.is < field.least || field.is > field.most {
			return fmt.Errorf("spec.flavor.%s: %d is not from %d to %d", field.path, field.is, field.least, field.most)
		}
	}
	if p := f.Alarm.PeriodSeconds; !slices.Contains([]int32{1, 300, 1200, 3600, 14400, 86400}, p) {
		return fmt.Errorf("spec.flavor.alarm.periodSeconds: %d is none of Cloud Eye's periods", p)
	}
	if f.Window != nil {
		if _, err := readWindow(*f.Window); err != nil {
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
