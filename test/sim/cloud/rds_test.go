// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"fmt"
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
		"no multiple of ten":            {single, enlarge(65), 400, "DBS.200306"},
		"no larger":                     {single, enlarge(50), 400, "DBS.200306"},
		"smaller":                       {single, enlarge(40), 400, "DBS.200306"},
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

func TestSomebodyElsesChangeStartsJustBeforeOurs(t *testing.T) {
	w := start(t, Options{})
	in := w.newInstance("rds.mysql.c2.medium", 40, Workload{})
	w.change(in, func(in *Instance) {
		in.OthersFirst = []OthersChange{{Takes: time.Minute}, {Flavor: "rds.mysql.c2.large"}, {Takes: time.Hour, VolumeGB: 60}}
	})
	for n, want := range []struct {
		takes  time.Duration
		flavor string
		gb     int
	}{
		{time.Minute, "rds.mysql.c2.medium", 40}, {10 * time.Minute, "rds.mysql.c2.large", 40}, {time.Hour, "rds.mysql.c2.large", 60},
	} {
		for range 2 { // the second request starts nothing
			if out := w.act(409, in, enlarge(50)); out["error_code"] != "DBS.200011" {
				t.Error(n, out)
			}
		}
		w.clock.advance(want.takes - time.Second)
		if row := w.get1(in); row["status"] != StatusModifying {
			t.Error(n, row["status"])
		}
		w.clock.advance(time.Second)
		now, _ := w.Instance(in.ID)
		if now.Status != StatusActive || now.Flavor != want.flavor || now.VolumeGB != want.gb {
			t.Error(n, now.Status, now.Flavor, now.VolumeGB)
		}
	}
	w.act(400, in, enlarge(50))
	w.act(202, in, enlarge(70))
}

// A primary and its read replica are enlarged in the order that GrowFirst names, or in any.
func TestEnlargeKeepsTheOrderOfPrimaryAndReplica(t *testing.T) {
	for first, want := range map[GrowFirst][2]int{GrowPrimaryFirst: {202, 400}, GrowReplicaFirst: {400, 202}, "": {202, 202}} {
		w := start(t, Options{Settings: Settings{GrowFirst: first}})
		primary := w.newInstance("rds.pg.n1.large.2", 50, Workload{})
		replica, err := w.AddInstance(Instance{Flavor: "rds.pg.n1.large.2.rr", VolumeGB: 50, ReplicaOf: primary.ID})
		if err != nil {
			t.Fatal(err)
		}
		for n, in := range []Instance{primary, replica} {
			if out := w.act(want[n], in, enlarge(60)); want[n] == 400 && out["error_code"] != "DBS.200308" {
				t.Errorf("first %q: %v", first, out)
			}
		}
		w.clock.advance(10 * time.Minute)
		for n, in := range []Instance{primary, replica} {
			if want[n] == 400 {
				w.act(202, in, enlarge(60))
			}
		}
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
