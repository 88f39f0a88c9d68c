// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// Causes of failed rounds, a label of the metric.
const (
	causeKubernetes = "kubernetes"
	causeCloud      = "cloud"
	causePanic      = "panic"
)

// errStatus is in the error of a round that could not store the status.
var errStatus = errors.New("write status")

func causeOf(err error) string {
	if _, ok := errors.AsType[*autopilot.PanicError](err); ok {
		return causePanic
	}
	if errors.Is(err, autopilot.ErrKubernetes) {
		return causeKubernetes
	}
	return causeCloud
}

// safely runs a round. A panic becomes its error, so that it affects one database only and the round is retried with
// back-off. Otherwise it would end the process, and the next leader would repeat it.
func safely(ctx context.Context, key Key,
	round func(context.Context, Key) (time.Duration, error)) (after time.Duration, err error) {
	defer autopilot.CatchPanic(&err)
	return round(ctx, key)
}

// reportFailure logs and counts a failed round. It emits a Warning if nothing else of the database would show the
// failure: after a panic, and if the API server refuses the status.
func (c *Controller) reportFailure(key Key, err error) {
	c.meters.failed.WithLabelValues(causeOf(err)).Inc()
	log := c.options.Log.With(zap.String("namespace", key.Namespace), zap.String("name", key.Name), zap.Error(err))
	panicked, isPanic := errors.AsType[*autopilot.PanicError](err)
	refusal, isRefused := errors.AsType[*autopilot.RefusedError](err)
	e := autopilot.Event{Warning: true, Action: eventObserve}
	switch {
	case isPanic:
		log.Error("round failed", zap.String("stack", panicked.Stack))
		e.Reason = string(autopilot.ReasonInternalError)
		e.Note = "The check ended with an internal error (" + panicked.What +
			"). It is repeated at growing intervals. The log of the leader has the details. Report it as a bug"
	case isRefused && errors.Is(err, errStatus):
		log.Warn("round failed")
		e.Reason = string(autopilot.ReasonStatusNotStored)
		e.Note = "The Kubernetes API refuses to store the status of the RdsAutopilot, so no change is made: " +
			refusal.Message + ". Allow the service to write rdsautopilots/status"
	default:
		log.Warn("round failed")
		return
	}
	rap, _ := c.options.Kube.Autopilot(key.Namespace, key.Name)
	c.options.Kube.Event(c.options.Kube.Target(key.Namespace, key.Name), rap, e)
}

// reportPanic logs and counts a panic outside of a round. It reports whether err is one.
func (c *Controller) reportPanic(what string, err error) bool {
	p, ok := errors.AsType[*autopilot.PanicError](err)
	if ok {
		c.meters.failed.WithLabelValues(causePanic).Inc()
		c.options.Log.Error(what, zap.Error(err), zap.String("stack", p.Stack))
	}
	return ok
}
