// SPDX-License-Identifier: Apache-2.0

// Package flavors finds the next larger instance class in a catalogue. It compares numbers and names only. It knows
// neither the cloud's API nor the policy.
package flavors

import (
	"cmp"
	"slices"
	"strings"
)

// Zone states of a flavor in the catalogue (RDS api: querying_database_specifications.rst). A flavor is available
// only in ZoneNormal.
const (
	ZoneNormal  = "normal"
	ZoneSoldOut = "sellout"
)

// Flavor is an instance class that the cloud sells.
type Flavor struct {
	Code     string            // spec code with the suffix of its mode, such as rds.pg.n1.large.4.ha
	Engine   string            // MySQL, PostgreSQL or SQLServer
	Versions []string          // engine versions for which it is sold
	Mode     string            // single, ha or replica
	VCPUs    int               // the API sends text
	MemoryGB int               // GB
	Zones    map[string]string // zone → state
}

// Family returns the third part of a flavor code, which names the hardware line: rds.mysql.n1.large.4 → n1. It
// returns an empty text if the code is shorter. The last part, the ratio of memory to vCPUs, is missing in old codes
// such as rds.pg.c2.medium (docs/cloud-facts.md). So codes are looked up and never computed.
func Family(code string) string {
	parts := strings.Split(code, ".")
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

// Find returns the flavor with this code.
func Find(catalogue []Flavor, code string) (Flavor, bool) {
	i := slices.IndexFunc(catalogue, func(f Flavor) bool { return f.Code == code })
	if i < 0 {
		return Flavor{}, false
	}
	return catalogue[i], true
}

// Requirements are the conditions for the next flavor.
type Requirements struct {
	Current     Flavor   // of the instance
	Version     string   // the engine's version; empty means any
	Zones       []string // every zone of the instance
	CPU, Memory bool     // the dimensions in alarm; each must become larger
	MaxVCPUs    int      // never exceeded; 0 means no cap
	MaxMemoryGB int      // GB, never exceeded; 0 means no cap
	Replicas    []Flavor // sizes of read replicas, which the next flavor must not exceed

	// Offered are the codes in the instance's own resize list. OfferedKnown is false if the API has no such list.
	// Then only the same family is considered.
	Offered      []string
	OfferedKnown bool
}

// Refusal is the reason why a flavor is not used.
type Refusal string

// The refusals, in the order in which they are checked.
const (
	RefusedOffer   Refusal = "not offered for this instance"
	RefusedCap     Refusal = "above the caps"
	RefusedReplica Refusal = "larger than a read replica"
	RefusedSoldOut Refusal = "not available in every zone"
)

// Candidate is a flavor of the catalogue with the result of the checks. Refused is empty if it can be used.
type Candidate struct {
	Flavor
	Refused Refusal
	Zone    string // with RefusedSoldOut, the first zone in which it is not available
	State   string // that zone's state
}

// Ladder returns every flavor of the catalogue that is larger in the alarmed dimensions and not smaller in the other
// one. The best is first: same family, then the smallest alarmed dimension, then the smallest other one, then by
// code. Refused flavors keep their place, so that people can see which ones were skipped. Ladder does not modify
// catalogue.
func Ladder(catalogue []Flavor, r Requirements) []Candidate {
	var ladder []Candidate
	for _, f := range catalogue {
		if r.isLarger(f) {
			ladder = append(ladder, r.consider(f))
		}
	}
	slices.SortStableFunc(ladder, r.compare)
	return slices.CompactFunc(ladder, func(a, b Candidate) bool { return a.Code == b.Code })
}

// Next returns the first flavor of a ladder that is not refused; false if there is none.
func Next(ladder []Candidate) (Candidate, bool) {
	for _, c := range ladder {
		if c.Refused == "" {
			return c, true
		}
	}
	return Candidate{}, false
}

func (r Requirements) isLarger(f Flavor) bool {
	isSame := f.Engine == r.Current.Engine && f.Mode == r.Current.Mode && (r.Version == "" || f.isSoldFor(r.Version))
	return isSame && (r.CPU || r.Memory) && f.VCPUs >= r.Current.VCPUs && f.MemoryGB >= r.Current.MemoryGB &&
		(!r.CPU || f.VCPUs > r.Current.VCPUs) && (!r.Memory || f.MemoryGB > r.Current.MemoryGB)
}

func (r Requirements) consider(f Flavor) Candidate {
	c := Candidate{Flavor: f}
	switch {
	case r.OfferedKnown && !r.isOffered(f), !r.OfferedKnown && Family(f.Code) != Family(r.Current.Code):
		c.Refused = RefusedOffer
	case r.MaxVCPUs > 0 && f.VCPUs > r.MaxVCPUs, r.MaxMemoryGB > 0 && f.MemoryGB > r.MaxMemoryGB:
		c.Refused = RefusedCap
	case slices.ContainsFunc(r.Replicas, func(x Flavor) bool { return f.VCPUs > x.VCPUs || f.MemoryGB > x.MemoryGB }):
		c.Refused = RefusedReplica
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

// isSoldFor reports whether the flavor is sold for an engine version. An instance may report a minor version that the
// catalogue does not have: 8.0.28 for 8.0.
func (f Flavor) isSoldFor(version string) bool {
	return slices.ContainsFunc(f.Versions, func(v string) bool {
		return v == version || strings.HasPrefix(version, v+".")
	})
}

// isOffered reports whether the resize list has the flavor. The list of an instance in mode ha or replica may have its
// codes without the suffix of the mode.
func (r Requirements) isOffered(f Flavor) bool {
	bare := strings.TrimSuffix(strings.TrimSuffix(f.Code, ".ha"), ".rr")
	return slices.Contains(r.Offered, f.Code) || slices.Contains(r.Offered, bare)
}

func (r Requirements) compare(a, b Candidate) int {
	isOther := func(c Candidate) int {
		if Family(c.Code) == Family(r.Current.Code) {
			return 0
		}
		return 1
	}
	// The alarmed dimension is compared first. If both are alarmed, vCPUs are, because they cost more.
	first := cmp.Or(cmp.Compare(a.VCPUs, b.VCPUs), cmp.Compare(a.MemoryGB, b.MemoryGB))
	if r.Memory && !r.CPU {
		first = cmp.Or(cmp.Compare(a.MemoryGB, b.MemoryGB), cmp.Compare(a.VCPUs, b.VCPUs))
	}
	return cmp.Or(isOther(a)-isOther(b), first, strings.Compare(a.Code, b.Code))
}
