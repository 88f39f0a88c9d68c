// SPDX-License-Identifier: Apache-2.0

package otcsim

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func (w *world) act(want int, in Instance, body map[string]any) map[string]any {
	w.t.Helper()
	return w.call(want, "rds", "POST", "/instances/"+in.ID+"/action", body)
}

func enlarge(gb int) map[string]any {
	return map[string]any{"enlarge_volume": map[string]any{"size": gb}}
}

func resize(code string) map[string]any {
	return map[string]any{"resize_flavor": map[string]any{"spec_code": code}}
}

func (w *world) get1(in Instance) map[string]any {
	w.t.Helper()
	rows := w.call(200, "rds", "GET", "/instances?id="+in.ID, nil)["instances"].([]any)
	if len(rows) != 1 {
		w.t.Fatalf("%d rows", len(rows))
	}
	return rows[0].(map[string]any)
}

func TestEnlargingAndResizingTakeEffectWhenTheJobEnds(t *testing.T) {
	for name, c := range map[string]struct {
		body   map[string]any
		takes  time.Duration
		volume float64
		flavor string
		cpu    string
	}{
		"volume": {enlarge(60), 4 * time.Minute, 60, "rds.mysql.c2.medium", "2"},
		"flavor": {resize("rds.mysql.n1.xlarge.4"), 10 * time.Minute, 40, "rds.mysql.n1.xlarge.4", "4"},
	} {
		for _, speed := range []float64{1, 60} {
			for _, fails := range []bool{false, true} {
				t.Run(fmt.Sprint(name, ", speed ", speed, ", fails ", fails), func(t *testing.T) {
					w := start(t, Options{Speed: speed, Settings: Settings{JobsFail: fails}})
					in := w.newInstance("rds.mysql.c2.medium", 40, Workload{UsedGB: 20})
					job := w.act(202, in, c.body)["job_id"].(string)
					w.clock.advance(w.span(c.takes) - time.Millisecond)
					row := w.get1(in)
					if row["status"] != StatusModifying || row["volume"].(map[string]any)["size"] != 40.0 || row["flavor_ref"] != in.Flavor {
						t.Error("while the job runs:", row)
					}
					if out := w.act(409, in, enlarge(70)); out["error_code"] != "DBS.200011" {
						t.Error(out)
					}
					if j := w.call(200, "rds", "GET", "/jobs?id="+job, nil)["job"].(map[string]any); j["status"] != "Running" {
						t.Error(j)
					}
					w.clock.advance(time.Millisecond)
					want, status := c, "Completed"
					if fails {
						want.volume, want.flavor, want.cpu, status = 40, in.Flavor, "2", "Failed"
					}
					row = w.get1(in)
					if row["status"] != StatusActive || row["volume"].(map[string]any)["size"] != want.volume || row["flavor_ref"] != want.flavor || row["cpu"] != want.cpu {
						t.Error("after the job:", row)
					}
					if j := w.call(200, "rds", "GET", "/jobs?id="+job, nil)["job"].(map[string]any); j["status"] != status {
						t.Error(j)
					}
				})
			}
		}
	}
}

