// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// A newer version may have stored a metric that this one does not know. It is never taken for storage.
func TestUnknownMetric(t *testing.T) {
	if row, err := autopilot.LookupMetric("iops"); err == nil {
		t.Errorf("found %+v", row)
	}
	if err := autopilot.Validate(cases.Policy(), "Throughput"); err == nil {
		t.Error("an unknown kind of change has a valid policy")
	}
	unknown := cases.StorageAt(99)
	unknown.Metric = "iops"
	if v := verdictOf(cases.Quiet(unknown)); v.Intent != nil || len(v.Decisions) != 1 || v.Decisions[0].Reason != autopilot.ReasonPolicyInvalid {
		t.Errorf("in force: %+v", v)
	}
	unknown.GrowthTime = cases.Noon().Add(-10 * time.Minute)
	unknown.State = v1alpha1.StateOK
	if v := verdictOf(cases.Quiet(unknown)); v.Intent != nil || len(v.Decisions) != 0 {
		t.Errorf("not in force: %+v", v)
	}
	c := cases.Quiet()
	cases.Deferred("iops")(&c)
	if v := verdictOf(c); v.Intent != nil || len(v.Decisions) != 0 {
		t.Errorf("a deferred change: %+v", v)
	}
}
