// SPDX-License-Identifier: Apache-2.0

package flavors

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata anew")

// class is a documented flavor (RDS umn: db_instance_classes.rst) with its code in each mode.
type class struct {
	Engine   string            `json:"engine"`
	Base     string            `json:"spec_code"`
	VCPUs    int               `json:"vcpus"`
	MemoryGB int               `json:"ram"`
	Codes    map[string]string `json:"codes"`
}

func classes(t testing.TB) []class {
	t.Helper()
	data, err := os.ReadFile("../test/sim/cloud/data/rds-flavors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []class
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 83 {
		t.Fatalf("%d base codes, want the 83 that are documented", len(all))
	}
	return all
}

func catalogue(all []class) []Flavor {
	var list []Flavor
	for _, c := range all {
		for mode, code := range c.Codes {
			list = append(list, Flavor{
				Code: code, Engine: c.Engine, Versions: []string{"1"}, Mode: mode, VCPUs: c.VCPUs, MemoryGB: c.MemoryGB, Zones: map[string]string{"a": ZoneNormal},
			})
		}
	}
	return list
}

// climb takes the next flavor as long as there is one. It holds what must be true of every ladder.
func climb(t *testing.T, shop []Flavor, start string, metric string, offered bool) []Flavor {
	t.Helper()
	current, ok := Find(shop, start)
	if !ok {
		t.Fatalf("%s is not in the catalogue", start)
	}
	w := Requirements{Version: "1", Zones: []string{"a"}, CPU: metric == "cpu", Memory: metric == "memory", OfferedKnown: offered}
	if offered {
		for _, f := range shop {
			w.Offered = append(w.Offered, f.Code)
		}
	}
	alarmed := func(f Flavor) (it, other int) {
		if w.CPU {
			return f.VCPUs, f.MemoryGB
		}
		return f.MemoryGB, f.VCPUs
	}
	var ladder []Flavor
	for {
		w.Current = current
		next, ok := Next(Ladder(shop, w))
		if !ok {
			break
		}
		is, other := alarmed(next.Flavor)
		was, otherWas := alarmed(current)
		switch {
		case is <= was:
			t.Fatalf("%s from %s: %s does not grow after %s", metric, start, next.Code, current.Code)
		case other < otherWas:
			t.Fatalf("%s from %s: %s lowers the other dimension of %s", metric, start, next.Code, current.Code)
		case next.Mode != current.Mode || next.Engine != current.Engine:
			t.Fatalf("%s from %s: %s is another mode or engine than %s", metric, start, next.Code, current.Code)
		case !offered && next.Family() != current.Family():
			t.Fatalf("%s from %s: %s is another family than %s, and nothing says that it is offered", metric, start, next.Code, current.Code)
		}
		ladder = append(ladder, next.Flavor)
		current = next.Flavor
	}
	// It ends where there is nothing left, not before.
	top, otherTop := alarmed(current)
	for _, f := range shop {
		is, other := alarmed(f)
		if f.Engine == current.Engine && f.Mode == current.Mode && (offered || f.Family() == current.Family()) && is > top && other >= otherTop {
			t.Fatalf("%s from %s: it ends at %s, though there is %s", metric, start, current.Code, f.Code)
		}
	}
	return ladder
}

// TestLadders writes down every ladder, so that a change in what people are sold is seen in review.
func TestLadders(t *testing.T) {
	all := classes(t)
	shop := catalogue(all)
	byCode := map[string]string{} // code in its mode → base code
	for _, c := range all {
		for _, code := range c.Codes {
			byCode[code] = c.Base
		}
	}
	var out bytes.Buffer
	fmt.Fprint(&out, "Where alarm after alarm leads, from every documented flavor. Each step is code (vCPUs/GB); codes are without\n"+
		"their engine and the suffix of their mode.\n\n"+
		"  cpu, memory           which alarm, without a resize list of the instance: the same family only\n"+
		"  cpu any, memory any   the same with every code on that list; left out where it is the same ladder\n\n"+
		"Ladders that are not the same in all modes name theirs.\n")
	engine := ""
	for _, c := range all {
		if c.Engine != engine {
			engine = c.Engine
			fmt.Fprintf(&out, "\n== %s\n", engine)
		}
		prefix := c.Base[:strings.Index(c.Base, Family(c.Base)+".")]
		fmt.Fprintf(&out, "\n%s (%d/%d)\n", strings.TrimPrefix(c.Base, prefix), c.VCPUs, c.MemoryGB)
		for _, metric := range []string{"cpu", "memory"} {
			for _, offered := range []bool{false, true} {
				inMode := map[string][]string{} // ladder → modes
				for _, mode := range []string{"single", "ha", "replica"} {
					code, sold := c.Codes[mode]
					if !sold {
						continue
					}
					line := steps(climb(t, shop, code, metric, offered), byCode, prefix)
					if offered && line == steps(climb(t, shop, code, metric, false), byCode, prefix) {
						continue
					}
					inMode[line] = append(inMode[line], mode)
				}
				name := metric
				if offered {
					name += " any"
				}
				for _, line := range slices.Sorted(maps.Keys(inMode)) {
					modes := ""
					if len(inMode[line]) < len(c.Codes) {
						modes = " (" + strings.Join(inMode[line], ", ") + ")"
					}
					fmt.Fprintf(&out, "  %-10s %s%s\n", name, line, modes)
				}
			}
		}
	}
	golden := filepath.Join("testdata", "ladders.golden")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("ladders differ from %s (go test ./flavors -update writes it anew):\n%s", golden, diff)
	}
}

func steps(ladder []Flavor, base map[string]string, prefix string) string {
	if len(ladder) == 0 {
		return "–"
	}
	var parts []string
	for _, f := range ladder {
		parts = append(parts, fmt.Sprintf("%s (%d/%d)", strings.TrimPrefix(base[f.Code], prefix), f.VCPUs, f.MemoryGB))
	}
	return "→ " + strings.Join(parts, " → ")
}
