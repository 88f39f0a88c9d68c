// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// request requests a stored intent for the instance itself: from the operator by a patch of the Rds, and then
// with spec.apply: Cloud from the cloud. Both wait for other systems, so a request for a flavor is cancelled when the
// window closes.
func (r *round) request(ctx context.Context, i v1alpha1.Intent) (record.Patched, error) {
	if remaining, ok := autopilot.UntilWindowCloses(r.rap.Spec, r.options.Now()); ok && i.Kind == v1alpha1.KindFlavor {
		if remaining <= 0 {
			r.log.Info("nothing is requested, because the window has closed")
			return record.Patched{}, nil
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, remaining)
		defer cancel()
	}
	patched, err := r.patchRds(ctx, i)
	isRequested := r.target.NoRds || patched.Result == record.PatchAccepted || patched.Result == record.PatchPresent
	if err == nil && isRequested && r.rap.Spec.Apply == v1alpha1.ApplyCloud {
		patched.Cloud = r.changeInCloud(ctx, i)
	}
	return patched, err
}

// changeInCloud requests a stored intent from the cloud itself, for databases with spec.apply: Cloud. It returns nil
// if it does not ask the cloud, because the target has changed, the window has closed or the instance has another flavor
// by now. A flavor has its place since the walk through the guards reserved it, until the round ends.
func (r *round) changeInCloud(ctx context.Context, i v1alpha1.Intent) *record.CloudAnswer {
	if err := r.confirmTarget(ctx); err != nil {
		r.log.Info("the cloud is not asked yet", zap.Error(err))
		return nil
	}
	a := &record.CloudAnswer{Kind: i.Kind, To: i.To}
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
		a.Reason, a.Message = refusal.Reason, refusal.Message
	}
	return a
}

// keepAnswer stores the cloud's answer after the write of the outcome has failed, because the receiver has stored a
// message meanwhile for example. Without the job's id the next round would request the change again and never learn
// how the first job ended.
func (r *round) keepAnswer(ctx context.Context, c autopilot.Case, answer *record.CloudAnswer) error {
	if answer == nil {
		return nil
	}
	var news []autopilot.Decision
	err := r.update(ctx, func(s *v1alpha1.Status) { news = record.Answer(c, s, *answer) })
	if err == nil {
		r.emitDecisions(news)
	}
	return err
}
