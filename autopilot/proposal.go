// SPDX-License-Identifier: Apache-2.0

package autopilot

import "slices"

// ProposesFlavor reports whether an alarm asks for another flavor and nothing is in the way as far as is known: only then the
// instance's own resize list is needed, and a place among the flavors that change in the cluster.
func (c Case) ProposesFlavor() bool {
	return slices.ContainsFunc(Decide(c).Decisions, func(d Decision) bool { return d.Action == ActionChangeFlavor })
}
