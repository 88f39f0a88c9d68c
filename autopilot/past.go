// SPDX-License-Identifier: Apache-2.0

package autopilot

import "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"

// Past is what Cloud Eye has measured of one database over a while, oldest first.
type Past struct {
	UsedGB, SizeGB []Point // of the volume
	Percent        map[v1alpha1.Metric][]Point
}
