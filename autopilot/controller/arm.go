// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	eventArmed    = "Armed"
	eventRepaired = "Repaired"
)

// ensureRecord describes the last successful Ensure of a database. It is kept in memory only: after a restart, Ensure
// runs once more.
type ensureRecord struct {
	at         time.Time // zero if Ensure has failed since
	generation int64     // of the policy
	topicURN   string
}

// arm makes the alarm rules of one database fit the policy and the size of the volume, or removes them if autopilot is
// off or the database is gone. It sets the conditions Armed and Ready, and returns when to check again.
func (c *Controller) arm(ctx context.Context, key Key) (requeueAfter time.Duration, err error) {
	taken := c.armMarks.take(key)
	r, ok := c.newRound(key)
	r.notBefore, r.isSweep = r.now, taken.isSweep
	if r.isSweep {
		r.notBefore = taken.begun
	}
	if !ok {
		_, err := r.removeRules(ctx, r.confirmOff)
		if _, isRefused := errors.AsType[*autopilot.RefusedError](err); isRefused {
			r.log.Warn("the rules of an object that may not be read stay", zap.Error(err))
			return 0, nil // until a sweep can read it
		}
		return 0, err
	}
	if err := r.readMissingTarget(ctx); err != nil {
		return 0, err
	}
	if off := r.off(); off != (autopilot.Off{}) {
		return 0, r.disarm(ctx, off)
	}
	topic, checked := c.topic()
	if topic.URN == "" && (topic.Message == "" || !checked) {
		c.checkTopic() // the topic is created first, and its check enqueues arming
		return 0, nil
	}
	if !r.isSweep {
		r.notBefore = r.now.Add(-r.options.Sweep) // Ensure itself reads again before it changes anything
	}
	// A list that was read before the cloud became unreachable does not prove that it is reachable again. With it,
	// Armed would alternate between True and False.
	a := meta.FindStatusCondition(r.rap.Status.Conditions, v1alpha1.ConditionArmed)
	if a != nil && a.Reason == autopilot.CloudUnreachable {
		since := a.LastTransitionTime.Add(time.Second) // the API server stores whole seconds
		if since.After(r.notBefore) {
			r.notBefore = since
		}
	}
	cs, err := r.observe(ctx)
	if err != nil {
		return 0, errors.Join(err, r.setNotArmed(ctx, autopilot.CloudUnreachable, "The cloud does not answer: "+err.Error()))
	}
	inst := cs.Instance
	switch {
	case inst == nil && r.target.InstanceID == "":
		return r.options.Recheck, r.setNotArmed(ctx, string(autopilot.ReasonInstanceUnknown), "The Rds has no status.id yet")
	case inst == nil:
		return r.options.Recheck, r.setNotArmed(ctx, string(autopilot.ReasonInstanceUnknown),
			cs.DescribeUnknownInstance()+" ("+r.target.InstanceID+")")
	case cs.Claim.By != "":
		return r.options.Recheck, r.yield(ctx, cs.Claim)
	case !inst.HasKnownEngine():
		return 0, r.setNotArmed(ctx, string(autopilot.ReasonInstanceUnknown),
			"The autopilot does not know the engine "+inst.Engine+". It knows MySQL, PostgreSQL and SQLServer")
	case len(r.rap.Status.Alarms.Rules) == 0 && !inst.Measurable():
		return r.options.Recheck, r.setNotArmed(ctx, string(autopilot.ReasonInstanceUnknown),
			"The instance is in "+inst.Status+". Its alarms are created once it is ACTIVE")
	}
	if err := r.readArmed(ctx); err != nil {
		return 0, err
	}
	// Until a decision has stored the instance, the receiver would ignore its alarms. The decision enqueues arming.
	if seen := r.rap.Status.Instance; seen == nil || seen.ID != inst.ID {
		r.controller.enqueue(r.key)
		return 0, nil
	}
	if !r.isSweep && !r.armingDue(cs) {
		return 0, r.update(ctx, func(s *v1alpha1.Status) { r.setArmed(s, record.LastCheckFailed(*s)) })
	}
	return r.ensure(ctx, *inst)
}

