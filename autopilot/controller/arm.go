// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	eventArmed    = "Armed"
	eventRepaired = "Repaired"
)

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
	return 0, r.ensure(ctx, *inst)
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

func (r *round) setEnsured(desired *v1alpha1.DesiredAlarms) {
	r.controller.remember(r.key, func(m *memory) { m.ensured, m.cleared = desired, time.Time{} })
}

// desired returns the rules that this database should have. dimension is empty for that of the instance.
func (r *round) desired(inst autopilot.Instance, dimension string) v1alpha1.DesiredAlarms {
	return v1alpha1.DesiredAlarms{
		Namespace: r.key.Namespace, Name: r.key.Name, Recommends: r.effectiveMode() != v1alpha1.ModeAuto,
		TopicURN: r.controller.topicURN(), InstanceID: inst.ID, Engine: inst.Engine, Dimension: dimension,
		Rules: autopilot.Rules(r.rap.Spec, inst.VolumeGB),
	}
}

// armingDue reports whether arm has to call Ensure. Every message starts a round, so not every round may list the
// cloud.
func (r *round) armingDue(c autopilot.Case) bool {
	if c.Instance == nil || c.Claim.By != "" {
		return true // arm reports the reason
	}
	last := r.controller.recall(r.key).ensured
	return last == nil || len(r.rap.Status.Alarms.Rules) != len(last.Rules) || r.watchesAnother(*c.Instance) ||
		!reflect.DeepEqual(*last, r.desired(*c.Instance, last.Dimension))
}

// watchesAnother reports whether a rule watches neither the instance nor its primary node, because the Rds has
// another instance now or another node has become the primary.
func (r *round) watchesAnother(inst autopilot.Instance) bool {
	return slices.ContainsFunc(r.rap.Status.Alarms.Rules, func(rule v1alpha1.Rule) bool {
		_, value, _ := strings.Cut(rule.Dimension, ":")
		return value != inst.ID && (value == "" || value != inst.Primary && inst.Primary != "")
	})
}

