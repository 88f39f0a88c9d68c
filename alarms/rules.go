// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// writeAgainAfter is how long a rule is left as it is that Cloud Eye does not change although alarms depend on it.
const writeAgainAfter = 30 * time.Minute

// ensureRules ensures one rule per wanted metric and none of the others. Removing goes first: it makes room in the quota.
// One rule that cannot be repaired is in the way of no other, unless Cloud Eye does not answer at all.
func (e *ensureRun) ensureRules(ctx context.Context) error {
	if err := e.listed.cloudEyeErr(); err != nil {
		return err
	}
	if e.rulesInOrder() {
		return nil
	}
	listed, err := e.lists.Rules(ctx)
	if err != nil {
		return fmt.Errorf("the alarm rules cannot be listed: %w", err)
	}
	var failed failures
	for _, metric := range e.metrics {
		if _, wanted := e.desired.rule(metric.Name); !wanted {
			err := e.removeUnwanted(ctx, listed, metric.Name)
			if err != nil {
				failed = append(failed, err)
			}
			if e.endsRun(err) {
				return failed
			}
		}
	}
	var full error // reported once, for all rules that there is no room for
	for _, desired := range e.desired.Rules {
		err := e.ensureRule(ctx, listed, desired)
		switch {
		case errors.Is(err, otc.ErrQuota):
			full = cmp.Or(full, err)
		case err != nil:
			failed = append(failed, err)
		}
		if e.endsRun(err) {
			return failed
		}
	}
	if full != nil {
		if used, quota, err := e.cloud.RuleQuota(ctx); err == nil { // else without the numbers
			full = fmt.Errorf("%d of %d alarm rules used: %w", used, quota, full)
		}
		failed = append(failed, full)
	}
	if failed == nil {
		return nil
	}
	return failed
}

// endsRun reports whether an error leaves nothing for the other rules to try.
func (e *ensureRun) endsRun(err error) bool {
	_, lost := errors.AsType[recordError](err)
	return lost || errors.Is(err, otc.ErrUnavailable) || errors.Is(err, otc.ErrCredentials)
}

// removeUnwanted removes the rules of a metric that is not watched.
func (e *ensureRun) removeUnwanted(ctx context.Context, listed []otc.Rule, metric v1alpha1.Metric) error {
	ours, err := e.ourRules(ctx, listed, metric)
	if err != nil {
		return err
	}
	if err := e.deleteRules(ctx, ours); err != nil {
		return err
	}
	if e.before.TopicURN != "" && ruleOf(e.before, metric).AlarmID == "" {
		e.noteRemoved(metric, ours)
	}
	e.observed = e.withRule(e.observed, v1alpha1.Rule{Metric: metric})
	return nil
}

// ensureRule ensures the rule of one metric.
func (e *ensureRun) ensureRule(ctx context.Context, listed []otc.Rule, desired v1alpha1.DesiredRule) error {
	ours, err := e.ourRules(ctx, listed, desired.Metric)
	if err != nil {
		return err
	}
	known := ruleOf(e.before, desired.Metric)
	there := slices.ContainsFunc(ours, func(r otc.Rule) bool { return r.ID == known.AlarmID })
	kept := otc.Rule{}
	if fit := slices.IndexFunc(ours, func(r otc.Rule) bool { return sameSeries(r, e.targetOf(desired, r)) }); fit >= 0 {
		kept = ours[fit]
		ours = slices.Delete(ours, fit, fit+1)
	}
	// Metric and dimension of a rule cannot be changed: one that watches something else goes like a duplicate. It goes
	// from the record first, so that no later run takes it for one that somebody deleted.
	if there && kept.ID != known.AlarmID {
		e.observed = e.withRule(e.observed, v1alpha1.Rule{Metric: desired.Metric})
		if err := e.save(); err != nil {
			return err
		}
	}
	if err := e.deleteRules(ctx, ours); err != nil {
		return err
	}
	if known.AlarmID != "" {
		e.noteRemoved(desired.Metric, slices.DeleteFunc(ours, func(r otc.Rule) bool { return r.ID == known.AlarmID }))
	}
	gone := known.AlarmID != "" && !there
	if kept.ID == "" {
		target := e.targetOf(desired, kept)
		e.observed = e.withRule(e.observed, v1alpha1.Rule{Metric: desired.Metric})
		if target.ID, err = e.cloud.CreateRule(ctx, target); err != nil {
			return fmt.Errorf("the %s rule cannot be made: %w", desired.Metric, err)
		}
		if gone {
			e.noteMended("the %s rule was gone: made again", desired.Metric)
		}
		e.observed = e.withRule(e.observed, e.observedRule(desired, target))
		return e.save() // before its first alarm comes
	}
	if gone {
		e.noteMended("the %s rule was gone: another one of its name is kept", desired.Metric)
	}
	as := e.observedRule(desired, kept)
	if as.ThresholdPercent = percent(int(kept.Threshold)); kept.ID == known.AlarmID {
		as.ThresholdPercent = known.ThresholdPercent
	}
	e.observed = e.withRule(e.observed, as) // until it is mended
	if err := e.repairRule(ctx, desired, kept); err != nil {
		return err
	}
	e.observed = e.withRule(e.observed, e.observedRule(desired, kept))
	return nil
}

