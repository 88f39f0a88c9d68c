// SPDX-License-Identifier: Apache-2.0

package flavors

import (
	"encoding/json"
	"os"
	"testing"
)

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

// climb takes the next flavor as long as there is one, and fails if a step or the end of the ladder is wrong.
func climb(t *testing.T, shop []Flavor, start string, metric string, offered bool) {
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
}

// A change of the order of flavors fails here only if a ladder gets worse. TestNextReturnsTheSmallestLargerFlavor has the order itself.
func TestEveryDocumentedFlavorHasALadderToTheLargest(t *testing.T) {
	all := classes(t)
	shop := catalogue(all)
	for _, c := range all {
		for _, code := range c.Codes {
			for _, metric := range []string{"cpu", "memory"} {
				for _, offered := range []bool{false, true} {
					climb(t, shop, code, metric, offered)
				}
			}
		}
	}
}
