// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// Unread returns the case with no fact but the instance, and a reader of its other facts. The reader returns the error
// that a fact of the case has, and an error for a catalogue that is nil. A case without a resize list gets one with all
// flavors of its catalogue. The reader panics if a walk reads a fact twice.
func Unread(c autopilot.Case) (autopilot.Case, autopilot.Reader) {
	known := c
	known.Alarms = slices.Clone(c.Alarms)
	if !known.IsOffered && known.Offered == nil && known.NotOffered == "" {
		known.IsOffered = true
		for _, f := range known.Catalogue {
			known.Offered = append(known.Offered, f.Code)
		}
	}
	c.Alarms = slices.Clone(c.Alarms)
	for i := range c.Alarms {
		a := &c.Alarms[i]
		a.State, a.StateTime, a.Evidence = "", time.Time{}, autopilot.Evidence{}
	}
	c.Facts, c.SizeWriter, c.FlavorWriter, c.Catalogue, c.HasPlace = nil, "", "", nil, false
	c.Offered, c.IsOffered, c.NotOffered = nil, false, ""
	wasRead := map[autopilot.Fact]bool{}
	return c, func(_ context.Context, c *autopilot.Case, f autopilot.Fact) error {
		if wasRead[f] {
			panic(fmt.Sprintf("the walk reads %q twice", f))
		}
		wasRead[f] = true
		if err := known.Facts[f]; err != nil {
			return err
		}
		return copyFact(c, known, f)
	}
}

// copyFact copies a fact from one case to another.
func copyFact(c *autopilot.Case, known autopilot.Case, f autopilot.Fact) error {
	switch f {
	case autopilot.FactAlarmState:
		c.Alarms = slices.Clone(c.Alarms)
		for i, a := range known.Alarms {
			c.Alarms[i].State, c.Alarms[i].StateTime = a.State, a.StateTime
		}
	case autopilot.FactUsedSpace, autopilot.FactUsage:
		c.Alarms = slices.Clone(c.Alarms)
		for i, a := range known.Alarms {
			if autopilot.Row(a.Metric).InGB() == (f == autopilot.FactUsedSpace) {
				c.Alarms[i].Evidence = a.Evidence
			}
		}
	case autopilot.FactCatalogue:
		if c.Catalogue = known.Catalogue; known.Catalogue == nil {
			return errors.New("the catalogue cannot be read")
		}
	case autopilot.FactResizeList:
		c.Offered, c.IsOffered, c.NotOffered = known.Offered, known.IsOffered, known.NotOffered
	case autopilot.FactSizeWriter:
		c.SizeWriter = known.SizeWriter
	case autopilot.FactFlavorWriter:
		c.FlavorWriter = known.FlavorWriter
	case autopilot.FactPlace:
		c.HasPlace = known.HasPlace
	}
	return nil
}
