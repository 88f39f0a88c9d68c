// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"net/http"
	"strings"
	"time"
)

// createDuration is the time to build an instance. It is a guess.
const createDuration = 6 * time.Minute

// createInstance starts a job, and lists the instance as BUILD until it ends. Only the acceptance tests of the SDK
// create instances, so it checks no more than [Cloud.AddInstance]. RDS api: creating_a_db_instance.rst.
func (c *Cloud) createInstance(q *call) reply {
	var in struct {
		Name      string `json:"name"`
		FlavorRef string `json:"flavor_ref"`
		Zones     string `json:"availability_zone"` // of each node, separated by commas
		Datastore struct {
			Version string `json:"version"`
		} `json:"datastore"`
		Volume struct {
			Type string `json:"type"`
			Size int    `json:"size"`
		} `json:"volume"`
	}
	shown := fields{}
	if q.decode(&in) != nil || q.decode(&shown) != nil {
		return rdsError(http.StatusBadRequest, "DBS.200001", "Parameter error.")
	}
	nodes := []Node{}
	for zone := range strings.SplitSeq(in.Zones, ",") {
		nodes = append(nodes, Node{Role: []string{"master", "slave"}[min(len(nodes), 1)], Zone: zone})
	}
	created, err := c.addInstance(Instance{
		Name: in.Name, Status: StatusBuild, Version: in.Datastore.Version, Flavor: in.FlavorRef, Nodes: nodes,
		VolumeType: in.Volume.Type, VolumeGB: in.Volume.Size, Created: q.now,
	})
	if err != nil {
		return rdsError(http.StatusBadRequest, "DBS.200001", "Parameter error: %v", err)
	}
	job := c.startJob(created, "CreateInstance", "", createDuration, q.now, func(in *Instance) { in.Status = StatusActive })
	delete(shown, "password")
	shown["id"], shown["status"] = created.ID, StatusBuild
	return jsonReply(http.StatusAccepted, fields{"job_id": job, "instance": shown})
}

// deleteInstance answers with a job that has ended, because how long a deletion takes is not documented.
func (c *Cloud) deleteInstance(q *call, in *instance) reply {
	if in.busy {
		rep, _ := c.refuseByStatus(in)
		return rep
	}
	c.removeInstance(in.ID)
	id := c.startJob(in, "DeleteInstance", "", 0, q.now, func(*Instance) {})
	c.finishJobs(q.now)
	return jsonReply(http.StatusAccepted, fields{"job_id": id})
}

type tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// tagInstance adds tags. RDS api: adding_tags_in_batches.rst.
func (c *Cloud) tagInstance(q *call, in *instance) reply {
	var body struct {
		Action string `json:"action"`
		Tags   []tag  `json:"tags"`
	}
	if err := q.decode(&body); err != nil || body.Action != "create" {
		return rdsError(http.StatusBadRequest, "DBS.200001", "Parameter error: only the action create is simulated.")
	}
	in.tags = append(in.tags, body.Tags...)
	return jsonReply(http.StatusOK, fields{})
}

// listSecurityGroups returns the group that every project has.
func (c *Cloud) listSecurityGroups(*call) reply {
	return jsonReply(http.StatusOK, fields{"security_groups": []fields{{
		"id": c.identity.securityGroupID, "name": "default", "description": "Default security group", "rules": []fields{},
		"tenant_id": c.identity.projectID,
	}}})
}

// removeInstance removes an instance with its jobs.
func (c *Cloud) removeInstance(id string) {
	remove(&c.jobs, func(j *job) bool { return j.Instance == id })
	remove(&c.instances, func(in *instance) bool { return in.ID == id })
}
