// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"net/http"
	"testing"
)

func TestListOmitsFieldsOfTheInstanceThatIsSetSo(t *testing.T) {
	w := start(t, Options{})
	in, other := w.newInstance("rds.mysql.c2.medium", 40, Workload{}), w.newInstance("rds.mysql.c2.medium", 40, Workload{})
	w.change(in, func(in *Instance) { in.Omits = []string{"cpu", "mem", "size"} })
	for id, listed := range map[string]bool{in.ID: false, other.ID: true} {
		row := w.get1(Instance{ID: id})
		for key, in := range map[string]map[string]any{"cpu": row, "mem": row, "size": row["volume"].(map[string]any)} {
			if _, ok := in[key]; ok != listed {
				t.Errorf("%s is listed: %v, want %v", key, ok, listed)
			}
		}
	}
	w.act(400, in, enlarge(40)) // the simulation still knows the size
}

func TestCatalogueLeavesOutUnknownFlavors(t *testing.T) {
	w := start(t, Options{})
	in := w.newInstance("rds.mysql.c2.medium", 40, Workload{})
	listed := func(code string) int {
		return len(w.call(200, "rds", "GET", "/flavors/mysql?spec_code="+code, nil)["flavors"].([]any))
	}
	for _, n := range []int{1, 0} {
		if got := listed(in.Flavor); got != n {
			t.Errorf("%s is listed %d times, want %d", in.Flavor, got, n)
		}
		if row := w.get1(in); row["flavor_ref"] != in.Flavor || row["cpu"] != "2" || listed("rds.mysql.c2.large") != 1 {
			t.Error(row)
		}
		w.Configure(func(s *Settings) { s.UnknownFlavors = []string{in.Flavor} })
	}
}

func TestListOfFlavorsToResizeToIsRefused(t *testing.T) {
	w := start(t, Options{})
	in := w.newInstance("rds.mysql.c2.medium", 40, Workload{})
	list := "/instances/" + in.ID + "/flavors-resize"
	for _, r := range []Refusal{
		{http.StatusBadRequest, "DBS.200040", "The DB engine or version is not supported."}, Refusals()["permission"],
	} {
		w.Configure(func(s *Settings) { s.Refuse = map[string]Refusal{"ListResizeFlavors": r} })
		if out := w.call(r.Status, "rds", "GET", list, nil); out["error_code"] != r.Code || out["error_msg"] != r.Message {
			t.Error(out)
		}
	}
	w.Configure(func(s *Settings) { s.Refuse = nil })
	w.call(200, "rds", "GET", list, nil)
}

func TestListShowsMinorVersionsOfInstancesOnly(t *testing.T) {
	w := start(t, Options{Settings: Settings{MinorVersions: true}})
	for flavor, versions := range map[string][2]string{
		"rds.mysql.c2.medium": {"8.0", "8.0.28"}, "rds.pg.c2.medium": {"14", "14.6"},
		"rds.mssql.n1.2xlarge.2": {"2019_SE", "2019_SE"},
	} {
		in, err := w.AddInstance(Instance{Flavor: flavor, VolumeGB: 40, Version: versions[0]})
		if err != nil {
			t.Fatal(err)
		}
		store := w.get1(in)["datastore"].(map[string]any)
		if store["version"] != versions[1] || store["complete_version"] != versions[1] {
			t.Error(store)
		}
		for n, version := range versions {
			path := "/flavors/" + in.Engine + "?spec_code=" + flavor + "&version_name=" + version
			rows := w.call(200, "rds", "GET", path, nil)["flavors"].([]any)
			if known := n == 0 || version == versions[0]; (len(rows) == 1) != known {
				t.Errorf("%s: %v", path, rows)
			}
		}
	}
}
