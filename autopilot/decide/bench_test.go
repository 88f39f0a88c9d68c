// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"testing"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func BenchmarkDecide(b *testing.B) {
	for name, alarm := range map[string]autopilot.Alarm{"storage": cases.StorageAt(93), "cpu": cases.UsageAt(v1alpha1.MetricCPU, 97)} {
		b.Run(name, func(b *testing.B) {
			c := cases.Quiet(alarm)
			b.ReportAllocs()
			for b.Loop() {
				verdictOf(c)
			}
		})
	}
}
