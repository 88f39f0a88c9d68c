// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// An older CRD may accept invalid or missing fields, and no schema knows the time zones. An error in the policy of flavors
// must not stop storage, because a full disk cannot wait until a person corrects it. The same holds the other way round.
func TestInvalidFieldIsNamedAndStopsOnlyItsKindOfChange(t *testing.T) {
	window := func(w v1alpha1.Window) func(*v1alpha1.Spec) {
		return func(s *v1alpha1.Spec) { s.Flavor.Window = &w }
	}
	zone := func(name string) func(*v1alpha1.Spec) {
		return window(v1alpha1.Window{Start: "00:00", End: "00:00", TimeZone: name})
	}
	for _, test := range []struct {
		path  string
		alter func(*v1alpha1.Spec)
	}{
		{"spec.storage.stepGB", func(s *v1alpha1.Spec) { s.Storage.StepGB = 15 }},
		{"spec.storage.stepPercent", func(s *v1alpha1.Spec) { s.Storage.StepPercent = 51 }},
		{"spec.storage.maxGB", func(s *v1alpha1.Spec) { s.Storage.MaxGB = 30 }},
		{"spec.storage.thresholdPercent", func(s *v1alpha1.Spec) { s.Storage.ThresholdPercent = 0 }},
		{"spec.storage", func(s *v1alpha1.Spec) { s.Storage = v1alpha1.Storage{} }},
		{"spec.flavor.cpu.thresholdPercent", func(s *v1alpha1.Spec) { s.Flavor.CPU.ThresholdPercent = 101 }},
		{"spec.flavor.memory.thresholdPercent", func(s *v1alpha1.Spec) { s.Flavor.Memory.ThresholdPercent = 0 }},
		{"spec.flavor.alarm.periodSeconds", func(s *v1alpha1.Spec) { s.Flavor.Alarm.PeriodSeconds = 60 }},
		{"spec.flavor.alarm.count", func(s *v1alpha1.Spec) { s.Flavor.Alarm.Count = 0 }},
		{"spec.flavor.maxVCPUs", func(s *v1alpha1.Spec) { s.Flavor.MaxVCPUs = new(int32(0)) }},
		{"spec.flavor.maxMemoryGB", func(s *v1alpha1.Spec) { s.Flavor.MaxMemoryGB = new(int32(-1)) }},
		{"spec.flavor.cooldownSeconds", func(s *v1alpha1.Spec) { s.Flavor.CooldownSeconds = new(int32(-1)) }},
		{"spec.flavor.maxChangesPerDay", func(s *v1alpha1.Spec) { s.Flavor.MaxChangesPerDay = 0 }},
		{"spec.flavor", func(s *v1alpha1.Spec) { s.Flavor = v1alpha1.Flavor{} }},
		{"spec.flavor.window.days", window(v1alpha1.Window{Days: []v1alpha1.Day{"Saturday"}, Start: "00:00", End: "00:00", TimeZone: "UTC"})},
		{"spec.flavor.window.start", window(v1alpha1.Window{Start: "1", End: "00:00", TimeZone: "UTC"})},
		{"spec.flavor.window.end", window(v1alpha1.Window{Start: "00:00", End: "24:00", TimeZone: "UTC"})},
		{"spec.flavor.window.timeZone: unknown", zone("Europe/Berln")},
		{"spec.flavor.window.timeZone: unknown", zone("Local")},
		{"spec.flavor.window.timeZone: unknown", zone("")},
		{"spec.flavor.window.timeZone: unknown", zone("+02:00")},
	} {
		c := cases.Quiet(cases.StorageAt(93), cases.UsageAt(v1alpha1.MetricCPU, 95))
		cases.Deferred("memory")(&c)
		test.alter(&c.Spec)
		isInvalid := func(m v1alpha1.Metric) bool {
			return strings.HasPrefix(test.path, "spec.storage") == (m == v1alpha1.MetricStorage)
		}
		v := verdictOf(c)
		if kind := v1alpha1.KindFlavor; v.Change == nil || v.Change.Kind == kind == isInvalid(v1alpha1.MetricCPU) {
			t.Errorf("%s: intent %+v", test.path, v.Change)
		}
		for _, d := range v.Decisions {
			if (d.Reason == autopilot.ReasonPolicyInvalid) != isInvalid(d.Metric) || isInvalid(d.Metric) && !strings.Contains(d.Message, test.path) {
				t.Errorf("%s: %s: %s: %s", test.path, d.Metric, d.Reason, d.Message)
			}
		}
		for _, m := range autopilot.Metrics() {
			if err := autopilot.Validate(c.Spec, autopilot.HelpedBy(m)); (err != nil) != isInvalid(m) {
				t.Errorf("%s: %s: %v", test.path, m, err)
			}
		}
	}
	for _, m := range autopilot.Metrics() {
		if err := autopilot.Validate(cases.Policy(), autopilot.HelpedBy(m)); err != nil {
			t.Errorf("the default policy for %s: %v", m, err)
		}
	}
}
