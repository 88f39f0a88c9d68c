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
	var later error
	if r.due(*c.Instance, rules) {
		err := r.ensure(ctx, c, rules)
		switch {
		case errors.Is(err, ErrLater) && !errors.Is(err, ErrQuota):
			later = err
		case err != nil:
			autopilot.SetCondition(&r.next, v1alpha1.ConditionArmed, false, armingReason(err), err.Error(), r.rap.Generation, r.now)
			return fmt.Errorf("arm: %w", err)
		}
	}
	ok, reason, message := autopilot.Armed(c.Spec, r.next.Alarms, r.now)
	if later != nil && reason == autopilot.SubscriptionPending {
		message = later.Error()
	}
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

// order is what is remembered of a database whose arming was in order.
type order struct {
	at         time.Time // the zero time if it is not since
	generation int64     // of the policy
}

func (r *round) ordered() (order, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, seen := r.armed[r.key]
	return o, seen
}

func (r *round) setOrder(at time.Time, generation int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armed[r.key] = order{at, generation}
}

// due reports whether the cloud is to be asked: not in every round, for a round may come with every message.
func (r *round) due(inst autopilot.Instance, rules []autopilot.Rule) bool {
	last, seen := r.ordered()
	a := r.next.Alarms
	if !seen || last.at.IsZero() || last.generation != r.rap.Generation || r.sweep ||
		a.Subscription != v1alpha1.SubscriptionConfirmed || len(a.Rules) != len(rules) || r.elsewhere(inst) {
		return true
	}
	if s := r.rap.Status.Intake.Subscription; s != nil && s.ReceivedTime.After(last.at) {
		return true
	}
	return slices.ContainsFunc(rules, func(want autopilot.Rule) bool {
		return !slices.ContainsFunc(a.Rules, func(have v1alpha1.Rule) bool {
			return have.Metric == want.Metric && int(have.ThresholdPercent) == want.ThresholdPercent
		})
	})
}

// elsewhere reports whether a rule watches what is neither the instance nor its primary node: another instance has come
// under the name, or another node is the primary.
func (r *round) elsewhere(inst autopilot.Instance) bool {
	return slices.ContainsFunc(r.next.Alarms.Rules, func(rule v1alpha1.Rule) bool {
		_, value, _ := strings.Cut(rule.Dimension, ":")
		return value != "" && value != inst.ID && value != inst.Primary && inst.Primary != ""
	})
}

func (r *round) ensure(ctx context.Context, c autopilot.Case, rules []autopilot.Rule) error {
	last, seen := r.ordered()
	renewed := last.generation != r.rap.Generation
	if !seen {
		renewed = r.observed != r.rap.Generation
		last.generation = r.observed
	}
	r.setOrder(time.Time{}, last.generation)
	dimension, err := r.dimension(ctx, *c.Instance)
	if err != nil {
		return err
	}
	arms := Arms{Autopilot: r.rap, Instance: *c.Instance, Dimension: dimension, Rules: rules, Renewed: renewed, NotBefore: r.listed()}
	have, mended, err := r.Arming.Ensure(ctx, arms, r.next.Alarms, func(step v1alpha1.Alarms) error {
		r.next.Alarms = step
		return r.write(ctx)
	})
	if len(mended) > 0 {
		r.log.Info("mended", zap.Strings("what", mended))
		r.Cluster.Event(r.rds, r.rap, Event{Reason: eventMended, Action: "Ensure", Note: strings.Join(mended, "; ")})
	}
	if err != nil && !errors.Is(err, ErrLater) && !errors.Is(err, ErrQuota) {
		return err
	}
	r.next.Alarms = have // all but what the error names
	r.setOrder(r.now, r.rap.Generation)
	return err
}

// listed says how new a listing must be to arm by it. While a confirmation is waited for, one round after the other, the
// listings of the last interval do, unless a message came since.
func (r *round) listed() time.Time {
	if r.sweep || r.next.Alarms.Subscription != v1alpha1.SubscriptionPending {
		return r.notBefore
	}
	since := r.now.Add(-r.Recheck)
	if s := r.rap.Status.Intake.Subscription; s != nil && s.ReceivedTime.After(since) {
		return s.ReceivedTime.Time
	}
	return since
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
