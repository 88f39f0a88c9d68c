package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const eventArmed = "Armed"

// arm brings topic, subscription and rules up to what the policy and the size of the volume want, and sets the
// condition. Its error is for the next round: a database that cannot be armed is decided on all the same.
func (r *round) arm(ctx context.Context, c autopilot.Case) error {
	switch {
	case c.Instance == nil && r.rds.Status.ID == "":
		return r.unarmed(autopilot.ReasonInstanceUnknown, "The Rds has no status.id yet")
	case c.Instance == nil:
		return r.unarmed(autopilot.ReasonInstanceUnknown, "The cloud has no instance "+r.rds.Status.ID)
	case c.Shared:
		return r.unarmed(autopilot.ReasonInstanceUnknown, "Another Rds has the same instance id")
	case c.Status.Alarms.TopicURN == "" && c.Instance.Status != autopilot.StatusActive:
		return r.unarmed(autopilot.ReasonInstanceUnknown, "The instance is in "+c.Instance.Status+": it is armed once it is ACTIVE")
	}
	if err := autopilot.Validate(c.Spec); err != nil {
		return r.unarmed(autopilot.ReasonPolicyInvalid, err.Error())
	}
	was := meta.IsStatusConditionTrue(r.next.Conditions, v1alpha1.ConditionArmed)
	rules := autopilot.Rules(c.Spec, c.Instance.VolumeGB)
	if r.due(rules) {
		if err := r.ensure(ctx, c, rules); err != nil {
			autopilot.SetCondition(&r.next, v1alpha1.ConditionArmed, false, armingReason(err), err.Error(), r.rap.Generation, r.now)
			return fmt.Errorf("arm: %w", err)
		}
	}
	ok, reason, message := autopilot.Armed(c.Spec, r.next.Alarms, r.now)
	autopilot.SetCondition(&r.next, v1alpha1.ConditionArmed, ok, reason, message, r.rap.Generation, r.now)
	if ok && !was {
		r.log.Info("armed", zap.String("topic", r.next.Alarms.TopicURN))
		r.Cluster.Event(r.rds, r.rap, Event{Reason: eventArmed, Action: "Ensure", Note: message})
	}
	return nil
}

func (r *round) unarmed(reason autopilot.Reason, message string) error {
	autopilot.SetCondition(&r.next, v1alpha1.ConditionArmed, false, string(reason), message, r.rap.Generation, r.now)
	return nil
}

// due reports whether the cloud is to be asked: not in every round, for a round may come with every message.
func (r *round) due(rules []autopilot.Rule) bool {
	r.mu.Lock()
	last, seen := r.armed[r.key]
	r.mu.Unlock()
	a := r.next.Alarms
	if !seen || r.now.Sub(last) >= r.Sweep*9/10 || a.Subscription != v1alpha1.SubscriptionConfirmed ||
		r.rap.Status.ObservedGeneration != r.rap.Generation || len(a.Rules) != len(rules) {
		return true
	}
	if s := r.rap.Status.Intake.Subscription; s != nil && s.ReceivedTime.After(last) {
		return true
	}
	return slices.ContainsFunc(rules, func(want autopilot.Rule) bool {
		return !slices.ContainsFunc(a.Rules, func(have v1alpha1.Rule) bool {
			return have.Metric == want.Metric && int(have.ThresholdPercent) == want.ThresholdPercent
		})
	})
}

func (r *round) ensure(ctx context.Context, c autopilot.Case, rules []autopilot.Rule) error {
	have, err := r.Arming.Ensure(ctx, Arms{Autopilot: r.rap, Instance: *c.Instance, Rules: rules}, r.next.Alarms,
		func(step v1alpha1.Alarms) error {
			r.next.Alarms = step
			return r.write(ctx)
		})
	if err != nil {
		return err
	}
	r.next.Alarms = have
	r.mu.Lock()
	r.armed[r.key] = r.now
	r.mu.Unlock()
	return nil
}

func armingReason(err error) string {
	if errors.Is(err, ErrQuota) {
		return autopilot.QuotaExceeded
	}
	return autopilot.CloudUnreachable
}

// forget drops what is remembered of a database that is no longer armed.
func (c *Controller) forget(k Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.armed, k)
}
