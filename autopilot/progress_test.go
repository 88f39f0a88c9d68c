// SPDX-License-Identifier: Apache-2.0

package autopilot_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// The cloud refused the change for two hours before it began the job. The list of instances may be older than the job.
func TestIsStalledCountsFromTheBeginOfTheJob(t *testing.T) {
	for since, want := range map[time.Duration]bool{10 * time.Second: false, 14 * time.Minute: false, 15 * time.Minute: true} {
		began, asked := cases.Ago(since), cases.Ago(2*time.Hour)
		i := v1alpha1.Change{RequestTime: &asked, JobID: "j7", StartTime: &began}
		inst := &v1alpha1.Instance{Status: autopilot.StatusActive, ActiveSince: &metav1.Time{Time: cases.Ago(3 * time.Hour).Time}}
		if got := autopilot.IsStalled(i, inst, cases.Noon()); got != want {
			t.Errorf("a job of %v: stalled %t, want %t", since, got, want)
		}
		if i.StartTime = nil; !autopilot.IsStalled(i, inst, cases.Noon()) {
			t.Error("without a job it is not stalled after two hours")
		}
	}
}
