// SPDX-License-Identifier: Apache-2.0

package flavors

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// flavor returns a flavor of single MySQL instances that is available in the zone a, and in other zones.
func flavor(code string, vcpus, memoryGB int, zones ...string) Flavor {
	f := Flavor{
		Code: code, Engine: "MySQL", Versions: []string{"8.0"}, Mode: "single", VCPUs: vcpus, MemoryGB: memoryGB,
		Zones: map[string]string{},
	}
	for _, z := range append(zones, "a") {
		f.Zones[z] = ZoneNormal
	}
	return f
}

func catalogue() []Flavor {
	return []Flavor{
		flavor("rds.mysql.n1.large.2", 2, 4), flavor("rds.mysql.n1.large.4", 2, 8), flavor("rds.mysql.n1.2xlarge.4", 8, 32),
		flavor("rds.mysql.n1.4xlarge.2", 16, 32), flavor("rds.mysql.n1.4xlarge.4", 16, 64, "b"), flavor("rds.mysql.n1.8xlarge.4", 32, 128, "b"),
		flavor("rds.mysql.x1.4xlarge.4", 16, 64, "b"), flavor("rds.mysql.x1.2xlarge.8", 8, 64, "b"),
	}
}

func TestNextReturnsTheSmallestLargerFlavor(t *testing.T) {
	other := func(alter func(*Flavor)) []Flavor {
		f := flavor("rds.mysql.n1.3xlarge.4", 12, 48)
		alter(&f)
		return append(catalogue(), f)
	}
	for _, tc := range []struct {
		name    string
		current string
		alter   func(*Requirements)
		flavors []Flavor
		want    string
	}{
		{"vCPUs are numbers: from 8 the next is 16, never 2", "rds.mysql.n1.2xlarge.4", cpu, catalogue(), "rds.mysql.n1.4xlarge.2"},
		{"from 16 vCPUs the next is 32", "rds.mysql.n1.4xlarge.4", cpu, catalogue(), "rds.mysql.n1.8xlarge.4"},
		{"memory never costs vCPUs", "rds.mysql.n1.4xlarge.2", memory, catalogue(), "rds.mysql.n1.4xlarge.4"},
		{"CPU never costs memory", "rds.mysql.n1.large.4", cpu, catalogue(), "rds.mysql.n1.2xlarge.4"},
		{"the same family first", "rds.mysql.n1.2xlarge.4", memory, catalogue(), "rds.mysql.n1.4xlarge.4"},
		{"another family where it is offered and ours has none", "rds.mysql.n1.2xlarge.4", offered(memory, "rds.mysql.x1.2xlarge.8"), catalogue(), "rds.mysql.x1.2xlarge.8"},
		{"not another family without a resize list", "rds.mysql.x1.4xlarge.4", cpu, catalogue(), ""},
		{"the least memory first, whatever its vCPUs", "rds.mysql.n1.2xlarge.4", memory, append(catalogue(), flavor("rds.mysql.n1.6xlarge.2", 24, 48)), "rds.mysql.n1.6xlarge.2"},
		{"both in alarm, both grow", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { w.CPU, w.Memory = true, true }, catalogue(), "rds.mysql.n1.4xlarge.4"},
		{"in every zone of the instance", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { cpu(w); w.Zones = []string{"a", "b"} }, catalogue(), "rds.mysql.n1.4xlarge.4"},
		{"not in a zone where it is not normal, of several", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { cpu(w); w.Zones = []string{"a", "b", "c"} }, catalogue(), ""},
		{"the same family only if it is on the resize list", "rds.mysql.n1.2xlarge.4", offered(cpu, "rds.mysql.n1.8xlarge.4"), catalogue(), "rds.mysql.n1.8xlarge.4"},
		{"the same family first, however large, of those on the list", "rds.mysql.n1.2xlarge.4", offered(cpu, "rds.mysql.n1.8xlarge.4", "rds.mysql.x1.4xlarge.4"), catalogue(), "rds.mysql.n1.8xlarge.4"},
		{"an empty resize list offers nothing", "rds.mysql.n1.2xlarge.4", offered(cpu), catalogue(), ""},
		{"more vCPUs but less memory is smaller", "rds.mysql.n1.4xlarge.4", cpu, append(catalogue(), flavor("rds.mysql.n1.6xlarge.2", 24, 48)), "rds.mysql.n1.8xlarge.4"},
		{"more memory but fewer vCPUs is smaller", "rds.mysql.n1.4xlarge.2", memory, append(catalogue(), flavor("rds.mysql.n1.3xlarge.4", 12, 48)), "rds.mysql.n1.4xlarge.4"},
		{"then the least memory, with CPU in alarm", "rds.mysql.n1.2xlarge.4", cpu, append(catalogue(), flavor("rds.mysql.n1.4xlarge.1", 16, 48)), "rds.mysql.n1.4xlarge.2"},
		{"then by code", "rds.mysql.n1.2xlarge.4", cpu, append(catalogue(), flavor("rds.mysql.n1.4xlarge.1", 16, 32)), "rds.mysql.n1.4xlarge.1"},
		{"a single one never becomes a standby pair, nor a replica", "rds.mysql.n1.4xlarge.4", cpu, other(func(f *Flavor) { f.VCPUs, f.MemoryGB, f.Mode = 20, 80, "replica" }), "rds.mysql.n1.8xlarge.4"},
		{"memory within its cap", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { memory(w); w.MaxMemoryGB = 63 }, catalogue(), ""},
		{"within the caps", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { memory(w); w.MaxVCPUs = 8 }, catalogue(), ""},
		{"not another mode", "rds.mysql.n1.2xlarge.4", cpu, other(func(f *Flavor) { f.Mode = "ha" }), "rds.mysql.n1.4xlarge.2"},
		{"not another version", "rds.mysql.n1.2xlarge.4", cpu, other(func(f *Flavor) { f.Versions = []string{"5.7"} }), "rds.mysql.n1.4xlarge.2"},
		{"not another engine", "rds.mysql.n1.2xlarge.4", cpu, other(func(f *Flavor) { f.Engine = "PostgreSQL" }), "rds.mysql.n1.4xlarge.2"},
		{"a zone that is not normal is none", "rds.mysql.n1.2xlarge.4", cpu, other(func(f *Flavor) { f.Zones["a"] = "abandon" }), "rds.mysql.n1.4xlarge.2"},
		{"nothing in alarm, nothing to do", "rds.mysql.n1.2xlarge.4", func(*Requirements) {}, catalogue(), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			current, ok := Find(tc.flavors, tc.current)
			if !ok {
				t.Fatalf("no %s", tc.current)
			}
			w := Requirements{Current: current, Version: "8.0", Zones: []string{"a"}}
			tc.alter(&w)
			got, ok := Next(Ladder(tc.flavors, w))
			if got.Code != tc.want || ok != (tc.want != "") {
				t.Errorf("next is %q, want %q", got.Code, tc.want)
			}
		})
	}
}

