// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	eventArmed  = "Armed"
	eventMended = "Mended"
)

// ensureRecord is what is remembered of a database whose arming was in order.
type ensureRecord struct {
	at           time.Time // the zero time if it is not since
	generation   int64     // of the policy
	subscription string    // the last message about the subscription that was looked into
}

// arm brings topic, subscription and rules of one database up to what the policy and the size of the volume want, or
// removes them where autopilot is off, and sets the conditions Armed and Ready. It says when to look again.
func (c *Controller) arm(ctx context.Context, key Key) (requeueAfter time.Duration, err error) {
	begin, sweep := c.armMarks.take(key)
	r, ok := c.newRound(key)
	if !ok {
		return 0, nil
	}
	if reason, message := r.off(); reason != "" {
		return 0, r.disarm(ctx, reason, message)
	}
	if !slices.Contains(r.rap.Finalizers, v1alpha1.Finalizer) {
		rap, err := r.Store.SetFinalizer(ctx, r.rap)
		if err != nil {
			return 0, fmt.Errorf("set the finalizer: %w", err)
		}
		r.setAutopilot(rap)
	}
	if r.notBefore = r.now.Add(-r.Sweep); sweep { // what is not in order is read anew before anything is changed
		r.notBefore = begin
	}
	if s := r.rap.Status.Intake.Subscription; s != nil && s.ReceivedTime.After(r.notBefore) {
		r.notBefore = s.ReceivedTime.Time
	}
	// What was read before the cloud was found unreachable does not show that it is reachable: Armed would go to and fro.
	if a := meta.FindStatusCondition(r.rap.Status.Conditions, v1alpha1.ConditionArmed); a != nil && a.Reason == autopilot.CloudUnreachable {
		if since := a.LastTransitionTime.Add(time.Second); since.After(r.notBefore) { // it is stored in whole seconds
			r.notBefore = since
		}
	}
	cs, err := r.observe(ctx)
	if err != nil {
		return 0, errors.Join(err, r.setNotArmed(ctx, autopilot.CloudUnreachable, "The cloud cannot be asked: "+err.Error()))
	}
	inst := cs.Instance
	switch {
	case inst == nil && r.target.InstanceID == "":
		return r.Recheck, r.setNotArmed(ctx, string(autopilot.ReasonInstanceUnknown), "The Rds has no status.id yet")
	case inst == nil:
		return r.Recheck, r.setNotArmed(ctx, string(autopilot.ReasonInstanceUnknown), "The cloud has no instance "+r.target.InstanceID)
	case cs.Shared:
		return r.Recheck, r.setNotArmed(ctx, string(autopilot.ReasonInstanceUnknown), "Another Rds or RdsAutopilot has the same instance id")
	case r.rap.Status.Alarms.TopicURN == "" && len(r.rap.Status.Alarms.Rules) == 0 && !inst.Measurable():
		return r.Recheck, r.setNotArmed(ctx, string(autopilot.ReasonInstanceUnknown), "The instance is in "+inst.Status+": it is armed once it is ACTIVE")
	}
	if err := autopilot.Validate(cs.Spec, v1alpha1.KindVolume); err != nil {
		return 0, r.setNotArmed(ctx, string(autopilot.ReasonPolicyInvalid), err.Error())
	}
	if !sweep && !r.armingDue(cs) {
		return 0, r.update(ctx, func(s *v1alpha1.Status) { r.setArmed(s, autopilot.LookHasFailed(*s)) })
	}
	return r.ensure(ctx, *inst)
}

func (r *round) setNotArmed(ctx context.Context, reason, message string) error {
	return r.update(ctx, func(s *v1alpha1.Status) {
		autopilot.SetCondition(s, v1alpha1.ConditionArmed, false, reason, message, r.rap.Generation, r.now)
		autopilot.SetReady(s, false, r.rap.Generation, r.now)
	})
}

// setArmed sets the conditions Armed and Ready by what is recorded.
func (r *round) setArmed(s *v1alpha1.Status, lookFailed bool) {
	ok, reason, message := autopilot.Armed(r.rap.Spec, s.Alarms, r.now)
	autopilot.SetCondition(s, v1alpha1.ConditionArmed, ok, reason, message, r.rap.Generation, r.now)
	autopilot.SetReady(s, lookFailed, r.rap.Generation, r.now)
}

func (r *round) lastEnsured() (ensureRecord, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, seen := r.ensured[r.key]
	return e, seen
}

func (r *round) setEnsured(at time.Time, generation int64, subscription string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ensured[r.key] = ensureRecord{at, generation, subscription}
}

// forget drops what is remembered of a database that is no longer armed.
func (c *Controller) forget(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ensured, k)
	delete(c.unheard, k)
}

