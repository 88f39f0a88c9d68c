// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"net/http"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"
)

// Enlarge asks for a larger volume: the new size in all, not what is added (RDS api:
// scaling_up_storage_space_of_a_db_instance.rst). It returns the id of the job that has begun.
func (c *Cloud) Enlarge(ctx context.Context, instanceID string, toGB int) (jobID string, err error) {
	if err := checkID("instance id", instanceID); err != nil {
		return "", err
	}
	id, err := instances.EnlargeVolume(c.client(ctx, opEnlarge), instances.EnlargeVolumeRdsOpts{InstanceId: instanceID, Size: toGB})
	if err != nil {
		return "", c.transport.wrapError(opEnlarge, err)
	}
	return *id, nil
}

// Resize asks for another flavor, which restarts the database (RDS api: changing_db_instance_specifications.rst). It returns the
// id of the job that has begun.
func (c *Cloud) Resize(ctx context.Context, instanceID, flavor string) (jobID string, err error) {
	if err := checkID("instance id", instanceID); err != nil {
		return "", err
	}
	id, err := instances.Resize(c.client(ctx, opResize), instances.ResizeOpts{InstanceId: instanceID, SpecCode: flavor})
	if err != nil {
		return "", c.transport.wrapError(opResize, err)
	}
	return *id, nil
}

// Job is how far the cloud is with a change.
type Job struct {
	Status     string // Running, Completed or Failed
	FailReason string
}

// Job reads a job; ErrNotFound if the cloud does not know it. The SDK can only wait for one, without end (RDS api:
// obtaining_information_about_a_task_with_a_specified_id.rst).
func (c *Cloud) Job(ctx context.Context, id string) (Job, error) {
	if err := checkID("job id", id); err != nil {
		return Job{}, err
	}
	var reply struct {
		Job struct {
			Status     string `json:"status"`
			FailReason text   `json:"fail_reason"`
		} `json:"job"`
	}
	if err := c.doRequest(ctx, opGetJob, http.MethodGet, "jobs?id="+id, nil, &reply); err != nil {
		return Job{}, err
	}
	return Job{Status: reply.Job.Status, FailReason: c.transport.clean(string(reply.Job.FailReason))}, nil
}