// readMissingTarget reads the Rds from the API server if the cache has none. The watch of the Rds may be behind that of
// the RdsAutopilot, and the alarms of a database that exists must not be removed.
func (r *round) readMissingTarget(ctx context.Context) error {
	if r.target != nil || !r.rap.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := r.readTarget(ctx); !errors.Is(err, autopilot.ErrGone) {
		return err
	}
	return nil
}

func (r *round) setNotArmed(ctx context.Context, reason, message string) error {
	return r.update(ctx, func(s *v1alpha1.Status) { r.notArmed(s, reason, message) })
}

func (r *round) notArmed(s *v1alpha1.Status, reason, message string) {
	record.SetCondition(s, v1alpha1.ConditionArmed, false, reason, message, r.rap.Generation, r.now)
	record.SetReady(s, false, r.rap.Generation, r.now)
}

func (r *round) isNews(message string) bool {
	last := meta.FindStatusCondition(r.rap.Status.Conditions, v1alpha1.ConditionArmed)
	return last == nil || last.Message != message
}

// warnHeld reports that the object must not manage its instance. It has no alarm rules, so no decision reports it.
func (r *round) warnHeld(reason, message string) {
	r.log.Warn("not armed", zap.String("reason", reason), zap.String("message", message))
	r.kube.Event(r.target, r.rap, autopilot.Event{Warning: true, Reason: reason, Action: "Ensure", Note: message})
}

func (r *round) yield(ctx context.Context, claim v1alpha1.Claim) error {
	_, removeErr := r.removeRules(ctx, func(context.Context) error { return nil })
	reason, message := string(autopilot.ReasonInstanceClaimed), autopilot.DescribeClaim(claim)
	isNews := r.isNews(message)
	err := r.update(ctx, func(s *v1alpha1.Status) {
		if removeErr == nil {
			s.Alarms.Rules = nil
		}
		if claim.Rule != "" { // otherwise it is the reason of the claim
			s.Alarms.Refused = ""
		}
		r.notArmed(s, reason, message)
	})
	if err == nil && isNews {
		r.warnHeld(reason, message)
	}
	return errors.Join(removeErr, err)
}

func (r *round) setArmed(s *v1alpha1.Status, readFailed bool) {
	topic, _ := r.controller.topic()
	ok, reason, message := record.Armed(r.rap.Spec, s.Alarms, topic, r.now)
	record.SetCondition(s, v1alpha1.ConditionArmed, ok, reason, message, r.rap.Generation, r.now)
	record.SetReady(s, readFailed, r.rap.Generation, r.now)
}

func (r *round) setEnsured(record *ensureRecord) {
	r.controller.remember(r.key, func(m *memory) { m.ensured, m.cleared = record, time.Time{} })
}

// armingDue reports whether arm has to call Ensure. Every message starts a round, so not every round may list the
// cloud.
func (r *round) armingDue(c autopilot.Case) bool {
	if c.Instance == nil || c.Claim.By != "" {
		return true // arm reports the reason
	}
	rules := autopilot.Rules(c.Spec, c.Instance.VolumeGB)
	last, topic := r.controller.recall(r.key).ensured, r.controller.topicURN()
	a := r.rap.Status.Alarms
	if last == nil || last.at.IsZero() || last.generation != r.rap.Generation || last.topicURN != topic ||
		len(a.Rules) != len(rules) || r.watchesAnother(*c.Instance) {
		return true
	}
	return slices.ContainsFunc(rules, func(want v1alpha1.DesiredRule) bool {
		return !slices.ContainsFunc(a.Rules, func(have v1alpha1.Rule) bool {
			return have.Metric == want.Metric && int(have.ThresholdPercent) == want.ThresholdPercent
		})
	})
}

// watchesAnother reports whether a rule watches neither the instance nor its primary node, because the Rds has
// another instance now or another node has become the primary.
func (r *round) watchesAnother(inst autopilot.Instance) bool {
	return slices.ContainsFunc(r.rap.Status.Alarms.Rules, func(rule v1alpha1.Rule) bool {
		_, value, _ := strings.Cut(rule.Dimension, ":")
		return value != inst.ID && (value == "" || value != inst.Primary && inst.Primary != "")
	})
}

