// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/decide"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

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
