// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func (c *client) act(want int, id, body string) map[string]any {
	c.t.Helper()
	return c.call(want, "POST", rds+"/instances/"+id+"/action", body)
}

func enlarge(gb int) string { return fmt.Sprintf(`{"enlarge_volume":{"size":%d}}`, gb) }

func resize(flavor string) string { return fmt.Sprintf(`{"resize_flavor":{"spec_code":%q}}`, flavor) }

// The codes are those of RDS' manual, error_codes.rst, and of captured replies.
func TestRDSRefusesWithTheDocumentedCode(t *testing.T) {
	c := loggedIn(t)
	c.sim.Configure(func(s *simcloud.Settings) { s.RefuseEnlargeWhenFull = true })
	single, full := c.instance("rds.mysql.c2.medium", 50, 0), c.instance("rds.mysql.c2.medium", 50, 46)
	ha, rebooting := c.instance("rds.pg.n1.large.2.ha", 50, 0), c.instance("rds.mysql.c2.medium", 50, 0)
	busy, primary := c.instance("rds.mysql.c2.medium", 50, 0), c.instance("rds.pg.n1.large.2", 50, 0)
	replica, err := c.sim.AddInstance(simcloud.Instance{Flavor: "rds.pg.n1.large.2.rr", VolumeGB: 50, ReplicaOf: primary.ID})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.sim.ChangeInstance(rebooting.ID, func(in *simcloud.Instance) { in.Status = "REBOOTING" }); err != nil {
		t.Fatal(err)
	}
	c.sim.SetFlavorStatus("rds.pg.n1.xlarge.2.ha", "eu-de-02", simcloud.FlavorSoldOut)
	c.sim.SetFlavorStatus("rds.pg.n1.xlarge.4.ha", "eu-de-01", simcloud.FlavorUnsupported)
	c.sim.SetFlavorStatus("rds.pg.n1.2xlarge.4.ha", "eu-de-03", simcloud.FlavorSoldOut)
	c.act(202, busy.ID, enlarge(60))
	for name, tc := range map[string]struct {
		id, body string
		status   int
		code     any
	}{
		"no multiple of ten":          {single.ID, enlarge(65), 400, "DBS.200306"},
		"the size that it has":        {single.ID, enlarge(50), 400, "DBS.200306"},
		"smaller":                     {single.ID, enlarge(40), 400, "DBS.200306"},
		"too large":                   {single.ID, enlarge(4010), 400, "DBS.200023"},
		"status":                      {rebooting.ID, enlarge(60), 400, "DBS.200086"},
		"busy":                        {busy.ID, enlarge(70), 409, "DBS.200011"},
		"full":                        {full.ID, enlarge(60), 409, "DBS.200316"},
		"flavor when full":            {full.ID, resize("rds.mysql.c2.large"), 409, "DBS.200316"},
		"no such flavor":              {single.ID, resize("rds.mysql.c9.large"), 400, "DBS.200053"},
		"another engine":              {single.ID, resize("rds.pg.c2.large"), 400, "DBS.200053"},
		"the flavor that it has":      {single.ID, resize("rds.mysql.c2.medium"), 400, "DBS.280239"},
		"another mode":                {single.ID, resize("rds.mysql.c2.large.ha"), 400, "DBS.200054"},
		"sold out for the standby":    {ha.ID, resize("rds.pg.n1.xlarge.2.ha"), 400, "DBS.280450"},
		"unsupported for the primary": {ha.ID, resize("rds.pg.n1.xlarge.4.ha"), 400, "DBS.200054"},
		"primary above its replica":   {primary.ID, resize("rds.pg.n1.xlarge.2"), 400, "DBS.200054"},
		"replica below its primary":   {replica.ID, resize("rds.pg.n1.medium.2.rr"), 400, "DBS.200054"},
		"no such instance":            {"x", enlarge(60), 404, "DBS.200002"},
		"neither":                     {single.ID, `{"restart":{}}`, 400, "DBS.200001"},
	} {
		if got := c.act(tc.status, tc.id, tc.body); got["error_code"] != tc.code {
			t.Errorf("%s: %v, want %s", name, got, tc.code)
		}
	}
	c.act(202, ha.ID, resize("rds.pg.n1.2xlarge.4.ha")) // sold out in a zone that it does not use
	c.act(202, replica.ID, resize("rds.pg.n1.xlarge.2.rr"))
	c.pass(10 * time.Minute)
	c.act(202, primary.ID, resize("rds.pg.n1.xlarge.2"))
}

// RDS umn: scaling_up_storage_space.rst. With ReadOnlyStopsWrites, a read-only instance does not fill further.
func TestInstanceIsReadOnlyAboveTheDocumentedLimit(t *testing.T) {
	type step struct {
		gb   int // 0 keeps the size
		used float64
	}
	for name, tc := range map[string]struct {
		stops      bool
		gb, before int
		steps      []step
		want       string // used space after each step, R if read-only
	}{
		"under 5 GB free":                {false, 40, 0, []step{{0, 34.9}, {0, 35}, {0, 35.1}, {0, 34.9}, {0, 34.8}}, "34.9 35 35.1R 34.9R 34.8"},
		"97 % used, until 87 %":          {false, 500, 0, []step{{0, 484}, {0, 485}, {0, 436}, {0, 435}}, "484 485R 436R 435"},
		"30 GB free of 1 TB, until 150":  {false, 1000, 0, []step{{0, 969}, {0, 971}, {0, 851}, {0, 850}}, "969 971R 851R 850"},
		"stops at the limit":             {true, 40, 10, []step{{0, 39}, {0, 40}, {0, 34.9}, {0, 36}}, "35R 35R 34.9R 34.9R"},
		"stops at 97 %":                  {true, 500, 10, []step{{0, 500}}, "485R"},
		"stops at 30 GB free of 1,000":   {true, 1000, 10, []step{{0, 969}, {0, 999}}, "969 970R"},
		"clean-up, and writes again":     {true, 40, 10, []step{{0, 40}, {0, 30}, {0, 33}}, "35R 30 33"},
		"growth makes it writable":       {true, 40, 10, []step{{0, 40}, {50, 42}, {0, 50}}, "35R 42 45R"},
		"growth that leaves 140 GB free": {true, 1000, 10, []step{{0, 999}, {1110, 1000}, {1120, 1000}}, "970R 970R 1000"},
		"full from the start":            {true, 40, 38, []step{{0, 39}, {0, 38}}, "38R 38R"},
	} {
		c := newClient(t, nil)
		c.sim.Configure(func(s *simcloud.Settings) { s.ReadOnlyStopsWrites = tc.stops })
		id, got := c.instance("rds.mysql.c2.medium", tc.gb, float64(tc.before)).ID, ""
		for _, s := range tc.steps {
			err := c.sim.ChangeInstance(id, func(in *simcloud.Instance) {
				in.VolumeGB, in.Workload.UsedGB = max(s.gb, in.VolumeGB), s.used
			})
			now, _ := c.sim.Instance(id)
			if err != nil || now.ReadOnly != (now.Status == simcloud.StatusStorageFull) {
				t.Errorf("%s: read-only is %v and the status is %s, %v", name, now.ReadOnly, now.Status, err)
			}
			got += fmt.Sprint(" ", now.Workload.UsedGB) + map[bool]string{true: "R"}[now.ReadOnly]
		}
		if got = strings.TrimSpace(got); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