func TestOnlySoManyJobsOfAnInstanceFail(t *testing.T) {
	w := start(t, Options{})
	in := w.newInstance("rds.mysql.c2.medium", 40, Workload{})
	if err := w.ChangeInstance(in.ID, func(in *Instance) { in.FailingJobs = 1 }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []float64{40, 60} {
		w.act(202, in, enlarge(60))
		w.clock.advance(4 * time.Minute)
		if row := w.get1(in); row["volume"].(map[string]any)["size"] != want {
			t.Errorf("want %v GB: %v", want, row)
		}
	}
}

func TestRDSRefusals(t *testing.T) {
	w := start(t, Options{})
	single := w.newInstance("rds.mysql.c2.medium", 50, Workload{})
	ha, other := w.newInstance("rds.pg.n1.large.2.ha", 50, Workload{}), w.newInstance("rds.pg.n1.large.2.ha", 50, Workload{})
	rebooting := w.newInstance("rds.mysql.c2.medium", 50, Workload{})
	full := w.newInstance("rds.mysql.c2.medium", 50, Workload{UsedGB: 46})
	primary := w.newInstance("rds.pg.n1.large.2", 50, Workload{})
	replica, err := w.AddInstance(Instance{Flavor: "rds.pg.n1.large.2.rr", VolumeGB: 50, ReplicaOf: primary.ID})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.ChangeInstance(rebooting.ID, func(in *Instance) { in.Status = "REBOOTING" }); err != nil {
		t.Fatal(err)
	}
	w.SetFlavorStatus("rds.pg.n1.xlarge.2.ha", "eu-de-02", FlavorSoldOut)
	w.SetFlavorStatus("rds.pg.n1.xlarge.4.ha", "eu-de-01", FlavorUnsupported)
	w.SetFlavorStatus("rds.pg.n1.2xlarge.4.ha", "eu-de-03", FlavorSoldOut)
	w.Configure(func(s *Settings) { s.RefuseEnlargeWhenFull = true })
	for name, c := range map[string]struct {
		in     Instance
		body   map[string]any
		status int
		code   string
	}{
		"no multiple of ten":            {single, enlarge(65), 400, "DBS.200027"},
		"no larger":                     {single, enlarge(50), 400, "DBS.200023"},
		"smaller":                       {single, enlarge(40), 400, "DBS.200023"},
		"too large":                     {single, enlarge(4010), 400, "DBS.200023"},
		"status":                        {rebooting, enlarge(60), 400, "DBS.200086"},
		"full":                          {full, enlarge(60), 409, "DBS.200316"},
		"flavor when full":              {full, resize("rds.mysql.c2.large"), 409, "DBS.200316"},
		"no such flavor":                {single, resize("rds.mysql.c9.large"), 400, "DBS.200053"},
		"another engine":                {single, resize("rds.pg.c2.large"), 400, "DBS.200053"},
		"the same":                      {single, resize("rds.mysql.c2.medium"), 400, "DBS.280239"},
		"another mode":                  {single, resize("rds.mysql.c2.large.ha"), 400, "DBS.200054"},
		"sold out for the standby":      {ha, resize("rds.pg.n1.xlarge.2.ha"), 400, "DBS.280450"},
		"unsupported for the primary":   {ha, resize("rds.pg.n1.xlarge.4.ha"), 400, "DBS.200054"},
		"primary above its replica":     {primary, resize("rds.pg.n1.xlarge.2"), 400, "DBS.200054"},
		"replica below its primary":     {replica, resize("rds.pg.n1.medium.2.rr"), 400, "DBS.200054"},
		"no such instance":              {Instance{ID: "x"}, enlarge(60), 404, "DBS.200002"},
		"neither":                       {single, map[string]any{"restart": map[string]any{}}, 400, "DBS.200001"},
		"sold out elsewhere is allowed": {other, resize("rds.pg.n1.2xlarge.4.ha"), 202, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			out := w.act(c.status, c.in, c.body)
			if code, _ := out["error_code"].(string); code != c.code {
				t.Errorf("%v, want %s", out, c.code)
			}
		})
	}
	w.act(202, replica, resize("rds.pg.n1.xlarge.2.rr"))
	w.clock.advance(10 * time.Minute)
	w.act(202, primary, resize("rds.pg.n1.xlarge.2"))
}

func TestInstancesAreListedInPagesAndByFilter(t *testing.T) {
	w := start(t, Options{})
	var ids []string
	for i := range 101 {
		in, err := w.AddInstance(Instance{Name: fmt.Sprintf("db-%03d", i), Flavor: "rds.mysql.c2.medium", VolumeGB: 40})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, in.ID)
	}
	for query, want := range map[string]string{
		"":                    "100 of 101",
		"offset=100":          "1 of 101",
		"offset=98&limit=2":   "2 of 101",
		"offset=200":          "0 of 101",
		"id=" + ids[7]:        "1 of 1",
		"id=" + ids[7][:30]:   "0 of 0",
		"name=db-00":          "0 of 0",
		"name=*db-00":         "10 of 10",
		"datastore_type=x":    "0 of 0",
		"type=Single&limit=1": "1 of 101",
	} {
		out := w.call(200, "rds", "GET", "/instances?"+query, nil)
		if got := fmt.Sprintf("%d of %v", len(out["instances"].([]any)), out["total_count"]); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	w.call(400, "rds", "GET", "/instances?limit=0", nil)
	w.call(400, "rds", "GET", "/instances?limit=101", nil)
}

