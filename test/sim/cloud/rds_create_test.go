// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"maps"
	"strings"
	"testing"
	"time"
)

func (w *world) createBody(change map[string]any) map[string]any {
	body := map[string]any{
		"name": "rds-test", "password": "acc-Test-1", "flavor_ref": "rds.pg.n1.large.2", "region": "eu-de",
		"availability_zone": "eu-de-01", "vpc_id": "v", "subnet_id": "s", "security_group_id": w.identity.securityGroupID,
		"datastore": map[string]any{"type": "PostgreSQL", "version": "15"},
		"volume":    map[string]any{"type": "CLOUDSSD", "size": 100},
	}
	maps.Copy(body, change)
	return body
}

func TestInstanceIsBuiltUsedAndDeleted(t *testing.T) {
	w := start(t, Options{})
	out := w.call(202, "rds", "POST", "/instances", w.createBody(nil))
	in := Instance{ID: out["instance"].(map[string]any)["id"].(string)}
	if row := w.get1(in); row["status"] != StatusBuild || row["enable_ssl"] != true {
		t.Error("while it is created:", row)
	}
	w.act(409, in, enlarge(110))
	w.call(409, "rds", "DELETE", "/instances/"+in.ID, nil)
	w.minutes(3)
	if metrics := w.call(200, "ces", "GET", "/metrics", nil)["metrics"].([]any); len(metrics) != 0 {
		t.Error("data of an instance that is created:", metrics)
	}
	w.clock.advance(3 * time.Minute)
	create := "/jobs?id=" + out["job_id"].(string)
	if j := w.call(200, "rds", "GET", create, nil)["job"].(map[string]any); j["status"] != jobCompleted {
		t.Error(j)
	}
	if row := w.get1(in); row["status"] != StatusActive {
		t.Error("after the job:", row)
	}
	tags := []tag{{"a", "1"}, {"b", "2"}}
	w.call(200, "rds", "POST", "/instances/"+in.ID+"/tags/action", map[string]any{"action": "create", "tags": tags})
	w.call(200, "rds", "POST", "/instances/"+in.ID+"/tags/action", map[string]any{"action": "delete", "tags": tags[:1]})
	if row := w.get1(in)["tags"].([]any); len(row) != 1 || row[0].(map[string]any)["key"] != "b" {
		t.Error(row)
	}
	job := w.call(202, "rds", "DELETE", "/instances/"+in.ID, nil)["job_id"].(string)
	if j := w.call(200, "rds", "GET", "/jobs?id="+job, nil)["job"].(map[string]any); j["status"] != jobCompleted {
		t.Error(j)
	}
	w.act(404, in, enlarge(110))
}

func TestCreateRefusals(t *testing.T) {
	w := start(t, Options{})
	store := func(engine, version string) map[string]any {
		return map[string]any{"datastore": map[string]any{"type": engine, "version": version}}
	}
	volume := func(kind string, size int) map[string]any {
		return map[string]any{"volume": map[string]any{"type": kind, "size": size}}
	}
	for name, c := range map[string]struct {
		change map[string]any
		status int
		code   string
	}{
		"short name":        {map[string]any{"name": "rds"}, 400, "DBS.200021"},
		"password of kinds": {map[string]any{"password": "onlyletters1"}, 400, "DBS.200052"},
		"engine":            {store("postgresql", "15"), 400, "DBS.200042"},
		"version":           {store("PostgreSQL", "11"), 400, "DBS.200041"},
		"flavor":            {map[string]any{"flavor_ref": "rds.pg.n9.large"}, 400, "DBS.200053"},
		"other engine":      {map[string]any{"flavor_ref": "rds.mysql.c2.medium"}, 400, "DBS.200053"},
		"ha in one zone":    {map[string]any{"flavor_ref": "rds.pg.n1.large.2.ha"}, 400, "DBS.200054"},
		"volume type":       {volume("cloudssd", 100), 400, "DBS.200026"},
		"no multiple of 10": {volume("ESSD", 105), 400, "DBS.200027"},
		"volume size":       {volume("ESSD", 30), 400, "DBS.200023"},
		"zone":              {map[string]any{"availability_zone": "eu-nl-01"}, 404, "DBS.200470"},
		"network":           {map[string]any{"subnet_id": ""}, 400, "DBS.200001"},
		"security group":    {map[string]any{"security_group_id": "x"}, 404, "DBS.200050"},
		"read replica":      {map[string]any{"replica_of_id": "x"}, 400, "DBS.200001"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			if out := w.call(c.status, "rds", "POST", "/instances", w.createBody(c.change)); out["error_code"] != c.code {
				t.Errorf("%v, want %s", out, c.code)
			}
		})
	}
	if n := len(w.call(200, "rds", "GET", "/instances", nil)["instances"].([]any)); n != 0 {
		t.Errorf("%d instances after refusals", n)
	}
	in := w.newInstance("rds.mysql.c2.medium", 40, Workload{})
	many := map[string]any{"action": "create", "tags": []tag{}}
	for k := range strings.SplitSeq("abcdefghijklmnopqrstu", "") {
		many["tags"] = append(many["tags"].([]tag), tag{Key: k})
	}
	if out := w.call(400, "rds", "POST", "/instances/"+in.ID+"/tags/action", many); out["error_code"] != "DBS.200087" {
		t.Error(out)
	}
}

func TestVersionsAndStorageTypesOfAnEngine(t *testing.T) {
	w := start(t, Options{})
	if rows := w.call(200, "rds", "GET", "/datastores/mysql", nil)["dataStores"].([]any); len(rows) != 2 {
		t.Error(rows)
	}
	types := w.call(200, "rds", "GET", "/storage-type/MySQL?version_name=8.0", nil)
	if rows := types["storage_type"].([]any); len(rows) != 2 {
		t.Error(rows)
	}
	w.call(400, "rds", "GET", "/datastores/oracle", nil)
	w.call(400, "rds", "GET", "/storage-type/MySQL?version_name=16", nil)
}