func cpu(w *Requirements)    { w.CPU = true }
func memory(w *Requirements) { w.Memory = true }

func offered(f func(*Requirements), codes ...string) func(*Requirements) {
	return func(w *Requirements) { f(w); w.Offered, w.OfferedKnown = codes, true }
}

// A ladder must not end before the largest flavor that the requirements allow.
func TestNextReturnsAnAllowedFlavorWheneverThereIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
		var all []Flavor
		for i := range rapid.IntRange(1, 20).Draw(t, "flavors") {
			code := fmt.Sprintf("rds.mysql.%s.%d", from("family", "n1", "x1"), i)
			f := flavor(code, rapid.IntRange(1, 8).Draw(t, "vcpus"), rapid.IntRange(1, 8).Draw(t, "memory"))
			f.Engine, f.Mode = from("engine", "MySQL", "PostgreSQL"), from("mode", "single", "ha")
			all = append(all, f)
		}
		r := Requirements{
			Current: all[0], Zones: []string{"a"}, CPU: rapid.Bool().Draw(t, "cpu"), Memory: rapid.Bool().Draw(t, "memory alarm"),
			MaxVCPUs: rapid.IntRange(0, 8).Draw(t, "max"), OfferedKnown: rapid.Bool().Draw(t, "resize list"),
		}
		for _, f := range all {
			if rapid.Bool().Draw(t, "offered") {
				r.Offered = append(r.Offered, f.Code)
			}
		}
		isAllowed := func(f Flavor) bool {
			offered := f.Family() == r.Current.Family()
			if r.OfferedKnown {
				offered = slices.Contains(r.Offered, f.Code)
			}
			notSmaller := f.VCPUs >= r.Current.VCPUs && f.MemoryGB >= r.Current.MemoryGB
			larger := (r.CPU || r.Memory) && (!r.CPU || f.VCPUs > r.Current.VCPUs) && (!r.Memory || f.MemoryGB > r.Current.MemoryGB)
			return offered && notSmaller && larger && f.Engine == r.Current.Engine && f.Mode == r.Current.Mode &&
				(r.MaxVCPUs == 0 || f.VCPUs <= r.MaxVCPUs)
		}
		next, ok := Next(Ladder(all, r))
		if ok && !isAllowed(next.Flavor) || ok != slices.ContainsFunc(all, isAllowed) {
			t.Fatalf("next is %+v, %t after %+v", next, ok, r.Current)
		}
	})
}

func TestLadderNamesTheZoneOfASoldOutFlavor(t *testing.T) {
	current, _ := Find(catalogue(), "rds.mysql.n1.4xlarge.2")
	all := catalogue()
	for i := range all {
		all[i].Zones["a"] = ZoneSoldOut
	}
	for _, c := range Ladder(all, Requirements{Current: current, Zones: []string{"a"}, CPU: true}) {
		if c.Refused != RefusedSoldOut || c.Zone != "a" || c.State != ZoneSoldOut {
			t.Errorf("%s: %q in %q (%q)", c.Code, c.Refused, c.Zone, c.State)
		}
	}
}
