// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// request requests a stored intent. With spec.apply: Cloud, the read replicas of a growing primary grow as well.
func (r *round) request(ctx context.Context, c autopilot.Case, i v1alpha1.Intent) (autopilot.Patched, error) {
	if i.Kind == v1alpha1.KindVolume && r.rap.Spec.Apply == v1alpha1.ApplyCloud {
		return r.requestGrowth(ctx, c, i)
	}
	return r.requestChange(ctx, i)
}

// requestChange requests a stored intent for the instance itself: from the operator by a patch of the Rds, and then
// with spec.apply: Cloud from the cloud. Both wait for other systems, so a request for a flavor is cancelled when the
// window closes.
func (r *round) requestChange(ctx context.Context, i v1alpha1.Intent) (autopilot.Patched, error) {
	if remaining, ok := autopilot.UntilWindowCloses(r.rap.Spec, r.options.Now()); ok && i.Kind == v1alpha1.KindFlavor {
		if remaining <= 0 {
			r.log.Info("nothing is requested, because the window has closed")
			return autopilot.Patched{}, nil
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, remaining)
		defer cancel()
	}
	patched, err := r.patchRds(ctx, i)
	isRequested := r.target.NoRds || patched.Result == autopilot.PatchAccepted || patched.Result == autopilot.PatchPresent
	if err == nil && isRequested && r.rap.Spec.Apply == v1alpha1.ApplyCloud {
		patched.Cloud = r.changeInCloud(ctx, i)
	}
	return patched, err
}

// changeInCloud requests a stored intent from the cloud itself, for databases with spec.apply: Cloud. It returns nil
// if it does not ask the cloud, because the target has changed, the window has closed or too many other flavors are
// changing.
func (r *round) changeInCloud(ctx context.Context, i v1alpha1.Intent) *autopilot.CloudAnswer {
	if err := r.confirmTarget(ctx); err != nil {
		r.log.Info("the cloud is not asked yet", zap.Error(err))
		return nil
	}
	if i.Kind == v1alpha1.KindFlavor && !r.controller.limiter.reserve(r.key, r.options.MaxFlavorChanges, r.options.Now()) {
		return nil
	}
	a := &autopilot.CloudAnswer{Kind: i.Kind, To: i.To}
	var err error
	a.JobID, err = r.cloud.Change(ctx, r.target.InstanceID, i)
	if err == nil {
		r.log.Info("the cloud has begun", zap.String("kind", string(i.Kind)), zap.String("from", i.From),
			zap.String("to", i.To), zap.String("job", a.JobID))
		return a
	}
	a.Unsent = errors.Is(err, autopilot.ErrNotRequested)
	if errors.Is(err, autopilot.ErrConflict) || a.Unsent && ctx.Err() != nil {
		r.log.Info("the cloud is not asked yet", zap.Error(err))
		return nil
	}
	a.Reason, a.Message = autopilot.CloudUnreachable, err.Error()
	if refusal, refused := errors.AsType[*autopilot.RefusedError](err); refused {
		a.Reason, a.Message, a.IsOutOfOrder = refusal.Reason, refusal.Message, refusal.IsOutOfOrder
	}
	return a
}

// keepAnswer stores the cloud's answer after the write of the outcome has failed, because the receiver has stored a
// message meanwhile for example. Without the job's id the next round would request the change again and never learn
// how the first job ended.
func (r *round) keepAnswer(ctx context.Context, c autopilot.Case, answer *autopilot.CloudAnswer) error {
	if answer == nil {
		return nil
	}
	var news []autopilot.Decision
	err := r.update(ctx, func(s *v1alpha1.Status) { news = autopilot.RecordAnswer(c, s, *answer) })
	if err == nil {
		r.emitDecisions(news)
	}
	return err
}

// readJobs reads the state of the pending changes' jobs. If a job has ended, this round reads the instance after that.
func (r *round) readJobs(ctx context.Context) map[string]autopilot.Job {
	jobs := make(map[string]autopilot.Job)
	for _, i := range r.rap.Status.Intents() {
		if i.JobID == "" {
			continue
		}
		job, err := r.cloud.Job(ctx, i.JobID)
		if err != nil { // the instance shows the progress as well
			r.log.Warn("read the state of a job", zap.String("job", i.JobID), zap.Error(err))
			continue
		}
		jobs[i.JobID] = job
		if job.State != autopilot.JobRunning {
			r.notBefore = r.options.Now()
		}
	}
	return jobs
}