func TestReplicasAndStandbysAreListed(t *testing.T) {
	w := start(t, Options{})
	primary := w.newInstance("rds.pg.c2.medium.ha", 40, Workload{})
	replica, err := w.AddInstance(Instance{Flavor: "rds.pg.c2.medium.rr", VolumeGB: 40, ReplicaOf: primary.ID})
	if err != nil {
		t.Fatal(err)
	}
	row := w.get1(primary)
	related := row["related_instance"].([]any)[0].(map[string]any)
	nodes := row["nodes"].([]any)
	if row["type"] != "Ha" || related["id"] != replica.ID || related["type"] != "replica" || len(nodes) != 2 || nodes[1].(map[string]any)["availability_zone"] != "eu-de-02" {
		t.Error(row)
	}
	if !strings.HasSuffix(primary.ID, "in03") || !strings.HasSuffix(primary.Nodes[0].ID, "no03") {
		t.Error(primary.ID, primary.Nodes)
	}
	row = w.get1(replica)
	if row["type"] != "Replica" || row["related_instance"].([]any)[0].(map[string]any)["type"] != "replica_of" {
		t.Error(row)
	}
}

func TestStorageFull(t *testing.T) {
	for name, c := range map[string]struct {
		gb     int
		used   []float64
		status string // of each, A or F
	}{
		"under 5 GB free":              {40, []float64{34.9, 35, 35.1, 34.9, 34.8}, "AAFFA"},
		"97 % used, until 87 %":        {500, []float64{484, 485, 436, 435}, "AFFA"},
		"30 GB free of 1 TB, till 150": {1000, []float64{969, 971, 851, 850}, "AFFA"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, Options{})
			in := w.newInstance("rds.mysql.c2.medium", c.gb, Workload{})
			got := ""
			for _, used := range c.used {
				if err := w.SetWorkload(in.ID, Workload{UsedGB: used}); err != nil {
					t.Fatal(err)
				}
				got += map[string]string{StatusActive: "A", StatusStorageFull: "F"}[w.get1(in)["status"].(string)]
			}
			if got != c.status {
				t.Errorf("%s, want %s", got, c.status)
			}
		})
	}
	w := start(t, Options{Settings: Settings{HideStorageFull: true}})
	in := w.newInstance("rds.mysql.c2.medium", 40, Workload{UsedGB: 39})
	if now, _ := w.Instance(in.ID); now.Status != StatusActive || !now.ReadOnly {
		t.Error(now.Status, now.ReadOnly)
	}
	w.act(202, in, enlarge(50))
}

func TestFlavorsOfEngineVersionAndMode(t *testing.T) {
	w := start(t, Options{})
	w.SetFlavorStatus("rds.mysql.n1.large.2", "eu-de-02", FlavorSoldOut)
	list := func(path string) map[string]map[string]any {
		out := map[string]map[string]any{}
		for _, r := range w.call(200, "rds", "GET", path, nil)["flavors"].([]any) {
			row := r.(map[string]any)
			out[row["spec_code"].(string)] = row
		}
		return out
	}
	my := list("/flavors/mysql?version_name=8.0")
	f := my["rds.mysql.n1.large.2"]
	status := f["az_status"].(map[string]any)
	if len(my) != 93 || f["vcpus"] != "2" || f["ram"] != 4.0 || f["instance_mode"] != "single" || status["eu-de-01"] != "normal" || status["eu-de-02"] != "sellout" {
		t.Error(len(my), f)
	}
	if c2 := my["rds.mysql.c2.medium.ha"]; c2["vcpus"] != "2" || c2["ram"] != 4.0 || c2["instance_mode"] != "ha" {
		t.Error(c2)
	}
	for query, want := range map[string]int{
		"/flavors/SQLServer?version_name=2019_EE": 52, "/flavors/SQLServer?version_name=2019_SE": 52, "/flavors/SQLServer": 78,
		"/flavors/PostgreSQL?version_name=9.6": 0, "/flavors/PostgreSQL?spec_code=rds.pg.c2.large.rr": 1,
	} {
		if got := len(list(query)); got != want {
			t.Errorf("%s: %d, want %d", query, got, want)
		}
	}
	w.call(400, "rds", "GET", "/flavors/Oracle", nil)
}