// armingDue reports whether the cloud is to be asked: not in every round, for a round may come with every message.
func (r *round) armingDue(c autopilot.Case) bool {
	if c.Instance == nil || c.Shared || autopilot.Validate(c.Spec, v1alpha1.KindVolume) != nil {
		return true // arm says why not
	}
	rules := autopilot.Rules(c.Spec, c.Instance.VolumeGB)
	last, seen := r.lastEnsured()
	a := r.rap.Status.Alarms
	if !seen || last.at.IsZero() || last.generation != r.rap.Generation ||
		a.Subscription != v1alpha1.SubscriptionConfirmed || len(a.Rules) != len(rules) || r.watchesAnother(*c.Instance) {
		return true
	}
	if s := r.rap.Status.Intake.Subscription; s != nil && s.MessageID != last.subscription {
		return true
	}
	return slices.ContainsFunc(rules, func(want v1alpha1.DesiredRule) bool {
		return !slices.ContainsFunc(a.Rules, func(have v1alpha1.Rule) bool {
			return have.Metric == want.Metric && int(have.ThresholdPercent) == want.ThresholdPercent
		})
	})
}

// watchesAnother reports whether a rule watches what is neither the instance nor its primary node: another instance has
// come under the name, or another node is the primary.
func (r *round) watchesAnother(inst autopilot.Instance) bool {
	return slices.ContainsFunc(r.rap.Status.Alarms.Rules, func(rule v1alpha1.Rule) bool {
		_, value, _ := strings.Cut(rule.Dimension, ":")
		return value != inst.ID && (value == "" || value != inst.Primary && inst.Primary != "")
	})
}

// ensure asks the cloud for what should exist, and records what does.
func (r *round) ensure(ctx context.Context, inst autopilot.Instance) (time.Duration, error) {
	last, seen := r.lastEnsured()
	renewed := !seen || last.generation != r.rap.Generation // by a policy that this process has not armed by yet
	r.setEnsured(time.Time{}, last.generation, "")
	subscription := ""
	if s := r.rap.Status.Intake.Subscription; s != nil {
		subscription = s.MessageID
	}
	generation := r.rap.Generation
	dimension, err := r.dimension(ctx, inst)
	if err != nil {
		return 0, errors.Join(err, r.setNotArmed(ctx, autopilot.CloudUnreachable, err.Error()))
	}
	arms := Arms{
		Autopilot: r.rap, Instance: inst, Dimension: dimension, Rules: autopilot.Rules(r.rap.Spec, inst.VolumeGB), Renewed: renewed,
		NotBefore: r.notBefore,
	}
	newRules := false
	store := func(have v1alpha1.Alarms, and func(*v1alpha1.Status)) error {
		differ := false // by what is stored, for the cache may be behind
		err := r.update(ctx, func(s *v1alpha1.Status) {
			differ = !sameRules(s.Alarms, have)
			s.Alarms = have
			and(s)
		})
		newRules = newRules || err == nil && differ
		return err
	}
	// An id is stored before the next step, for messages may come by then.
	have, mended, err := r.Arming.Ensure(ctx, arms, r.rap.Status.Alarms, func(step v1alpha1.Alarms) error {
		return store(step, func(*v1alpha1.Status) {})
	})
	if len(mended) > 0 {
		r.log.Info("mended", zap.Strings("what", mended))
		r.Recorder.Event(r.target, r.rap, autopilot.Event{Reason: eventMended, Action: "Ensure", Note: strings.Join(mended, "; ")})
	}
	later := errors.Is(err, ErrLater) && !errors.Is(err, ErrQuota)
	if err == nil || later || errors.Is(err, ErrQuota) {
		r.setEnsured(r.now, generation, subscription) // all but what the error names
	}
	was := meta.IsStatusConditionTrue(r.rap.Status.Conditions, v1alpha1.ConditionArmed)
	writeErr := store(have, func(s *v1alpha1.Status) {
		// The condition is set once: its transition time would move in every round else.
		ok, reason, message := autopilot.Armed(r.rap.Spec, s.Alarms, r.now)
		if err != nil && (!later || reason == autopilot.SubscriptionPending) {
			if ok, message = false, err.Error(); !later {
				reason = armingReason(err)
			}
		}
		autopilot.SetCondition(s, v1alpha1.ConditionArmed, ok, reason, message, generation, r.now)
		autopilot.SetReady(s, autopilot.LookHasFailed(*s), generation, r.now)
	})
	if writeErr != nil {
		return 0, errors.Join(err, writeErr)
	}
	if armed := meta.FindStatusCondition(r.rap.Status.Conditions, v1alpha1.ConditionArmed); armed != nil && armed.Status == "True" && !was {
		r.log.Info("armed", zap.String("topic", have.TopicURN))
		r.Recorder.Event(r.target, r.rap, autopilot.Event{Reason: eventArmed, Action: "Ensure", Note: armed.Message})
	}
	if newRules {
		r.enqueue(r.key) // an alarm may be in force already
	}
	switch {
	case errors.Is(err, ErrQuota): // nothing to be gained by haste: the sweep comes back to it
		r.log.Warn("not armed", zap.Error(err))
		return 0, nil
	case err != nil && !later:
		return 0, fmt.Errorf("arm: %w", err)
	case have.Subscription == v1alpha1.SubscriptionPending || later:
		return r.Recheck, nil
	}
	return 0, nil
}

func sameRules(a, b v1alpha1.Alarms) bool {
	return slices.EqualFunc(a.Rules, b.Rules, func(x, y v1alpha1.Rule) bool { return x.AlarmID == y.AlarmID })
}

func armingReason(err error) string {
	if errors.Is(err, ErrQuota) {
		return autopilot.QuotaExceeded
	}
	return autopilot.CloudUnreachable
}
