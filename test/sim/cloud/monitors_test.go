// SPDX-License-Identifier: Apache-2.0

package simcloud_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// The scenarios of opentelekomcloud-infra/apimon-tests, which T-Systems runs against its own cloud: the same calls in the
// same order, as plain requests. What they expect of the real cloud must hold in the simulation.

func TestMonitorOfCloudEye(t *testing.T) { // scenario23_ces.yaml
	c := loggedIn(t)
	// The rule is of a server, which does not exist here: Cloud Eye accepts it. It is switched off and has no topics.
	id := c.call(201, "POST", ces+"/alarms", `{"alarm_name":"scenario23-alarm","alarm_description":"","metric":{"namespace":"SYS.ECS","metric_name":"cpu_util",
		"dimensions":[{"name":"instance_id","value":"00000000-0000-4000-8000-000000000001"}]},
		"condition":{"period":300,"filter":"average","comparison_operator":">=","value":5,"unit":"%","count":1},
		"alarm_level":2,"alarm_enabled":false,"alarm_action_enabled":false,"alarm_actions":[],"ok_actions":[]}`)["alarm_id"].(string)
	enabled := func() any {
		row := c.call(200, "GET", ces+"/alarms/"+id, "")["metric_alarms"].([]any)[0].(map[string]any)
		if row["alarm_id"] != id {
			t.Errorf("%v", row)
		}
		return row["alarm_enabled"]
	}
	if enabled() != false {
		t.Error("the rule is on, but was created off")
	}
	c.call(204, "PUT", ces+"/alarms/"+id+"/action", `{"alarm_enabled":true}`)
	if rules := c.call(200, "GET", ces+"/alarms", "")["metric_alarms"].([]any); len(rules) != 1 {
		t.Errorf("%v", rules)
	}
	if enabled() != true {
		t.Error("the rule is off, but was switched on")
	}
	c.call(200, "GET", ces+"/metrics?order=desc", "")
	// A metric that nobody has is no error.
	if rows := c.call(200, "GET", ces+"/metrics?namespace=SYS.ECS&metric_name=cpu_util&order=desc", "")["metrics"].([]any); len(rows) != 0 {
		t.Errorf("%v", rows)
	}
	c.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 100 }) // as a capture shows
	quota := c.call(200, "GET", ces+"/quotas", "")["quotas"].(map[string]any)["resources"].([]any)[0].(map[string]any)
	if quota["quota"] != 100.0 || quota["used"] != 1.0 || quota["type"] != "alarm" {
		t.Errorf("%v", quota)
	}
	c.call(204, "DELETE", ces+"/alarms/"+id, "")
}

func TestMonitorOfInstances(t *testing.T) { // scenario44_rds_instance.yaml, without backups, versions and storage types, which are not simulated
	for engine, version := range map[string]string{"MySQL": "8.0", "PostgreSQL": "17"} {
		t.Run(engine, func(t *testing.T) {
			c := loggedIn(t)
			const zone = "eu-de-01"
			var usable []map[string]any
			for _, row := range c.call(200, "GET", rds+"/flavors/"+engine, "")["flavors"].([]any) {
				f := row.(map[string]any)
				versions, status := fmt.Sprint(f["version_name"]), f["az_status"].(map[string]any)
				if f["instance_mode"] == "single" && status[zone] == "normal" && strings.Contains(versions, version) {
					usable = append(usable, f)
				}
			}
			flavor := slices.MinFunc(usable, func(a, b map[string]any) int {
				return cmp.Compare(number(a["vcpus"].(string)), number(b["vcpus"].(string)))
			})
			for _, by := range []string{"id", "name"} {
				if n := c.call(200, "GET", rds+"/instances?"+by+"=scn44", "")["total_count"]; n != 0.0 {
					t.Errorf("%v instances before the creation", n)
				}
			}
			group := c.call(200, "GET", "/ecs/v2.1/{project}/os-security-groups", "")["security_groups"].([]any)[0].(map[string]any)["id"]
			made := c.call(202, "POST", rds+"/instances", fmt.Sprintf(`{"name":"scn44","datastore":{"type":%q,"version":%q},"flavor_ref":%q,"volume":{"type":"CLOUDSSD","size":40},
				"region":"eu-de","availability_zone":%q,"vpc_id":"v","subnet_id":"s","security_group_id":%q,"password":"Made-up-4-this",
				"backup_strategy":{"start_time":"02:00-03:00","keep_days":1}}`, engine, version, flavor["spec_code"], zone, group))
			job, id := made["job_id"].(string), made["instance"].(map[string]any)["id"].(string)
			c.pass(10 * time.Second)
			c.completed(job)
			for _, filter := range []string{"id=" + id, "name=scn44"} {
				row := c.call(200, "GET", rds+"/instances?"+filter, "")["instances"].([]any)[0].(map[string]any)
				if row["status"] != "ACTIVE" || row["volume"].(map[string]any)["size"] != 40.0 {
					t.Errorf("%v", row)
				}
			}
			job = c.call(202, "DELETE", rds+"/instances/"+id, "")["job_id"].(string)
			c.pass(10 * time.Second)
			c.completed(job)
			if n := c.call(200, "GET", rds+"/instances?id="+id, "")["total_count"]; n != 0.0 {
				t.Errorf("%v instances after the deletion", n)
			}
		})
	}
}

// completed reads a job every 5 seconds for at most 777 seconds, as the monitor does.
func (c *client) completed(job string) {
	c.t.Helper()
	status := any("")
	for range 777 / 5 {
		status = c.call(200, "GET", rds+"/jobs?id="+job, "")["job"].(map[string]any)["status"]
		if status != "Running" {
			break
		}
		c.pass(5 * time.Second)
	}
	if status != "Completed" {
		c.t.Errorf("the job is %v", status)
	}
}

func number(s string) float64 {
	n, _ := strconv.ParseFloat(s, 64)
	return n
}