// repairRule gives a rule what it should have. What Cloud Eye acknowledges and then shows otherwise is an error if alarms do
// not come as wanted for it; then it is tried again after a while.
func (e *ensureRun) repairRule(ctx context.Context, desired v1alpha1.DesiredRule, kept otc.Rule) error {
	target := e.targetOf(desired, kept)
	before, ineffectiveAt := differences(kept, target), e.ruleIneffectiveSince(target, kept)
	after := kept
	if len(before) > 0 && (ineffectiveAt.IsZero() || !harmless(before) && e.now().Sub(ineffectiveAt) >= writeAgainAfter) {
		if err := e.writeRule(ctx, target, before); err != nil {
			return fmt.Errorf("the %s rule cannot be mended: %w", desired.Metric, err)
		}
		var err error
		if after, err = e.cloud.Rule(ctx, kept.ID); err != nil { // it is looked at again with the next listing
			after = target
		}
		e.noteRepair(kept.ID, repair{fingerprint(target), fingerprint(after)})
		switch remaining := differences(after, target); {
		case len(remaining) == 0 && kept.ID == ruleOf(e.before, desired.Metric).AlarmID:
			e.noteRestored(kept, target, desired.Metric)
		case len(remaining) > 0 && ineffectiveAt.IsZero():
			e.noteMended("the %s rule was written again, and Cloud Eye still shows it otherwise: %s", desired.Metric, strings.Join(remaining, ", "))
		}
	}
	if remaining := differences(after, target); !harmless(remaining) {
		return fmt.Errorf("the %s rule was written, and Cloud Eye still shows it otherwise: %s", desired.Metric, strings.Join(remaining, ", "))
	}
	return nil
}

// writeRule changes a rule; whether it is enabled has a call of its own.
func (e *ensureRun) writeRule(ctx context.Context, target otc.Rule, differences []string) error {
	enabled := slices.Contains(differences, diffEnabled)
	if !enabled || len(differences) > 1 {
		if err := e.cloud.ModifyRule(ctx, target.ID, target); err != nil {
			return err
		}
	}
	if enabled {
		return e.cloud.EnableRule(ctx, target.ID, target.Enabled)
	}
	return nil
}

// ruleIneffectiveSince is when that rule was written so, and read as it is now; the zero time is never.
func (e *ensureRun) ruleIneffectiveSince(target, there otc.Rule) time.Time {
	return e.ineffectiveSince(target.ID, repair{fingerprint(target), fingerprint(there)})
}

// rulesInOrder reports whether the listing shows the rules as they should be, and adopts their states.
func (e *ensureRun) rulesInOrder() bool {
	if e.listed == nil {
		return false
	}
	observed := e.observed
	for _, metric := range e.metrics {
		name, id := RuleName(e.desired.Name, metric.Name), ruleOf(e.observed, metric.Name).AlarmID
		desired, wanted := e.desired.rule(metric.Name)
		if !wanted {
			if id != "" || e.listed.rulesNamed[name] > 0 {
				return false
			}
			continue
		}
		r, ok := e.listed.onlyRule(name, id)
		if !ok {
			return false
		}
		target := e.targetOf(desired, r)
		remaining := differences(r, target)
		if !sameSeries(r, target) || !harmless(remaining) || len(remaining) > 0 && e.ruleIneffectiveSince(target, r).IsZero() {
			return false
		}
		if len(remaining) == 0 {
			e.noteRepair(id, repair{}) // the same damage, done again, is another matter
		}
		observed = e.withRule(observed, e.observedRule(desired, r))
	}
	e.observed = observed
	return true
}
