// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// The leader writes the status only if it differs. A text that depends on the time of the check, such as "in 4 minutes",
// would cause a write at every check.
func TestSecondCheckOfTheSameFactsStoresNothing(t *testing.T) {
	disk, cpu := cases.StorageAt(92), cases.UsageAt(v1alpha1.MetricCPU, 95)
	for name, tc := range map[string]struct {
		alter     func(*autopilot.Case)
		alarm     autopilot.Alarm
		condition string // the condition that is True and has the message of the decision
	}{
		"a size that another writer reset twice": {cases.Both(cases.LostVolume, func(c *autopilot.Case) { c.Status.Changes = append(c.Status.Changes, c.Status.Changes[0]) }),
			disk, v1alpha1.ConditionContested},
		"a flavor that another writer replaced": {cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.Restored), cpu, v1alpha1.ConditionContested},
		"a flavor that the cloud reverted": {cases.Both(cases.Changed(3*time.Hour, "99.0"), cases.RolledBack(2*time.Hour)),
			cpu, v1alpha1.ConditionContested},
		"a full volume at its cap":     {cases.Steps(10, 100), disk, v1alpha1.ConditionLimited},
		"a flavor at its cap":          {func(c *autopilot.Case) { c.Spec.Flavor.MaxVCPUs = new(int32(8)) }, cpu, v1alpha1.ConditionLimited},
		"a growth that is in progress": {cases.PendingVolume(time.Minute), disk, v1alpha1.ConditionProgressing},
		"a cooldown":                   {cases.Changed(23*time.Minute, "99.0"), cpu, ""},
		"a busy instance":              {cases.InStatus("MODIFYING"), disk, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := &loop{Case: cases.Quiet(tc.alarm), apply: revertedLater}
			tc.alter(&l.Case)
			l.round(t)
			stored := l.Status.Copy()
			l.Case = cases.Later(l.Case, 30*time.Second)
			v := l.round(t)
			if v.Change != nil || tc.condition != "" && condition(t, l.Status, tc.condition).Status != "True" {
				t.Fatalf("%+v, conditions %+v", v, l.Status.Conditions)
			}
			if diff := cmp.Diff(stored, l.Status); diff != "" {
				t.Errorf("30 seconds later the status differs:\n%s", diff)
			}
		})
	}
}
