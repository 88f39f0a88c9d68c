// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/window"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// DefaultGrowth is how many times the size of the instance at first arming a volume or flavor may have, if the policy
// sets no cap.
const DefaultGrowth = 4

// NarrowerMode returns the stricter mode. An empty mode sets no limit.
func NarrowerMode(a, b v1alpha1.Mode) v1alpha1.Mode {
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

// Validate returns an error if the flavor policy has a window that cannot be evaluated. The schema of the CRD rejects all
// other faults, but it does not know the time zones.
func Validate(spec v1alpha1.Spec) error {
	if spec.Flavor.Window == nil {
		return nil
	}
	if err := window.Validate(*spec.Flavor.Window); err != nil {
		return fmt.Errorf("spec.flavor.window.%w", err)
	}
	return nil
}

// Rules returns the alarm rules that the policy asks for with a volume of that many GB.
func Rules(spec v1alpha1.Spec, volumeGB int) []v1alpha1.DesiredRule {
	var rules []v1alpha1.DesiredRule
	for _, metric := range MetricTable() {
		if metric.Enabled(spec) {
			rules = append(rules, metric.Rule(spec, volumeGB))
		}
	}
	return rules
}

func ValueOr(p *int32, fallback int) int {
	if p == nil {
		return fallback
	}
	return int(*p)
}

// leastDefaultMaxGB is the least default of spec.storage.maxGB in GB, so that a small volume doubles more than once
// before a person must decide.
const leastDefaultMaxGB = 200

// MaxGB returns the cap of a volume in GB: spec.storage.maxGB or, if that is not set, four times the volume at first
// arming. If that is not recorded yet, the volume of the instance counts. It returns 0 if neither is known.
func MaxGB(spec v1alpha1.Spec, b *v1alpha1.Baseline, volumeGB int) int {
	if spec.Storage.MaxGB > 0 {
		return int(spec.Storage.MaxGB)
	}
	if b != nil && b.VolumeGB > 0 {
		volumeGB = int(b.VolumeGB)
	}
	if volumeGB <= 0 {
		return 0
	}
	return min(max(RoundUp(DefaultGrowth*volumeGB), leastDefaultMaxGB), largestVolume)
}

// MaxGB returns the cap of the volume.
func (c Case) MaxGB() int {
	volumeGB := 0
	if c.Instance != nil {
		volumeGB = c.Instance.VolumeGB
	}
	return MaxGB(c.Spec, c.Status.Baseline, volumeGB)
}

// MaxGBText names the cap and its origin, for the end of a sentence.
func (c Case) MaxGBText() string {
	if c.Spec.Storage.MaxGB > 0 {
		return fmt.Sprintf("spec.storage.maxGB is %d", c.MaxGB())
	}
	return fmt.Sprintf("spec.storage.maxGB is not set, so the limit is %d GB", c.MaxGB())
}

// Caps returns the vCPUs and memory of the largest flavor that the policy allows; 0 means that the cap is not known.
func Caps(spec v1alpha1.Spec, b *v1alpha1.Baseline) (vcpus, memoryGB int) {
	if b != nil {
		vcpus, memoryGB = DefaultGrowth*int(b.VCPUs), DefaultGrowth*int(b.MemoryGB)
	}
	return ValueOr(spec.Flavor.MaxVCPUs, vcpus), ValueOr(spec.Flavor.MaxMemoryGB, memoryGB)
}

// DefaultSpec returns the policy that the defaults of the CRD's schema make of an empty spec.
func DefaultSpec() v1alpha1.Spec {
	on := func() v1alpha1.Trigger { return v1alpha1.Trigger{Enabled: new(true), ThresholdPercent: 90} }
	return v1alpha1.Spec{
		Mode: v1alpha1.ModeAuto, Apply: v1alpha1.ApplyOperator,
		Storage: v1alpha1.Storage{
			StepGB: 10, ThresholdPercent: 90,
			Alarm: v1alpha1.StorageAlarm{PeriodSeconds: 1, Count: 5, RepeatSeconds: new(int32(900))},
		},
		Flavor: v1alpha1.Flavor{
			CPU: on(), Memory: on(), CooldownSeconds: new(int32(3600)), MaxChangesPerDay: 2,
			Alarm: v1alpha1.FlavorAlarm{PeriodSeconds: 300, Count: 3, RepeatSeconds: new(int32(1800))},
		},
	}
}

// Cooldown returns the least time between the starts of two changes of flavor.
func Cooldown(spec v1alpha1.Spec) time.Duration {
	return time.Duration(ValueOr(spec.Flavor.CooldownSeconds, 3600)) * time.Second
}
