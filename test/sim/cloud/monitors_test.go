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
)

// T-Systems runs scenario44_rds_instance.yaml of opentelekomcloud-infra/apimon-tests against its own cloud. These are the
// same calls in the same order, without backups, versions and storage types, which are not simulated.
func TestMonitorOfInstances(t *testing.T) {
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
