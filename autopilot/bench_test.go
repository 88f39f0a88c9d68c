// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func BenchmarkDecide(b *testing.B) {
	for name, alarm := range map[string]Alarm{"storage": storageAt(93), "cpu": usageAt(v1alpha1.MetricCPU, 97)} {
		b.Run(name, func(b *testing.B) {
			c := quiet().with(alarm)
			b.ReportAllocs()
			for b.Loop() {
				Decide(c)
			}
		})
	}
}
