// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// request requests a stored change: from the operator by a patch of the Rds or, without an Rds, from the cloud. Both wait
// for other systems, so a request for a flavor is cancelled when the window closes. It reports the decisions that the API
// server or the cloud has accepted, stores every other answer, and returns when to check again.
func (r *round) request(ctx context.Context, c autopilot.Case, ch v1alpha1.Change, acting []autopilot.Decision,
	again time.Duration) (time.Duration, error) {
	requestCtx := ctx
	if remaining, ok := autopilot.UntilWindowCloses(r.rap.Spec, r.options.Now()); ok && ch.Kind == v1alpha1.KindFlavor {
		if remaining <= 0 {
			r.log.Info("nothing is requested, because the window has closed")
			return again, nil
		}
		var cancel context.CancelFunc
		requestCtx, cancel = context.WithTimeout(ctx, remaining)
		defer cancel()
	}
	var answer *record.Answer
	var err error
	if r.target.NoRds {
		if answer = r.changeInCloud(requestCtx, ch); answer == nil {
			return again, nil
		}
	} else if answer, err = r.patchRds(requestCtx, ch); err != nil {
		return again, err
	}
	if answer == nil || answer.Reason == "" {
		r.emitDecisions(acting)
		r.nameWAL(c, acting)
	}
	if answer == nil {
		return again, nil
	}
	var answers, news []autopilot.Decision
	var ended []v1alpha1.Change
	c.Now, answer.Acting = r.options.Now(), acting
	err = r.update(ctx, func(s *v1alpha1.Status) { answers, news, ended = answer.Record(c, s) })
	if err != nil {
		return again, err
	}
	r.emitEnded(ended)
	r.emitDecisions(news)
	for _, d := range answers {
		if d.RequeueAfter > 0 && (again == 0 || d.RequeueAfter < again) {
			again = d.RequeueAfter
		}
	}
	return again, nil
}

// changeInCloud requests a stored change of an instance without an Rds from the cloud itself. It returns nil
// if it does not ask the cloud, because the target has changed, the window has closed or the instance has another flavor
// by now.
func (r *round) changeInCloud(ctx context.Context, ch v1alpha1.Change) *record.Answer {
	if err := r.confirmTarget(ctx); err != nil {
		r.log.Info("the cloud is not asked yet", zap.Error(err))
		return nil
	}
	a := &record.Answer{Kind: ch.Kind, To: ch.To}
	var err error
	a.JobID, err = r.cloud.Change(ctx, r.target.InstanceID, ch)
	if err == nil {
		r.log.Info("the cloud has begun", zap.String("kind", string(ch.Kind)), zap.String("from", ch.From),
			zap.String("to", ch.To), zap.String("job", a.JobID))
		return a
	}
	a.Unsent = errors.Is(err, autopilot.ErrNotRequested)
	if errors.Is(err, autopilot.ErrConflict) || a.Unsent && ctx.Err() != nil {
		r.log.Info("the cloud is not asked yet", zap.Error(err))
		return nil
	}
	a.Reason, a.Message = autopilot.CloudUnreachable, err.Error()
	if refusal, refused := errors.AsType[*autopilot.RefusedError](err); refused {
		a.Reason, a.Message = refusal.Reason, refusal.Message
	}
	return a
}
