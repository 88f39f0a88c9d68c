// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"net/http"
	"slices"
	"time"
)

// Job states. RDS api: obtaining_information_about_a_task_with_a_specified_id.rst.
const (
	jobRunning   = "Running"
	jobCompleted = "Completed"
	jobFailed    = "Failed"
)

type job struct {
	Job
	id     string
	finish func(*Instance)
}

// Job is a change that the cloud has begun, whoever requested it.
type Job struct {
	Name     string // EnlargeVolume or ResizeFlavor
	Instance string // its id
	To       string // the flavor, or the size in GB; empty if there is none
	Status   string // Running, Completed or Failed
	Created  time.Time
	End      time.Time // when it ends, also while it is running
}

// Jobs returns all changes of the present instances, oldest first.
func (c *Cloud) Jobs() []Job { return copies(c, &c.jobs, func(j *job) Job { return j.Job }) }

// act answers POST …/action, for resize_flavor and enlarge_volume.
func (c *Cloud) act(q *call, in *instance) reply {
	var body struct {
		Resize *struct {
			SpecCode string `json:"spec_code"`
		} `json:"resize_flavor"`
		Enlarge *struct {
			Size int `json:"size"`
		} `json:"enlarge_volume"`
	}
	if err := q.decode(&body); err != nil || (body.Resize == nil) == (body.Enlarge == nil) {
		return rdsError(http.StatusBadRequest, "DBS.200001", "Parameter error.")
	}
	c.othersFirst(in, q.now)
	if rep, refused := c.refused(actionName(q.body)); refused {
		return rep
	}
	if body.Resize != nil {
		return c.resizeFlavor(in, body.Resize.SpecCode, q.now)
	}
	return c.enlargeVolume(in, body.Enlarge.Size, q.now)
}

// OthersChange is a change that somebody else requests just before an action of ours. It has no visible effect.
type OthersChange struct{}

// othersFirst starts the next of the instance's OthersFirst, unless a job is running.
func (c *Cloud) othersFirst(in *instance, now time.Time) {
	if in.busy || len(in.OthersFirst) == 0 {
		return
	}
	in.OthersFirst = in.OthersFirst[1:]
	c.startJob(in, "ResizeFlavor", "", c.settings.ResizeDuration, now, func(*Instance) {})
}

// refuseByStatus refuses an action while another one runs, or in an unsuitable status. RDS api: error_codes.rst.
func (c *Cloud) refuseByStatus(in *instance) (reply, bool) {
	switch {
	case in.busy || in.Status == StatusModifying:
		return rdsError(http.StatusConflict, "DBS.200011", "Another operation is being performed on the DB instance or the DB instance is faulty."), true
	case in.Status != StatusActive:
		return rdsError(http.StatusBadRequest, "DBS.200086", "The DB instance status does not allow the operation: %s.", in.Status), true
	}
	return reply{}, false
}

// resizeFlavor: RDS api, changing_db_instance_specifications.rst.
func (c *Cloud) resizeFlavor(in *instance, code string, now time.Time) reply {
	if rep, refused := c.refuseByStatus(in); refused {
		return rep
	}
	if in.ReadOnly {
		return rdsError(http.StatusConflict, "DBS.200316", "The storage of the DB instance is full.")
	}
	target, mode := c.flavor(code)
	_, have := c.flavor(in.Flavor)
	switch {
	case target == nil || target.Engine != in.Engine:
		return rdsError(http.StatusBadRequest, "DBS.200053", "The specification %q does not exist.", code)
	case code == in.Flavor:
		return rdsError(http.StatusBadRequest, "DBS.280239", "The specification is the one the DB instance has.")
	case mode != have || !slices.Contains(target.versions(mode), in.Version):
		return rdsError(http.StatusBadRequest, "DBS.200054", "The specification %q is invalid for the DB instance.", code)
	}
	for _, n := range in.Nodes {
		switch c.flavorStatus(code, n.Zone) {
		case FlavorSoldOut:
			return rdsError(http.StatusBadRequest, "DBS.280450", "The specification is sold out in %s.", n.Zone)
		case FlavorUnsupported:
			return rdsError(http.StatusBadRequest, "DBS.200054", "The specification is not supported in %s.", n.Zone)
		}
	}
	if !c.replicasAllow(in, target) {
		return rdsError(http.StatusBadRequest, "DBS.200054", "The class of a read replica must not be below that of its primary.")
	}
	id := c.startJob(in, "ResizeFlavor", code, c.settings.ResizeDuration, now, func(in *Instance) { in.Flavor = code })
	return jsonReply(http.StatusAccepted, fields{"job_id": id})
}

// replicasAllow reports whether the primary's class stays at most that of each replica, which PostgreSQL needs.
// RDS umn: changing_a_db_instance_class.rst.
func (c *Cloud) replicasAllow(in *instance, target *flavor) bool {
	if in.Engine != "PostgreSQL" {
		return true
	}
	for _, other := range c.instances {
		if other.ReplicaOf == in.ID && (target.VCPUs > other.VCPUs || target.RAM > other.MemoryGB) ||
			other.ID == in.ReplicaOf && (target.VCPUs < other.VCPUs || target.RAM < other.MemoryGB) {
			return false
		}
	}
	return true
}

func (c *Cloud) startJob(in *instance, name, to string, d time.Duration, now time.Time, finish func(*Instance)) string {
	in.busy = true
	j := &job{
		id: dashed(hexID(32)), finish: finish,
		Job: Job{Name: name, Instance: in.ID, To: to, Status: jobRunning, Created: now, End: now.Add(c.span(d))},
	}
	c.jobs = append(c.jobs, j)
	return j.id
}

// finishJobs ends the jobs that are due.
func (c *Cloud) finishJobs(now time.Time) {
	for _, j := range c.jobs {
		if j.Status != jobRunning || j.End.After(now) {
			continue
		}
		j.Status = jobCompleted
		in := c.instance(j.Instance)
		if c.settings.JobsFail {
			j.Status = jobFailed
		}
		if in != nil {
			in.busy = false
			if in.FailingJobs > 0 {
				in.FailingJobs--
				j.Status = jobFailed
			}
			if j.Status == jobCompleted {
				j.finish(&in.Instance)
				c.resized(in)
			}
		}
	}
}

// Refusal is the reply to an operation that the cloud refuses.
type Refusal struct {
	Status        int
	Code, Message string
}

// refused returns the refusal of an operation in Settings.Refuse.
func (c *Cloud) refused(operation string) (reply, bool) {
	r, ok := c.settings.Refuse[operation]
	if !ok {
		return reply{}, false
	}
	return rdsError(r.Status, r.Code, "%s", r.Message), true
}

func (c *Cloud) showJob(q *call) reply {
	if rep, refused := c.refused("ShowJob"); refused {
		return rep
	}
	for _, j := range c.jobs {
		if j.id != q.URL.Query().Get("id") {
			continue
		}
		out := fields{
			"id": j.id, "name": j.Name, "status": j.Status, "created": j.Created.UTC().Format(rdsTime), "process": "", "entities": fields{},
			"instance": fields{"id": j.Instance, "name": ""},
		}
		if in := c.instance(j.Instance); in != nil {
			out["instance"] = fields{"id": in.ID, "name": in.Name}
		}
		switch j.Status {
		case jobFailed:
			out["fail_reason"] = "simulated failure"
			fallthrough
		case jobCompleted:
			out["ended"] = j.End.UTC().Format(rdsTime)
		}
		return jsonReply(http.StatusOK, fields{"job": out})
	}
	return rdsError(http.StatusNotFound, "DBS.200044", "The job does not exist.")
}
