// SPDX-License-Identifier: Apache-2.0

package flavors

import (
	"cmp"
	"slices"
	"strings"
)

// Requirements is what the next flavor must satisfy.
type Requirements struct {
	Current     Flavor   // what the instance has now
	Version     string   // the engine's version; empty means any
	Zones       []string // every zone of the instance
	CPU, Memory bool     // the dimensions in alarm: each must become strictly larger
	MaxVCPUs    int      // never exceeded; 0 means no cap
	MaxMemoryGB int      // GB, never exceeded; 0 means no cap

	// Offered are the codes in the instance's own resize list. Where the API has no such list OfferedKnown is false,
	// and only the same family is considered.
	Offered      []string
	OfferedKnown bool
}

// Refusal is why a larger flavor was not taken.
type Refusal string

// The refusals, in the order in which they are looked for.
const (
	RefusedMode    Refusal = "other engine, version or mode"
	RefusedSmaller Refusal = "smaller in vCPUs or memory"
	RefusedEqual   Refusal = "not larger where the alarm is"
	RefusedOffer   Refusal = "not offered for this instance"
	RefusedCap     Refusal = "above the caps"
	RefusedSoldOut Refusal = "not available in every zone"
)

// Candidate is a flavor that was considered. Refused is empty where it could be taken.
type Candidate struct {
	Flavor
	Refused Refusal
	Zone    string // the first zone in which it is not to be had, with RefusedSoldOut
	State   string // that zone's state
}

// Ladder returns every flavor of the catalogue that is larger where the alarm is and not smaller elsewhere, the best
// first: same family, then the smallest alarmed dimension, then the smallest other one, then by code.
// Refused ones keep their place, so that a person can see what was passed over.
func Ladder(catalogue []Flavor, r Requirements) []Candidate {
	var ladder []Candidate
	for _, f := range catalogue {
		c := r.consider(f)
		switch c.Refused {
		case RefusedMode, RefusedSmaller, RefusedEqual:
			continue
		}
		ladder = append(ladder, c)
	}
	slices.SortStableFunc(ladder, r.compare)
	return slices.CompactFunc(ladder, func(a, b Candidate) bool { return a.Code == b.Code })
}

// Next returns the best flavor to be had, or false.
func Next(ladder []Candidate) (Candidate, bool) {
	for _, c := range ladder {
		if c.Refused == "" {
			return c, true
		}
	}
	return Candidate{}, false
}

func (r Requirements) consider(f Flavor) Candidate {
	c := Candidate{Flavor: f}
	switch {
	case f.Code == r.Current.Code, f.Engine != r.Current.Engine, f.Mode != r.Current.Mode,
		r.Version != "" && !slices.Contains(f.Versions, r.Version):
		c.Refused = RefusedMode
	case f.VCPUs < r.Current.VCPUs, f.MemoryGB < r.Current.MemoryGB:
		c.Refused = RefusedSmaller
	case r.CPU && f.VCPUs == r.Current.VCPUs, r.Memory && f.MemoryGB == r.Current.MemoryGB, !r.CPU && !r.Memory:
		c.Refused = RefusedEqual
	case r.OfferedKnown && !slices.Contains(r.Offered, f.Code), !r.OfferedKnown && f.Family() != r.Current.Family():
		c.Refused = RefusedOffer
	case r.MaxVCPUs > 0 && f.VCPUs > r.MaxVCPUs, r.MaxMemoryGB > 0 && f.MemoryGB > r.MaxMemoryGB:
		c.Refused = RefusedCap
	default:
		for _, zone := range r.Zones {
			if state := f.Zones[zone]; state != ZoneNormal {
				c.Refused, c.Zone, c.State = RefusedSoldOut, zone, state
				break
			}
		}
	}
	return c
}

func (r Requirements) compare(a, b Candidate) int {
	if sa, sb := a.Family() == r.Current.Family(), b.Family() == r.Current.Family(); sa != sb {
		if sa {
			return -1
		}
		return 1
	}
	// With one dimension in alarm, that one is kept small first. With both, vCPUs lead: they cost more.
	first := cmp.Or(cmp.Compare(a.VCPUs, b.VCPUs), cmp.Compare(a.MemoryGB, b.MemoryGB))
	if r.Memory && !r.CPU {
		first = cmp.Or(cmp.Compare(a.MemoryGB, b.MemoryGB), cmp.Compare(a.VCPUs, b.VCPUs))
	}
	return cmp.Or(first, strings.Compare(a.Code, b.Code))
}
