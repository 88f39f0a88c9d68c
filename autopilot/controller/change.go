// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// requestWithin is how long after its stored time a request may still be sent.
const requestWithin = time.Minute

// request requests a stored change: from the operator by a patch of the Rds or, without an Rds, from the cloud. It reports
// the decisions unless the attempt was refused or not sent, stores the answer, and returns when to check again.
func (r *round) request(ctx context.Context, c autopilot.Case, a record.Answer) (again time.Duration, err error) {
	until := a.Attempt.RequestTime.Add(requestWithin)
	if remaining, ok := autopilot.UntilWindowCloses(r.rap.Spec, r.options.Now()); ok && a.Attempt.Kind == v1alpha1.KindFlavor {
		if closes := r.options.Now().Add(remaining); closes.Before(until) {
			until = closes
		}
	}
	sendCtx, cancel := context.WithTimeout(ctx, until.Sub(r.options.Now()))
	defer cancel()
	isClear, err := r.send(sendCtx, &a)
	if a.Overtaken != nil && a.Event != change.Unsent {
		r.emitEnded([]v1alpha1.Change{a.Overtaken.Ended})
	}
	if !isClear || a.Event == change.Accepted {
		r.emitDecisions(a.News)
		r.nameWAL(c, a.News)
	}
	if !isClear {
		return 0, err
	}
	var answers, news []autopilot.Decision
	var ended []v1alpha1.Change
	c.Now, c.Wanted, c.IsSpecLive, c.Accepted = r.options.Now(), r.target.Wanted, true, a.Attempt.RequestTime
	always := func(*v1alpha1.RdsAutopilot) bool { return true } // the answer moves this attempt alone, whatever the policy is by now
	storeErr := r.updateIf(ctx, func(s *v1alpha1.Status) { answers, news, ended = a.Record(c, s) }, always)
	if storeErr != nil {
		return 0, errors.Join(err, storeErr)
	}
	r.emitEnded(ended)
	r.emitDecisions(news)
	var v autopilot.Verdict
	for _, d := range answers {
		v.RequeueIn(d.RequeueAfter)
	}
	if a.Event == change.Unsent { // perhaps without a record
		v.RequeueIn(r.options.Recheck)
	}
	return v.RequeueAfter, err
}

// send sends the request and enters the answer. isClear is false if there is nothing to store: the API server has accepted
// the patch, or nobody knows whether the request has arrived. The error is one that the round should be repeated for.
func (r *round) send(ctx context.Context, a *record.Answer) (isClear bool, err error) {
	if ctx.Err() != nil { // the window has closed meanwhile
		err = fmt.Errorf("%w: %w", autopilot.ErrNotRequested, ctx.Err())
	} else if r.target.NoRds {
		a.JobID, err = r.cloud.Change(ctx, r.target.InstanceID, a.Attempt, r.confirmTarget)
	} else {
		err = r.patchRds(ctx, a)
	}
	refusal, isRefused := errors.AsType[*autopilot.RefusedError](err)
	switch {
	case errors.Is(err, autopilot.ErrNotRequested): // also if a read before it was refused
		r.log.Info("nothing is requested yet", zap.Error(err))
		a.Event = change.Unsent
		switch isOld := errors.Is(err, autopilot.ErrConflict) || errors.Is(err, autopilot.ErrGone); {
		case isOld:
			return true, err
		case ctx.Err() == nil:
			a.Reason, a.Message = autopilot.CloudUnreachable, err.Error()
		}
		return true, nil
	case isRefused:
		a.Event, a.Reason, a.Message = change.Rejected, cmp.Or(refusal.Reason, autopilot.ReasonRefused), refusal.Message
		return true, nil
	case err != nil:
		return false, fmt.Errorf("request %s: %w", autopilot.DescribeStep(a.Attempt), err)
	case a.JobID != "":
		a.Event = change.Accepted
		r.log.Info("the cloud has begun", zap.String("step", autopilot.DescribeStep(a.Attempt)), zap.String("job", a.JobID))
		return true, nil
	}
	return a.Event == change.Checked && a.Reason == autopilot.ReasonContested, nil
}

// patchRds writes the size or flavor into the spec of the Rds. If the API server has accepted that and restored the old
// value at once, the answer has the reason ReasonContested.
func (r *round) patchRds(ctx context.Context, a *record.Answer) error {
	if err := r.confirmTarget(ctx); err != nil {
		return fmt.Errorf("%w: %w", autopilot.ErrNotRequested, err)
	}
	setPatched := func(ch *v1alpha1.Change) { r.controller.remember(r.key, func(m *memory) { m.patched = ch }) }
	setPatched(&a.Attempt) // the watch event may come before the answer
	stored, err := r.kube.PatchRds(ctx, r.target, a.Attempt)
	switch {
	case errors.Is(err, autopilot.ErrConflict), errors.Is(err, autopilot.ErrGone):
		err = fmt.Errorf("%w: %w", autopilot.ErrNotRequested, err)
	case err == nil && stored.Wanted.Of(a.Attempt.Kind) != a.Attempt.To:
		a.Reason = autopilot.ReasonContested
		r.target = stored
		return nil
	case err == nil:
		r.target = stored
		return nil
	}
	setPatched(nil)
	return err
}

// confirmTarget is the last look before a request: it reads the target and the RdsAutopilot from the API server, because
// the user may have changed the policy, turned autopilot off or replaced the Rds while the round waited. It returns
// autopilot.ErrConflict then.
func (r *round) confirmTarget(ctx context.Context) error {
	live, err := r.kube.LiveTarget(ctx, r.key.Namespace, r.key.Name)
	if err != nil {
		return fmt.Errorf("read the Rds again: %w", err)
	}
	rap, err := r.readAgain(ctx)
	if err != nil {
		return err
	}
	switch {
	case live.UID != r.target.UID || live.InstanceID != r.target.InstanceID:
		return fmt.Errorf("the Rds was replaced: %w", autopilot.ErrConflict)
	case rap.UID != r.rap.UID || rap.Generation != r.rap.Generation:
		return fmt.Errorf("the RdsAutopilot has changed: %w", autopilot.ErrConflict)
	case r.offFor(live, rap) != (autopilot.Off{}):
		return fmt.Errorf("autopilot was turned off: %w", autopilot.ErrConflict)
	}
	return nil
}
