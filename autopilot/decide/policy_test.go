// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// No schema knows the time zones. An error in the policy of flavors must not stop storage, because a full disk cannot wait
// until a person corrects it.
func TestInvalidWindowIsNamedAndStopsOnlyFlavors(t *testing.T) {
	for path, w := range map[string]v1alpha1.Window{
		"spec.flavor.window.days":              {Days: []v1alpha1.Day{"Saturday"}, Start: "00:00", End: "00:00", TimeZone: "UTC"},
		"spec.flavor.window.start":             {Start: "1", End: "00:00", TimeZone: "UTC"},
		"spec.flavor.window.end":               {Start: "00:00", End: "24:00", TimeZone: "UTC"},
		"spec.flavor.window.timeZone: unknown": {Start: "00:00", End: "00:00", TimeZone: "Europe/Berln"},
	} {
		c := cases.Quiet(cases.StorageAt(93), cases.UsageAt(v1alpha1.MetricCPU, 95))
		cases.Deferred("memory")(&c)
		c.Spec.Flavor.Window = &w
		v := verdictOf(c)
		if v.Change == nil || v.Change.Kind != v1alpha1.KindVolume {
			t.Errorf("%s: intent %+v", path, v.Change)
		}
		for _, d := range v.Decisions {
			isStopped := d.Reason == autopilot.ReasonPolicyInvalid && strings.Contains(d.Message, path)
			if isStopped == (d.Metric == v1alpha1.MetricStorage) {
				t.Errorf("%s: %s: %s: %s", path, d.Metric, d.Reason, d.Message)
			}
		}
	}
}
