// SPDX-License-Identifier: Apache-2.0

package flavors

import "testing"

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
		{"another family where it is offered and ours has none", "rds.mysql.n1.2xlarge.4", offered(memory, "rds.mysql.x1.2xlarge.8"), catalogue(), "rds.mysql.x1.2xlarge.8"},
		{"not another family without a resize list", "rds.mysql.x1.4xlarge.4", cpu, catalogue(), ""},
		{"the least memory first, whatever its vCPUs", "rds.mysql.n1.2xlarge.4", memory, append(catalogue(), flavor("rds.mysql.n1.6xlarge.2", 24, 48)), "rds.mysql.n1.6xlarge.2"},
		{"both in alarm, both grow", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { w.CPU, w.Memory = true, true }, catalogue(), "rds.mysql.n1.4xlarge.4"},
		{"in every zone of the instance", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { cpu(w); w.Zones = []string{"a", "b"} }, catalogue(), "rds.mysql.n1.4xlarge.4"},
		{"the same family only if it is on the resize list", "rds.mysql.n1.2xlarge.4", offered(cpu, "rds.mysql.n1.8xlarge.4"), catalogue(), "rds.mysql.n1.8xlarge.4"},
		{"the same family first, however large, of those on the list", "rds.mysql.n1.2xlarge.4", offered(cpu, "rds.mysql.n1.8xlarge.4", "rds.mysql.x1.4xlarge.4"), catalogue(), "rds.mysql.n1.8xlarge.4"},
		{"an empty resize list offers nothing", "rds.mysql.n1.2xlarge.4", offered(cpu), catalogue(), ""},
		{"more vCPUs but less memory is smaller", "rds.mysql.n1.4xlarge.4", cpu, append(catalogue(), flavor("rds.mysql.n1.6xlarge.2", 24, 48)), "rds.mysql.n1.8xlarge.4"},
		{"more memory but fewer vCPUs is smaller", "rds.mysql.n1.4xlarge.2", memory, append(catalogue(), flavor("rds.mysql.n1.3xlarge.4", 12, 48)), "rds.mysql.n1.4xlarge.4"},
		{"then the least memory, with CPU in alarm", "rds.mysql.n1.2xlarge.4", cpu, append(catalogue(), flavor("rds.mysql.n1.4xlarge.1", 16, 48)), "rds.mysql.n1.4xlarge.2"},
		{"then by code", "rds.mysql.n1.2xlarge.4", cpu, append(catalogue(), flavor("rds.mysql.n1.4xlarge.1", 16, 32)), "rds.mysql.n1.4xlarge.1"},
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
			w := Requirements{Current: current, Version: "8.0.28", Zones: []string{"a"}}
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

func TestResizeListMayHaveCodesWithoutTheSuffixOfTheMode(t *testing.T) {
	r := Requirements{Offered: []string{"rds.pg.n1.large.4"}}
	for code, want := range map[string]bool{"rds.pg.n1.large.4.ha": true, "rds.pg.n1.large.4.rr": true, "rds.pg.n1.large.8.ha": false} {
		if got := r.isOffered(Flavor{Code: code}); got != want {
			t.Errorf("%s: %t", code, got)
		}
	}
}