func TestResizeListOffersTheSameEngineVersionAndMode(t *testing.T) {
	w := start(t, Options{})
	in := w.newInstance("rds.mysql.c2.medium.ha", 40, Workload{})
	w.SetFlavorStatus("rds.mysql.n1.large.2.ha", "eu-de-01", FlavorSoldOut)
	codes := map[string]map[string]any{}
	groups := w.call(200, "rds", "GET", "/instances/"+in.ID+"/flavors-resize", nil)["flavor_groups"].([]any)
	for _, g := range groups {
		for _, f := range g.(map[string]any)["compute_flavors"].([]any) {
			codes[f.(map[string]any)["code"].(string)] = f.(map[string]any)
		}
	}
	f := codes["rds.mysql.n1.large.2.ha"]
	if len(groups) != 2 || len(codes) != 30 || codes[in.Flavor] != nil || f["ram"] != "4" || f["az_status"].(map[string]any)["eu-de-01"] != "abandon" {
		t.Error(len(groups), len(codes), f)
	}
	w.Configure(func(s *Settings) { s.NoResizeList = true })
	w.call(404, "rds", "GET", "/instances/"+in.ID+"/flavors-resize", nil)
}

func TestNativeAutoscaling(t *testing.T) {
	w := start(t, Options{})
	in := w.newInstance("rds.mysql.c2.medium", 100, Workload{UsedGB: 70})
	path := "/instances/" + in.ID + "/disk-auto-expansion"
	if out := w.call(200, "rds", "GET", path, nil); out["switch_option"] != false {
		t.Error(out)
	}
	w.call(400, "rds", "PUT", path, map[string]any{"switch_option": true, "limit_size": 90, "trigger_threshold": 10})
	w.call(400, "rds", "PUT", path, map[string]any{"switch_option": true, "limit_size": 200, "trigger_threshold": 12})
	w.call(200, "rds", "PUT", path, map[string]any{"switch_option": true, "limit_size": 130, "trigger_threshold": 15})
	if out := w.call(200, "rds", "GET", path, nil); out["switch_option"] != true || out["limit_size"] != 130.0 {
		t.Error(out)
	}
	w.minutes(2)
	sizes := ""
	for _, used := range []float64{84, 86, 119} {
		if err := w.SetWorkload(in.ID, Workload{UsedGB: used}); err != nil {
			t.Fatal(err)
		}
		w.minutes(6)
		now, _ := w.Instance(in.ID)
		sizes += fmt.Sprint(now.VolumeGB, " ")
	}
	if sizes != "100 120 130 " {
		t.Error(sizes)
	}
	w.call(200, "rds", "PUT", path, map[string]any{"switch_option": false})
	if now, _ := w.Instance(in.ID); now.AutoScale.On {
		t.Error("still on")
	}
}

func TestAddInstanceRefusesNonsense(t *testing.T) {
	w := start(t, Options{})
	for _, in := range []Instance{{Flavor: "x", VolumeGB: 40}, {Flavor: "rds.mysql.c2.medium", VolumeGB: 45}, {Flavor: "rds.mysql.c2.medium"}} {
		if _, err := w.AddInstance(in); err == nil {
			t.Errorf("%+v was added", in)
		}
	}
	if err := w.SetWorkload("x", Workload{}); err == nil {
		t.Error("workload of nothing")
	}
}
