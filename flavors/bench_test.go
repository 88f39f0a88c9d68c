// SPDX-License-Identifier: Apache-2.0

package flavors

import "testing"

// BenchmarkLadder climbs over the whole catalogue.
func BenchmarkLadder(b *testing.B) {
	all := catalogue(classes(b))
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
