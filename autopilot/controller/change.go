// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// change asks the cloud itself for what is intended and stored. It returns nil where the cloud is not asked after all.
func (r *round) change(ctx context.Context, i v1alpha1.Intent) *autopilot.CloudAnswer {
	if err := r.checkTarget(); err != nil {
		return nil
	}
	if i.Kind == v1alpha1.KindFlavor && !r.limiter.take(r.key, r.MaxFlavorChanges, r.Now()) {
		return nil
	}
	a := &autopilot.CloudAnswer{Kind: i.Kind, To: i.To}
	var err error
	a.JobID, err = r.Changer.Change(ctx, r.target.InstanceID, i)
	if err == nil {
		r.log.Info("the cloud has begun", zap.String("kind", string(i.Kind)), zap.String("from", i.From), zap.String("to", i.To), zap.String("job", a.JobID))
		return a
	}
	if errors.Is(err, autopilot.ErrConflict) {
		r.log.Info("the cloud is not asked yet", zap.Error(err))
		return nil
	}
	a.Reason, a.Message = autopilot.CloudUnreachable, err.Error()
	if refusal, refused := errors.AsType[*autopilot.RefusedError](err); refused {
		a.Reason, a.Message = refusal.Reason, refusal.Message
	}
	return a
}

// keepAnswer stores the cloud's answer on top of what somebody else has written meanwhile, a message for example. Without it
// the next round would ask for the change again, and nobody would know how the first job ended.
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

// readJobs reads how far the cloud's jobs are. Where one has ended, the instance is to be read after that.
func (r *round) readJobs(ctx context.Context) map[string]autopilot.Job {
	jobs := make(map[string]autopilot.Job)
	for _, i := range r.rap.Status.Intents() {
		if i.JobID == "" {
			continue
		}
		job, err := r.Changer.Job(ctx, i.JobID)
		if err != nil { // what the instance shows goes on without
			r.log.Warn("read how far a job is", zap.String("job", i.JobID), zap.Error(err))
			continue
		}
		jobs[i.JobID] = job
		if job.State != autopilot.JobRunning {
			r.notBefore = r.Now()
		}
	}
	return jobs
}
