// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// jobShare is the share of the service's rate that reading jobs may use. The other calls to RDS need the rest, and
	// the lists show the progress of a change as well.
	jobShare = 0.4
	// jobPatience is how long a round waits for the state of a job, because the rounds of other databases wait for it.
	jobPatience = 2 * time.Second
	// jobKept is how long the state of a job is kept that nobody asks about any more, because its change has ended.
	jobKept = 2 * time.Minute
	// jobTime is the form of times in a job.
	jobTime = "2006-01-02T15:04:05-0700"
)

// Change requests a change from the cloud and returns the id of the job. It reads the instance first, because lists may be
// old, and calls confirm right before it sends the request.
//
// The error wraps autopilot.ErrNotRequested if nothing was sent: a read or confirm failed, or the instance is changing or
// not what the change starts from (also autopilot.ErrConflict). It is an autopilot.RefusedError if the cloud refuses. After
// any other error, the change may have begun.
func (c *Cloud) Change(ctx context.Context, instanceID string, ch v1alpha1.Change,
	confirm func(context.Context) error) (jobID string, err error) {
	inst, err := c.readInstance(ctx, instanceID)
	if err != nil {
		return "", fmt.Errorf("%w: read instance %s: %w", autopilot.ErrNotRequested, instanceID, err)
	}
	isReady := inst.Status == autopilot.StatusActive || inst.Status == autopilot.StatusStorageFull && ch.Kind == v1alpha1.KindVolume
	if has := inst.Of(ch.Kind); !isReady || has != ch.From {
		return "", fmt.Errorf("%w: instance %s is in %s and has %s by now: %w", autopilot.ErrNotRequested, instanceID,
			inst.Status, has, autopilot.ErrConflict)
	}
	if ch.Kind == v1alpha1.KindFlavor {
		jobID, err = c.Resize(ctx, instanceID, ch.To, confirm)
	} else if to, notANumber := strconv.Atoi(ch.To); notANumber == nil {
		jobID, err = c.Enlarge(ctx, instanceID, to, confirm)
	} else {
		err = fmt.Errorf("%w: %w", autopilot.ErrNotRequested, notANumber)
	}
	return jobID, refusal(err)
}

// refusal returns an autopilot.RefusedError if the cloud refused for good, and wraps autopilot.ErrNotRequested after 401
// and 429, with which nothing is carried out. Without an answer, and with 408 and 5xx, the change may have begun.
func refusal(err error) error {
	e, ok := errors.AsType[*Error](err)
	switch {
	case !ok || e.Status == 0:
		return err
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusTooManyRequests:
		return fmt.Errorf("%w: %w", autopilot.ErrNotRequested, err)
	case errors.Is(err, ErrUnavailable):
		return err
	}
	return refused(e, err)
}

// refused returns err, of which e is the answer, as an autopilot.RefusedError.
func refused(e *Error, err error) error {
	refusal := &autopilot.RefusedError{Reason: reasonOf(e), Message: strings.TrimSpace(e.Code + " " + e.Message)}
	return fmt.Errorf("%w: %w", refusal, err)
}

