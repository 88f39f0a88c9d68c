// SPDX-License-Identifier: Apache-2.0

package flavors

import "strings"

// Zone states of a flavor in the catalogue (RDS api: querying_database_specifications.rst). Anything but Normal is no.
const (
	ZoneNormal      = "normal"
	ZoneSoldOut     = "sellout"
	ZoneUnsupported = "unsupported"
)

// Flavor is one class of instance that the cloud sells.
type Flavor struct {
	Code     string            // spec code with the suffix of its mode, such as rds.pg.n1.large.4.ha
	Engine   string            // MySQL, PostgreSQL or SQLServer
	Versions []string          // engine versions it is sold for
	Mode     string            // single, ha or replica
	VCPUs    int               // a number here, though the API sends text
	MemoryGB int               // GB
	Zones    map[string]string // zone → state
}

// Family is the part of the code that names the hardware line, such as n1, x1 or c2; empty where the code has none.
func (f Flavor) Family() string { return Family(f.Code) }

// Family is the second part behind the "rds." of a code: rds.mysql.n1.large.4 → n1. Codes are looked up, never
// computed: old ones such as rds.pg.c2.medium have no ratio (docs/cloud-facts.md).
func Family(code string) string {
	parts := strings.Split(code, ".")
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

// Find returns the flavor of that code.
func Find(catalogue []Flavor, code string) (Flavor, bool) {
	for _, f := range catalogue {
		if f.Code == code {
			return f, true
		}
	}
	return Flavor{}, false
}