func (r *round) ensure(ctx context.Context, inst autopilot.Instance) (time.Duration, error) {
	last := cmp.Or(r.controller.recall(r.key).ensured, &ensureRecord{})
	r.setEnsured(&ensureRecord{generation: last.generation})
	generation, topic := r.rap.Generation, r.controller.topicURN()
	dimension := r.dimension(ctx, inst)
	desired := v1alpha1.DesiredAlarms{
		Namespace: r.key.Namespace, Name: r.key.Name, Recommends: r.effectiveMode() != v1alpha1.ModeAuto,
		Recorded: r.rap.Status.Alarms, TopicURN: topic, InstanceID: inst.ID, Engine: inst.Engine, Dimension: dimension,
		Rules: autopilot.Rules(r.rap.Spec, inst.VolumeGB), Renewed: last.generation != generation, NotBefore: r.notBefore,
	}
	newRules := false
	store := func(observed v1alpha1.Alarms, setConditions func(*v1alpha1.Status)) error {
		differ := false
		err := r.update(ctx, func(s *v1alpha1.Status) {
			differ = !sameRules(s.Alarms, observed) || s.Alarms.Refused != observed.Refused
			s.Alarms = observed
			setConditions(s)
		})
		newRules = newRules || err == nil && differ
		return err
	}
	// Each id is stored before the next step, because the receiver may get messages about it by then.
	observed, restored, err := r.cloud.Ensure(ctx, desired, func(step v1alpha1.Alarms) error {
		return store(step, func(*v1alpha1.Status) {})
	})
	for _, metric := range restored {
		r.kube.Event(r.target, r.rap, autopilot.Event{Reason: eventRepaired, Action: "Ensure",
			Note: fmt.Sprintf("The %s rule was restored. To change it, change the policy of the RdsAutopilot", metric)})
	}
	refused := observed.Refused != "" || errors.Is(err, v1alpha1.ErrNameTooLong)
	if err == nil || refused {
		r.setEnsured(&ensureRecord{r.now, generation, topic}) // everything else succeeded
	}
	writeErr := store(observed, func(s *v1alpha1.Status) {
		if err == nil {
			r.setArmed(s, record.LastCheckFailed(*s))
			return
		}
		// The condition is set only once, because its transition time would otherwise change in every round.
		record.SetCondition(s, v1alpha1.ConditionArmed, false, armingReason(err), err.Error(), generation, r.now)
		record.SetReady(s, record.LastCheckFailed(*s), generation, r.now)
	})
	if writeErr != nil {
		return 0, errors.Join(err, writeErr)
	}
	if newRules {
		r.controller.enqueue(r.key) // an alarm of a new rule may be in force already
	}
	switch {
	case refused: // the sweep tries again
		r.log.Warn("not armed", zap.Error(err))
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("arm: %w", err)
	}
	return 0, nil
}

// readArmed reads the RdsAutopilot from the API server. The cache may lack what the last arming has stored: Ensure
// would create the same rules again, or report our own change as a repair.
func (r *round) readArmed(ctx context.Context) error {
	live, err := r.readAgain(ctx)
	if err != nil {
		return err
	}
	if live.UID != r.rap.UID {
		return fmt.Errorf("the RdsAutopilot was replaced: %w", autopilot.ErrConflict)
	}
	r.rap = live
	if off := r.off(); off != (autopilot.Off{}) {
		return fmt.Errorf("autopilot was turned off: %w", autopilot.ErrConflict)
	}
	return nil
}

func sameRules(a, b v1alpha1.Alarms) bool {
	return slices.EqualFunc(a.Rules, b.Rules, func(x, y v1alpha1.Rule) bool { return x.AlarmID == y.AlarmID })
}

func armingReason(err error) string {
	switch {
	case errors.Is(err, v1alpha1.ErrQuota):
		return autopilot.QuotaExceeded
	case errors.Is(err, v1alpha1.ErrRuleRefused):
		return autopilot.RuleMissing
	case errors.Is(err, v1alpha1.ErrNameTooLong):
		return autopilot.NameTooLong
	}
	return autopilot.CloudUnreachable
}
