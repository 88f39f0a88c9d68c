// SPDX-License-Identifier: Apache-2.0

package flavors

import (
	"testing"

	"pgregory.net/rapid"
)

func flavor(code string, vcpus, memoryGB int, zones ...string) Flavor {
	f := Flavor{Code: code, Engine: "MySQL", Versions: []string{"8.0"}, Mode: "single", VCPUs: vcpus, MemoryGB: memoryGB, Zones: map[string]string{}}
	for _, z := range append(zones, "a") {
		f.Zones[z] = ZoneNormal
	}
	return f
}

func shop() []Flavor {
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
		return append(shop(), f)
	}
	for _, tc := range []struct {
		name    string
		current string
		alter   func(*Requirements)
		shop    []Flavor
		want    string
	}{
		{"vCPUs are numbers: from 8 the next is 16, never 2", "rds.mysql.n1.2xlarge.4", cpu, shop(), "rds.mysql.n1.4xlarge.2"},
		{"from 16 vCPUs the next is 32", "rds.mysql.n1.4xlarge.4", cpu, shop(), "rds.mysql.n1.8xlarge.4"},
		{"memory never costs vCPUs", "rds.mysql.n1.4xlarge.2", memory, shop(), "rds.mysql.n1.4xlarge.4"},
		{"CPU never costs memory", "rds.mysql.n1.large.4", cpu, shop(), "rds.mysql.n1.2xlarge.4"},
		{"the same family first", "rds.mysql.n1.2xlarge.4", memory, shop(), "rds.mysql.n1.4xlarge.4"},
		{"another family where it is offered and ours has none", "rds.mysql.n1.2xlarge.4", offered(memory, "rds.mysql.x1.2xlarge.8"), shop(), "rds.mysql.x1.2xlarge.8"},
		{"not another family without a resize list", "rds.mysql.x1.4xlarge.4", cpu, shop(), ""},
		{"the least memory first, whatever its vCPUs", "rds.mysql.n1.2xlarge.4", memory, append(shop(), flavor("rds.mysql.n1.6xlarge.2", 24, 48)), "rds.mysql.n1.6xlarge.2"},
		{"both in alarm, both grow", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { w.CPU, w.Memory = true, true }, shop(), "rds.mysql.n1.4xlarge.4"},
		{"in every zone of the instance", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { cpu(w); w.Zones = []string{"a", "b"} }, shop(), "rds.mysql.n1.4xlarge.4"},
		{"not in a zone where it is not normal, of several", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { cpu(w); w.Zones = []string{"a", "b", "c"} }, shop(), ""},
		{"the same family only if it is on the resize list", "rds.mysql.n1.2xlarge.4", offered(cpu, "rds.mysql.n1.8xlarge.4"), shop(), "rds.mysql.n1.8xlarge.4"},
		{"the same family first, however large, of those on the list", "rds.mysql.n1.2xlarge.4", offered(cpu, "rds.mysql.n1.8xlarge.4", "rds.mysql.x1.4xlarge.4"), shop(), "rds.mysql.n1.8xlarge.4"},
		{"an empty resize list offers nothing", "rds.mysql.n1.2xlarge.4", offered(cpu), shop(), ""},
		{"more vCPUs but less memory is smaller", "rds.mysql.n1.4xlarge.4", cpu, append(shop(), flavor("rds.mysql.n1.6xlarge.2", 24, 48)), "rds.mysql.n1.8xlarge.4"},
		{"more memory but fewer vCPUs is smaller", "rds.mysql.n1.4xlarge.2", memory, append(shop(), flavor("rds.mysql.n1.3xlarge.4", 12, 48)), "rds.mysql.n1.4xlarge.4"},
		{"then the least memory, with CPU in alarm", "rds.mysql.n1.2xlarge.4", cpu, append(shop(), flavor("rds.mysql.n1.4xlarge.1", 16, 48)), "rds.mysql.n1.4xlarge.2"},
		{"then by code", "rds.mysql.n1.2xlarge.4", cpu, append(shop(), flavor("rds.mysql.n1.4xlarge.1", 16, 32)), "rds.mysql.n1.4xlarge.1"},
		{"a single one never becomes a standby pair, nor a replica", "rds.mysql.n1.4xlarge.4", cpu, other(func(f *Flavor) { f.VCPUs, f.MemoryGB, f.Mode = 20, 80, "replica" }), "rds.mysql.n1.8xlarge.4"},
		{"memory within its cap", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { memory(w); w.MaxMemoryGB = 63 }, shop(), ""},
		{"within the caps", "rds.mysql.n1.2xlarge.4", func(w *Requirements) { memory(w); w.MaxVCPUs = 8 }, shop(), ""},
		{"not another mode", "rds.mysql.n1.2xlarge.4", cpu, other(func(f *Flavor) { f.Mode = "ha" }), "rds.mysql.n1.4xlarge.2"},
		{"not another version", "rds.mysql.n1.2xlarge.4", cpu, other(func(f *Flavor) { f.Versions = []string{"5.7"} }), "rds.mysql.n1.4xlarge.2"},
		{"not another engine", "rds.mysql.n1.2xlarge.4", cpu, other(func(f *Flavor) { f.Engine = "PostgreSQL" }), "rds.mysql.n1.4xlarge.2"},
		{"a zone that is not normal is none", "rds.mysql.n1.2xlarge.4", cpu, other(func(f *Flavor) { f.Zones["a"] = "abandon" }), "rds.mysql.n1.4xlarge.2"},
		{"nothing in alarm, nothing to do", "rds.mysql.n1.2xlarge.4", func(*Requirements) {}, shop(), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			current, ok := Find(tc.shop, tc.current)
			if !ok {
				t.Fatalf("no %s", tc.current)
			}
			w := Requirements{Current: current, Version: "8.0", Zones: []string{"a"}}
			tc.alter(&w)
			got, ok := Next(Ladder(tc.shop, w))
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

func TestNextIsLargerWhereTheAlarmIsAndSmallerNowhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.Custom(func(t *rapid.T) Flavor {
			f := flavor("rds.mysql."+rapid.SampledFrom([]string{"n1", "x1", "c2"}).Draw(t, "family")+"."+rapid.StringN(1, 3, 3).Draw(t, "size"),
				rapid.IntRange(1, 64).Draw(t, "vcpus"), rapid.IntRange(1, 512).Draw(t, "memory"))
			return f
		})
		all := rapid.SliceOfN(draw, 1, 30).Draw(t, "catalogue")
		w := Requirements{Current: all[0], Zones: []string{"a"}, CPU: rapid.Bool().Draw(t, "cpu"), Memory: rapid.Bool().Draw(t, "memory"), MaxVCPUs: rapid.IntRange(0, 64).Draw(t, "max")}
		next, ok := Next(Ladder(all, w))
		if !ok {
			return
		}
		if next.VCPUs < w.Current.VCPUs || next.MemoryGB < w.Current.MemoryGB || w.CPU && next.VCPUs == w.Current.VCPUs || w.Memory && next.MemoryGB == w.Current.MemoryGB {
			t.Fatalf("%+v after %+v", next, w.Current)
		}
		if w.MaxVCPUs > 0 && next.VCPUs > w.MaxVCPUs {
			t.Fatalf("%d vCPUs past the cap of %d", next.VCPUs, w.MaxVCPUs)
		}
	})
}

func TestLadderNamesTheZoneOfASoldOutFlavor(t *testing.T) {
	current, _ := Find(shop(), "rds.mysql.n1.4xlarge.2")
	all := shop()
	for i := range all {
		all[i].Zones["a"] = ZoneSoldOut
	}
	for _, c := range Ladder(all, Requirements{Current: current, Zones: []string{"a"}, CPU: true}) {
		if c.Refused != RefusedSoldOut || c.Zone != "a" || c.State != ZoneSoldOut {
			t.Errorf("%s: %q in %q (%q)", c.Code, c.Refused, c.Zone, c.State)
		}
	}
}