func (r *round) ensure(ctx context.Context, inst autopilot.Instance) error {
	last, generation := r.controller.recall(r.key).ensured, r.rap.Generation
	r.setEnsured(nil)
	desired := r.desired(inst, r.dimension(ctx, inst))
	request := desired
	request.Recorded, request.NotBefore = r.rap.Status.Alarms, r.notBefore
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
	observed, repaired, err := r.cloud.Ensure(ctx, request, func(step v1alpha1.Alarms) error {
		return store(step, func(*v1alpha1.Status) {})
	})
	for _, metric := range repaired {
		if last == nil || !reflect.DeepEqual(*last, desired) {
			continue // this leader has not seen the rules as desired before, so the difference may be a change of our own
		}
		r.kube.Event(r.target, r.rap, autopilot.Event{Reason: eventRepaired, Action: "Ensure",
			Note: fmt.Sprintf("The %s rule was restored. To change it, change the policy of the RdsAutopilot", metric)})
	}
	refused := observed.Refused != "" || errors.Is(err, v1alpha1.ErrNameTooLong)
	if err == nil || refused {
		r.setEnsured(&desired) // everything else succeeded
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
		return errors.Join(err, writeErr)
	}
	if newRules {
		r.controller.enqueue(r.key) // an alarm of a new rule may be in force already
	}
	if refused { // the sweep tries again
		r.log.Warn("not armed", zap.Error(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("arm: %w", err)
	}
	return nil
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

func (r *round) disarm(ctx context.Context, off autopilot.Off) error {
	reason, message := string(off.Reason), off.Message
	removed, err := r.removeRules(ctx, r.confirmOff)
	if errors.Is(err, autopilot.ErrConflict) {
		return err
	}
	if err != nil {
		return errors.Join(err, r.storeOff(ctx, r.rap.Status.Alarms, autopilot.CloudUnreachable,
			fmt.Sprintf("%s, but the alarm rules cannot be removed yet: %v", message, err)))
	}
	isHeld := (off.Reason == autopilot.ReasonNotAllowed || off.Reason == autopilot.ReasonPolicyInvalid) && r.isNews(message)
	hadRules := removed > 0 || len(r.rap.Status.Alarms.Rules) > 0
	if err := r.storeOff(ctx, v1alpha1.Alarms{}, reason, message); err != nil {
		return err
	}
	if hadRules {
		r.kube.Event(r.target, r.rap, autopilot.Event{Reason: eventDisarmed, Action: "Remove",
			Note: message + ". Its alarm rules were removed"})
	}
	if isHeld {
		r.warnHeld(reason, message)
	}
	return nil
}

// removeRules removes all rules that bear the mark of the object, and returns how many they were. Before the first one
// it calls confirm. Once it has succeeded, it lists the rules again only for a sweep, and ignores lists that may still
// show the removed rules.
func (r *round) removeRules(ctx context.Context, confirm func(context.Context) error) (removed int, err error) {
	notBefore := r.notBefore
	if cleared := r.controller.recall(r.key).cleared; !cleared.IsZero() {
		if !r.isSweep {
			return 0, nil
		}
		if cleared.After(notBefore) {
			notBefore = cleared
		}
	}
	removed, err = r.cloud.Remove(ctx, r.key.Namespace, r.key.Name, notBefore, confirm)
	if removed > 0 {
		r.log.Info("alarm rules removed", zap.Int("rules", removed))
		r.controller.checkTopic()
	}
	switch {
	case err == nil:
		r.controller.remember(r.key, func(m *memory) { m.ensured, m.cleared = nil, r.options.Now() })
	case !errors.Is(err, autopilot.ErrConflict):
		err = fmt.Errorf("remove the alarm rules: %w", err)
	}
	return removed, err
}

// confirmOff reads the object from the API server. It returns autopilot.ErrConflict if its autopilot is on after all,
// because the cache may be old.
func (r *round) confirmOff(ctx context.Context) error {
	live, err := r.kube.LiveAutopilot(ctx, r.key.Namespace, r.key.Name)
	if errors.Is(err, autopilot.ErrGone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the RdsAutopilot: %w", err)
	}
	check := *r
	check.rap = live
	if err := check.readTarget(ctx); errors.Is(err, autopilot.ErrGone) {
		check.target = nil
	} else if err != nil {
		return err
	}
	if off := check.off(); off == (autopilot.Off{}) {
		return fmt.Errorf("autopilot is on: %w", autopilot.ErrConflict)
	}
	return nil
}

// storeOff stores that autopilot is off and which alarm objects remain in the cloud. An alarm that is in force gets a
// last decision, because nobody checks it any more.
func (r *round) storeOff(ctx context.Context, left v1alpha1.Alarms, reason, message string) error {
	var news []autopilot.Decision
	err := r.update(ctx, func(s *v1alpha1.Status) {
		news = record.Decisions(s, r.lastDecisions(*s), r.now)
		s.Alarms = left
		record.ClearOn(autopilot.Case{Now: r.now}, s)
		s.ObservedGeneration, s.EffectiveMode = r.rap.Generation, r.effectiveMode()
		record.SetOff(s, reason, message, r.rap.Generation, r.now)
	})
	if err == nil {
		r.emitDecisions(news)
	}
	return err
}

func (r *round) lastDecisions(s v1alpha1.Status) []autopilot.Decision {
	c := autopilot.Case{Now: r.now, Spec: r.rap.Spec, Generation: r.rap.Generation, Off: r.off(), Status: s}
	for _, rule := range s.Alarms.Rules {
		if rule.State == v1alpha1.StateAlarm && rule.StateTime != nil {
			c.Alarms = append(c.Alarms, autopilot.Alarm{
				Metric: rule.Metric, State: rule.State, StateTime: rule.StateTime.Time, Signal: autopilot.SignalFor(s.Intake, rule),
			})
		}
	}
	// Autopilot is off, so no guard asks for more.
	known := func(context.Context, *autopilot.Case, autopilot.Fact) error { return nil }
	return decide.Walk(context.Background(), &c, known).Decisions
}
