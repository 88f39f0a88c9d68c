package autopilot

import "slices"

// ProposesFlavor reports whether an alarm asks for another flavor and nothing is in the way as far as is known without the
// instance's own resize list: only then is that list needed, and a place among the flavors that change in the cluster.
func (c Case) ProposesFlavor() bool {
	c.Offered, c.OfferedKnown = make([]string, 0, len(c.Catalogue)), true
	for _, f := range c.Catalogue {
		c.Offered = append(c.Offered, f.Code)
	}
	return slices.ContainsFunc(Decide(c).Decisions, func(d Decision) bool { return d.Action == ActionChangeFlavor })
}
