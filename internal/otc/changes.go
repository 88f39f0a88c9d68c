// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"net/http"
	"time"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"
)

// Enlarge requests a larger volume and returns the id of the job. toGB is the new size, not the increment (RDS api:
// scaling_up_storage_space_of_a_db_instance.rst).
func (c *Cloud) Enlarge(ctx context.Context, instanceID string, toGB int) (jobID string, err error) {
	id, err := instances.EnlargeVolume(c.client(ctx, opEnlarge, instanceID),
		instances.EnlargeVolumeRdsOpts{InstanceId: instanceID, Size: toGB})
	if err != nil {
		return "", c.transport.wrapError(opEnlarge, err)
	}
	return *id, nil
}

// Resize requests another flavor and returns the id of the job. The change restarts the database (RDS api:
// changing_db_instance_specifications.rst).
func (c *Cloud) Resize(ctx context.Context, instanceID, flavor string) (jobID string, err error) {
	id, err := instances.Resize(c.client(ctx, opResize, instanceID),
		instances.ResizeOpts{InstanceId: instanceID, SpecCode: flavor})
	if err != nil {
		return "", c.transport.wrapError(opResize, err)
	}
	return *id, nil
}

// jobTime is the form of times in a job.
const jobTime = "2006-01-02T15:04:05-0700"

// Job is the state of a change.
type Job struct {
	Status     string // Running, Completed or Failed
	FailReason string
	Ended      time.Time // zero if the job runs, or if the cloud does not tell
}

// Job reads a job by its id. The error wraps ErrNotFound if the cloud does not know it. The SDK can only wait for a
// job, without a limit (RDS api: obtaining_information_about_a_task_with_a_specified_id.rst).
func (c *Cloud) Job(ctx context.Context, id string) (Job, error) {
	var reply struct {
		Job struct {
			Status     string `json:"status"`
			FailReason text   `json:"fail_reason"`
			Ended      text   `json:"ended"`
		} `json:"job"`
	}
	if err := c.doRequest(ctx, opGetJob, http.MethodGet, "jobs?id="+id, nil, &reply, id); err != nil {
		return Job{}, err
	}
	ended, err := time.Parse(jobTime, string(reply.Job.Ended))
	if err != nil { // the caller can do without
		ended = time.Time{}
	}
	return Job{Status: reply.Job.Status, FailReason: c.transport.clean(string(reply.Job.FailReason)), Ended: ended}, nil
}
