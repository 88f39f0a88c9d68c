// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
)

const rdsTime = "2006-01-02T15:04:05-0700"

func (c *Cloud) rdsOperations() []operation {
	const base = "/rds/v3/{project}"
	op := func(name, method, path string, run func(*call) reply) operation {
		return operation{service: "rds", name: name, pattern: method + " " + base + path, run: run}
	}
	action := op("InstanceAction", "POST", "/instances/{instance}/action", c.onInstance(c.act))
	action.naming = actionName
	return []operation{
		op("ListInstances", "GET", "/instances", c.listInstances),
		action,
		op("ListResizeFlavors", "GET", "/instances/{instance}/flavors-resize", c.onInstance(c.listResizeFlavors)),
		op("ListFlavors", "GET", "/flavors/{engine}", c.listFlavors),
		op("ShowJob", "GET", "/jobs", c.showJob),
	}
}

// rdsError: RDS api, abnormal_request_results.rst and error_codes.rst.
func rdsError(status int, code, format string, args ...any) reply {
	return jsonReply(status, fields{"error_code": code, "error_msg": fmt.Sprintf(format, args...)})
}

func (c *Cloud) onInstance(run func(*call, *instance) reply) func(*call) reply {
	return func(q *call) reply {
		in := c.instance(q.PathValue("instance"))
		if in == nil {
			return rdsError(http.StatusNotFound, "DBS.200002", "The DB instance does not exist.")
		}
		return run(q, in)
	}
}

func flavorID(code string) string {
	h := sha256.Sum256([]byte(code))
	return dashed(hex.EncodeToString(h[:16]))
}

// listInstances filters as RDS does (RDS api: querying_db_instances.rst). The archived operator finds its instance by
// name.
func (c *Cloud) listInstances(q *call) reply {
	matches := func(filter, text string) bool {
		want := q.URL.Query().Get(filter)
		return want == "" || want == text
	}
	var found []*instance
	for _, in := range c.instances {
		if matches("id", in.ID) && matches("name", in.Name) && matches("datastore_type", in.Engine) {
			found = append(found, in)
		}
	}
	from, to, ok := q.page(len(found))
	if !ok {
		return rdsError(http.StatusBadRequest, "DBS.200001", "Parameter error: offset or limit.")
	}
	rows := []fields{}
	for _, in := range found[from:to] {
		rows = append(rows, c.instanceFields(in))
	}
	return jsonReply(http.StatusOK, fields{"instances": rows, "total_count": len(found)})
}

func (c *Cloud) instanceFields(in *instance) fields {
	nodes := []fields{}
	for _, n := range in.Nodes {
		nodes = append(nodes, fields{"id": n.ID, "name": n.Name, "role": n.Role, "status": c.status(in), "availability_zone": n.Zone})
	}
	related := []fields{}
	if in.ReplicaOf != "" {
		related = append(related, fields{"id": in.ReplicaOf, "type": "replica_of"})
	}
	for _, other := range c.instances {
		if other.ReplicaOf == in.ID {
			related = append(related, fields{"id": other.ID, "type": "replica"})
		}
	}
	version := c.listedVersion(in)
	out := fields{
		"id": in.ID, "name": in.Name, "alias": "", "status": c.status(in), "type": in.Type, "region": c.opts.Region,
		"datastore": fields{"type": in.Engine, "version": version, "complete_version": version},
		"cpu":       strconv.Itoa(in.VCPUs), "mem": strconv.Itoa(in.MemoryGB), "flavor_ref": in.Flavor,
		"volume": fields{"type": in.VolumeType, "size": in.VolumeGB}, "nodes": nodes, "related_instance": related,
		"created": in.Created.UTC().Format(rdsTime), "updated": in.Created.UTC().Format(rdsTime),
		"private_ips": []string{"192.168.0.10"}, "public_ips": []string{}, "port": 3306, "db_user_name": "root",
		"vpc_id": "", "subnet_id": "", "security_group_id": "", "maintenance_window": "02:00-06:00", "switch_strategy": "", "time_zone": "UTC",
		"backup_strategy": fields{"start_time": "01:00-02:00", "keep_days": 7}, "charge_info": fields{"charge_mode": "postPaid"},
		"tags": []fields{}, "disk_encryption_id": "", "associated_with_ddm": false,
		"enable_ssl": in.Engine == "PostgreSQL", // always; RDS umn: configuring_ssl_encryption.rst
	}
	if in.Type == "Ha" {
		out["ha"] = fields{"mode": "Ha", "replication_mode": "async"}
	}
	for _, key := range in.Omits {
		delete(out, key)
		if key == "size" {
			delete(out["volume"].(fields), key)
		}
	}
	return out
}

// listedVersion returns the version of an instance as the list of instances has it.
func (c *Cloud) listedVersion(in *instance) string {
	if !c.settings.MinorVersions {
		return in.Version
	}
	return in.Version + map[string]string{"MySQL": ".28", "PostgreSQL": ".6"}[in.Engine]
}

// actionName distinguishes the operations of POST …/action.
func actionName(body []byte) string {
	switch {
	case bytes.Contains(body, []byte(`"resize_flavor"`)):
		return "ResizeFlavor"
	case bytes.Contains(body, []byte(`"enlarge_volume"`)):
		return "EnlargeVolume"
	}
	return "InstanceAction"
}
