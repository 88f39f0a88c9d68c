// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// createInput is the body that creates an instance. RDS api: creating_a_db_instance.rst.
type createInput struct {
	Name             string `json:"name"`
	Password         string `json:"password"`
	FlavorRef        string `json:"flavor_ref"`
	Region           string `json:"region"`
	AvailabilityZone string `json:"availability_zone"` // of each node, separated by commas
	VPCID            string `json:"vpc_id"`
	SubnetID         string `json:"subnet_id"`
	SecurityGroupID  string `json:"security_group_id"`
	Port             string `json:"port"`
	ReplicaOfID      string `json:"replica_of_id"`
	Datastore        struct {
		Type    string `json:"type"`
		Version string `json:"version"`
	} `json:"datastore"`
	Volume struct {
		Type string `json:"type"`
		Size int    `json:"size"`
	} `json:"volume"`
}

var instanceName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{3,63}$`)

// volumeTypes are today's two and those of older instances. The documents list CLOUDSSD and ESSD only. Their examples
// still have ULTRAHIGH, and the acceptance tests of the SDK create instances with COMMON.
func volumeTypes() []string { return []string{"CLOUDSSD", "ESSD", "COMMON", "ULTRAHIGH"} }

// createInstance starts a job, and lists the instance as BUILD until it ends. Read replicas are not simulated here.
func (c *Cloud) createInstance(q *call) reply {
	var in createInput
	if err := q.decode(&in); err != nil {
		return rdsError(http.StatusBadRequest, "DBS.200001", "Parameter error.")
	}
	if in.ReplicaOfID != "" {
		return rdsError(http.StatusBadRequest, "DBS.200001", "Parameter error: replica_of_id is not simulated.")
	}
	if r, refused := c.refuseCreate(&in); refused {
		return r
	}
	f, mode := c.flavor(in.FlavorRef)
	_, suffix := engineCodes(f.Engine)
	created := &instance{Instance: Instance{
		ID: hexID(32) + "in" + suffix, Name: in.Name, Status: StatusBuild, Engine: f.Engine, Version: in.Datastore.Version,
		Type: typeOfMode(mode), Flavor: in.FlavorRef, VolumeType: in.Volume.Type, VolumeGB: in.Volume.Size, Created: q.now,
	}}
	for i, zone := range strings.Split(in.AvailabilityZone, ",") {
		role := "master"
		if i > 0 {
			role = "slave"
		}
		name := fmt.Sprintf("%s_node%d", in.Name, i)
		created.Nodes = append(created.Nodes, Node{ID: hexID(32) + "no" + suffix, Name: name, Role: role, Zone: zone})
	}
	c.resized(created)
	c.instances = append(c.instances, created)
	finish := func(in *Instance) { in.Status = StatusActive }
	job := c.startJob(created, "CreateInstance", c.settings.CreateDuration, q.now, finish)
	return jsonReply(http.StatusAccepted, fields{"job_id": job, "instance": fields{
		"id": created.ID, "name": in.Name, "status": StatusBuild, "datastore": in.Datastore, "port": in.Port,
		"region": in.Region, "flavor_ref": in.FlavorRef, "volume": in.Volume, "availability_zone": in.AvailabilityZone,
		"vpc_id": in.VPCID, "subnet_id": in.SubnetID, "security_group_id": in.SecurityGroupID,
		"backup_strategy": fields{"start_time": "02:00-03:00", "keep_days": 7},
		"charge_info":     fields{"charge_mode": "postPaid"},
	}})
}

// refuseCreate: RDS api, creating_a_db_instance.rst and error_codes.rst.
func (c *Cloud) refuseCreate(in *createInput) (reply, bool) {
	refuse := func(status int, code, message string) (reply, bool) {
		return rdsError(status, code, "%s", message), true
	}
	target, mode := c.flavor(in.FlavorRef)
	zones := strings.Split(in.AvailabilityZone, ",")
	unknownZone := slices.ContainsFunc(zones, func(z string) bool { return !slices.Contains(c.Zones(), z) })
	switch {
	case !instanceName.MatchString(in.Name):
		return refuse(http.StatusBadRequest, "DBS.200021", "Invalid DB instance name.")
	case !validPassword(in.Password):
		return refuse(http.StatusBadRequest, "DBS.200052", "Invalid database root password.")
	case engineByName(in.Datastore.Type) != in.Datastore.Type || in.Datastore.Type == "":
		return refuse(http.StatusBadRequest, "DBS.200042", "The DB engine does not exist.")
	case target == nil || target.Engine != in.Datastore.Type:
		return refuse(http.StatusBadRequest, "DBS.200053", "The selected specifications do not exist.")
	case mode == "replica" || (mode == "ha") != (len(zones) == 2):
		return refuse(http.StatusBadRequest, "DBS.200054", "Invalid specifications.")
	case !slices.Contains(target.versions(mode), in.Datastore.Version):
		return refuse(http.StatusBadRequest, "DBS.200041", "Invalid database version.")
	case !slices.Contains(volumeTypes(), in.Volume.Type):
		return refuse(http.StatusBadRequest, "DBS.200026", "Invalid storage type.")
	case in.Volume.Size%10 != 0:
		return refuse(http.StatusBadRequest, "DBS.200027", "Storage space must be a multiple of 10.")
	case in.Volume.Size < 40 || in.Volume.Size > 4000:
		return refuse(http.StatusBadRequest, "DBS.200023", "Storage space is out of range.")
	case in.Region != c.opts.Region || unknownZone:
		return refuse(http.StatusNotFound, "DBS.200470", "The region or AZ does not exist.")
	case in.VPCID == "" || in.SubnetID == "":
		return refuse(http.StatusBadRequest, "DBS.200001", "Parameter error: vpc_id or subnet_id.")
	case in.SecurityGroupID != c.identity.securityGroupID:
		return refuse(http.StatusNotFound, "DBS.200050", "The security group does not exist or does not belong to the VPC.")
	}
	return reply{}, false
}

// validPassword has 8 to 32 characters of at least three kinds. The rules for weak passwords are not documented.
func validPassword(p string) bool {
	kinds := map[string]bool{}
	for _, r := range p {
		switch {
		case unicode.IsUpper(r):
			kinds["upper"] = true
		case unicode.IsLower(r):
			kinds["lower"] = true
		case unicode.IsDigit(r):
			kinds["digit"] = true
		default:
			kinds["special"] = true
		}
	}
	return len(p) >= 8 && len(p) <= 32 && len(kinds) >= 3
}

func typeOfMode(mode string) string {
	return map[string]string{"single": "Single", "ha": "Ha", "replica": "Replica"}[mode]
}

// deleteInstance answers with a job that has ended, because how long a deletion takes is not documented.
func (c *Cloud) deleteInstance(q *call, in *instance) reply {
	if in.busy {
		rep, _ := c.refuseByStatus(in)
		return rep
	}
	c.removeInstance(in.ID)
	id := c.startJob(in, "DeleteInstance", 0, q.now, func(*Instance) {})
	c.finishJobs(q.now)
	return jsonReply(http.StatusAccepted, fields{"job_id": id})
}

// maxTags of an instance. RDS api: adding_tags_in_batches.rst.
const maxTags = 20

type tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// tagInstance adds or removes tags. RDS api: adding_tags_in_batches.rst, deleting_tags_in_batches.rst.
func (c *Cloud) tagInstance(q *call, in *instance) reply {
	var body struct {
		Action string `json:"action"`
		Tags   []tag  `json:"tags"`
	}
	if err := q.decode(&body); err != nil || len(body.Tags) == 0 || body.Action != "create" && body.Action != "delete" {
		return rdsError(http.StatusBadRequest, "DBS.200001", "Parameter error.")
	}
	tags := slices.Clone(in.tags)
	for _, t := range body.Tags {
		if len([]rune(t.Key)) < 1 || len([]rune(t.Key)) > 36 || len([]rune(t.Value)) > 43 {
			return rdsError(http.StatusBadRequest, "DBS.200001", "Parameter error: tags.")
		}
		tags = slices.DeleteFunc(tags, func(have tag) bool { return have.Key == t.Key })
		if body.Action == "create" {
			tags = append(tags, t)
		}
	}
	if len(tags) > maxTags {
		return rdsError(http.StatusBadRequest, "DBS.200087", "The number of tags has reached the quota.")
	}
	in.tags = tags
	return jsonReply(http.StatusOK, fields{})
}

// listSecurityGroups has the group that every project has.
func (c *Cloud) listSecurityGroups(*call) reply {
	return jsonReply(http.StatusOK, fields{"security_groups": []fields{{
		"id": c.identity.securityGroupID, "name": "default", "description": "Default security group", "rules": []fields{},
		"tenant_id": c.identity.projectID,
	}}})
}

func (c *Cloud) computeOperations() []operation {
	const groups = "GET /ecs/v2.1/{project}/os-security-groups"
	return []operation{{service: "ecs", name: "ListSecurityGroups", pattern: groups, run: c.listSecurityGroups}}
}

// removeInstance removes the instance's jobs with it. It reports whether there was one.
func (c *Cloud) removeInstance(id string) bool {
	before := len(c.instances)
	c.instances = slices.DeleteFunc(c.instances, func(in *instance) bool { return in.ID == id })
	c.jobs = slices.DeleteFunc(c.jobs, func(j *job) bool { return j.instance == id })
	return len(c.instances) < before
}