// reasonOf maps the cloud's error codes to reasons (RDS api: error_codes.rst). The list of codes for a busy instance
// also has those that the Terraform provider retries, and DBS.200452, which another cloud of the family sends. The
// codes for missing payment are not documented: 402, and the prefix that the billing service of Huawei Cloud uses.
func reasonOf(e *Error) autopilot.Reason {
	switch strings.ToUpper(e.Code) {
	case "DBS.280450", "DBS.280239", "DBS.200053", "DBS.200054": // sold out, gone, or not offered for this instance
		return autopilot.ReasonSoldOut
	case "DBS.200011", "DBS.200018", "DBS.200019", "DBS.200047", "DBS.200080", "DBS.200086", "DBS.200452", "DBS.200463",
		"DBS.200611", "DBS.201014", "DBS.201015", "DBS.201202", "DBS.201206", "DBS.212033", "DBS.280011", "DBS.280343",
		"DBS.280816":
		return autopilot.ReasonInstanceBusy
	case "DBS.200316":
		return autopilot.ReasonStorageFull
	case "DBS.200046", "DBS.200303", "RDS.5035":
		return autopilot.ReasonQuotaExceeded
	}
	switch {
	case e.Status == http.StatusPaymentRequired || strings.HasPrefix(strings.ToUpper(e.Code), "CBC."):
		return autopilot.ReasonPaymentRequired
	case e.Status == http.StatusForbidden:
		return autopilot.ReasonNotPermitted
	case e.Status == http.StatusConflict:
		return autopilot.ReasonInstanceBusy
	case e.Status == http.StatusRequestEntityTooLarge:
		return autopilot.ReasonQuotaExceeded
	}
	return autopilot.ReasonCloudRefused
}

// Enlarge requests a larger volume and returns the id of the job. toGB is the new size, not the increment (RDS api:
// scaling_up_storage_space_of_a_db_instance.rst).
func (c *Cloud) Enlarge(ctx context.Context, instanceID string, toGB int, confirm func(context.Context) error) (jobID string, err error) {
	id, err := instances.EnlargeVolume(c.confirmed(ctx, confirm, opEnlarge, instanceID),
		instances.EnlargeVolumeRdsOpts{InstanceId: instanceID, Size: toGB})
	if err != nil {
		return "", c.transport.wrapError(opEnlarge, err)
	}
	return *id, nil
}

// Resize requests another flavor and returns the id of the job. The change restarts the database (RDS api:
// changing_db_instance_specifications.rst).
func (c *Cloud) Resize(ctx context.Context, instanceID, flavor string, confirm func(context.Context) error) (jobID string, err error) {
	id, err := instances.Resize(c.confirmed(ctx, confirm, opResize, instanceID),
		instances.ResizeOpts{InstanceId: instanceID, SpecCode: flavor})
	if err != nil {
		return "", c.transport.wrapError(opResize, err)
	}
	return *id, nil
}

// Job returns the state of a change by its job id; autopilot.JobUnknown if the cloud does not know the job. 300 running
// jobs that are checked every 30 seconds would need 10 requests a second. So they are read one after the other within
// jobShare, and after jobPatience Job returns the last known state: at first autopilot.JobRunning.
func (c *Cloud) Job(ctx context.Context, id string) (autopilot.Job, error) {
	soon, cancel := context.WithTimeout(ctx, jobPatience)
	defer cancel()
	job, err := c.jobs.Get(soon, id, c.now().Add(-minUsable))
	if soon.Err() != nil && ctx.Err() == nil {
		last, _ := c.jobs.Last(id)
		return last.Value, nil
	}
	return job, err
}

// readJob reads a job. The SDK can only wait for a job, without a limit (RDS api:
// obtaining_information_about_a_task_with_a_specified_id.rst).
func (c *Cloud) readJob(ctx context.Context, id string) (autopilot.Job, error) {
	var reply struct {
		Job struct {
			Status     string `json:"status"`
			FailReason text   `json:"fail_reason"`
			Ended      text   `json:"ended"`
		} `json:"job"`
	}
	err := c.doRequest(ctx, opGetJob, http.MethodGet, "jobs?id="+id, nil, &reply, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return autopilot.Job{State: autopilot.JobUnknown}, nil
	case err != nil:
		return autopilot.Job{}, err
	}
	var job autopilot.Job
	switch strings.ToLower(reply.Job.Status) {
	case "completed":
		job.State = autopilot.JobDone
	case "failed":
		job.State, job.Message = autopilot.JobFailed, c.transport.clean(string(reply.Job.FailReason))
	default:
		return job, nil // it runs
	}
	if ended, err := time.Parse(jobTime, string(reply.Job.Ended)); err == nil { // the caller can do without
		job.EndTime = ended
	}
	return job, nil
}
