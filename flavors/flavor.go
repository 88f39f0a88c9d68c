// SPDX-License-Identifier: Apache-2.0

// Package flavors finds the next larger instance class in a catalogue. It compares numbers and names only. It knows
// neither the cloud's API nor the policy.
package flavors

import "strings"

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

// Family returns the hardware line of the flavor; see the function Family.
func (f Flavor) Family() string { return Family(f.Code) }

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
	for _, f := range catalogue {
		if f.Code == code {
			return f, true
		}
	}
	return Flavor{}, false
}
