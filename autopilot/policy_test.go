package autopilot

import (
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// What an older CRD lets through, and the time zones that no schema knows.
func TestAPolicyThatIsWrongNamesTheFieldAndNothingIsDone(t *testing.T) {
	for path, alter := range map[string]func(*v1alpha1.Spec){
		"":                                     func(*v1alpha1.Spec) {},
		"spec.storage.stepGB":                  func(s *v1alpha1.Spec) { s.Storage.StepGB = 15 },
		"spec.storage.maxGB":                   func(s *v1alpha1.Spec) { s.Storage.MaxGB = 30 },
		"spec.storage.thresholdPercent":        func(s *v1alpha1.Spec) { s.Storage.ThresholdPercent = 0 },
		"spec.flavor.cpu.thresholdPercent":     func(s *v1alpha1.Spec) { s.Flavor.CPU.ThresholdPercent = 101 },
		"spec.flavor.memory.thresholdPercent":  func(s *v1alpha1.Spec) { s.Flavor.Memory.ThresholdPercent = 0 },
		"spec.flavor.window.timeZone":          func(s *v1alpha1.Spec) { s.Flavor.Window = &v1alpha1.Window{TimeZone: "Mars/Olympus"} },
		"spec.flavor.window.timeZone: unknown": func(s *v1alpha1.Spec) { s.Flavor.Window = &v1alpha1.Window{TimeZone: "Local"} },
	} {
		c := quiet().with(storageAt(93), usageAt(v1alpha1.MetricCPU, 95))
		wished("memory")(&c)
		alter(&c.Spec)
		v := Decide(c)
		if path == "" {
			if err := Validate(c.Spec); err != nil || v.Intent == nil {
				t.Errorf("the default policy: %v, intent %+v", err, v.Intent)
			}
			continue
		}
		if v.Intent != nil || len(v.Decisions) != 2 {
			t.Errorf("%s: intent %+v, decisions %+v", path, v.Intent, v.Decisions)
		}
		for _, d := range v.Decisions {
			if d.Reason != ReasonPolicyInvalid || !strings.Contains(d.Message, path) {
				t.Errorf("%s: %s: %s", path, d.Reason, d.Message)
			}
		}
	}
}
