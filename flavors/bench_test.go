// SPDX-License-Identifier: Apache-2.0

package flavors

import (
	"encoding/json"
	"os"
	"testing"
)

// documentedFlavors returns the documented flavors (RDS umn: db_instance_classes.rst) in each mode.
func documentedFlavors(b *testing.B) (all []Flavor) {
	b.Helper()
	data, err := os.ReadFile("../test/sim/cloud/data/rds-flavors.json")
	if err != nil {
		b.Fatal(err)
	}
	var classes []struct {
		Engine     string
		VCPUs, RAM int
		Codes      map[string]string // by mode
	}
	if err := json.Unmarshal(data, &classes); err != nil {
		b.Fatal(err)
	}
	for _, c := range classes {
		for mode, code := range c.Codes {
			all = append(all, Flavor{
				Code: code, Engine: c.Engine, Versions: []string{"1"}, Mode: mode, VCPUs: c.VCPUs, MemoryGB: c.RAM,
				Zones: map[string]string{"a": ZoneNormal},
			})
		}
	}
	return all
}

// BenchmarkLadder measures the ladder of all documented flavors.
func BenchmarkLadder(b *testing.B) {
	all := documentedFlavors(b)
	current, ok := Find(all, "rds.mysql.n1.large.4")
	if !ok {
		b.Fatal("no such flavor")
	}
	r := Requirements{Current: current, Version: "1", Zones: []string{"a"}, CPU: true}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Next(Ladder(all, r)); !ok {
			b.Fatal("nothing larger")
		}
	}
}
