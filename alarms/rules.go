// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// retryRewrite is how long to wait before rewriting a rule that Cloud Eye accepted but did not change, if alarms
// depend on the difference.
const retryRewrite = 30 * time.Minute

// ensureRules ensures one rule for each desired metric and none for the others. It removes rules first, because that
// frees quota. A rule that cannot be repaired does not stop the others, unless Cloud Eye does not answer at all.
func (e *ensureRun) ensureRules(ctx context.Context) error {
	if err := e.snapshot.cloudEyeErr(); err != nil {
		return err
	}
	if e.rulesInOrder() {
		return nil
	}
	listed, err := e.options.Lister.Rules(ctx)
	if err != nil {
		return fmt.Errorf("the alarm rules cannot be listed: %w", err)
	}
	var failed failures
	for _, metric := range e.options.Metrics {
		if _, wanted := e.rule(metric.Name); !wanted {
			err := e.removeUnwanted(ctx, listed, metric.Name)
			if err != nil {
				failed = append(failed, err)
			}
			if e.endsRun(err) {
				return failed
			}
		}
	}
	var full error // reported once, for all rules that exceed the quota
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
		if used, quota, err := e.options.Cloud.RuleQuota(ctx); err == nil { // otherwise the error has no numbers
			full = fmt.Errorf("%d of %d alarm rules used: %w", used, quota, full)
		}
		failed = append(failed, full)
	}
	if failed == nil {
		return nil
	}
	return failed
}

// endsRun reports whether the other rules would fail with the same error.
func (e *ensureRun) endsRun(err error) bool {
	_, lost := errors.AsType[recordError](err)
	return lost || errors.Is(err, otc.ErrUnavailable) || errors.Is(err, otc.ErrCredentials)
}

// removeUnwanted removes the rules of a metric that is not desired.
func (e *ensureRun) removeUnwanted(ctx context.Context, listed []otc.Rule, metric v1alpha1.Metric) error {
	ours, err := e.rulesOf(ctx, listed, e.name, metric, e.observed)
	if err != nil {
		return err
	}
	if err := e.deleteRules(ctx, ours); err != nil {
		return err
	}
	e.observed = e.withRule(e.observed, v1alpha1.Rule{Metric: metric})
	return nil
}

// ensureRule ensures the rule of one metric.
func (e *ensureRun) ensureRule(ctx context.Context, listed []otc.Rule, desired v1alpha1.DesiredRule) error {
	ours, err := e.rulesOf(ctx, listed, e.name, desired.Metric, e.observed)
	if err != nil {
		return err
	}
	recorded := ruleOf(e.before, desired.Metric)
	there := slices.ContainsFunc(ours, func(r otc.Rule) bool { return r.ID == recorded.AlarmID })
	kept := otc.Rule{}
	if fit := slices.IndexFunc(ours, func(r otc.Rule) bool { return sameSeries(r, e.targetOf(desired, r)) }); fit >= 0 {
		kept = ours[fit]
		ours = slices.Delete(ours, fit, fit+1)
	}
	// Metric and dimension of a rule cannot be changed, so a rule that watches something else is deleted like a
	// duplicate. It is removed from the record first, so that no later run reports it as deleted by somebody else.
	if there && kept.ID != recorded.AlarmID {
		e.observed = e.withRule(e.observed, v1alpha1.Rule{Metric: desired.Metric})
		if err := e.save(); err != nil {
			return err
		}
	}
	if err := e.deleteRules(ctx, ours); err != nil {
		return err
	}
	others := slices.ContainsFunc(ours, func(r otc.Rule) bool { return r.ID != recorded.AlarmID })
	restored := recorded.AlarmID != "" && (!there || others)
	if kept.ID == "" {
		target := e.targetOf(desired, kept)
		e.observed = e.withRule(e.observed, v1alpha1.Rule{Metric: desired.Metric})
		if target.ID, err = e.options.Cloud.CreateRule(ctx, target); err != nil {
			return fmt.Errorf("the %s rule cannot be created: %w", desired.Metric, err)
		}
		e.noteRestored(desired.Metric, restored)
		e.observed = e.withRule(e.observed, e.observedRule(desired, target))
		return e.save() // before its first alarm arrives
	}
	unrepaired := e.observedRule(desired, kept)
	unrepaired.ThresholdPercent = percent(int(kept.Threshold))
	if kept.ID == recorded.AlarmID {
		unrepaired.ThresholdPercent = recorded.ThresholdPercent
	}
	e.observed = e.withRule(e.observed, unrepaired) // until it is repaired
	repaired, err := e.repairRule(ctx, desired, kept)
	e.noteRestored(desired.Metric, restored || repaired)
	if err != nil {
		return err
	}
	e.observed = e.withRule(e.observed, e.observedRule(desired, kept))
	return nil
}

// noteRestored reports a rule that somebody else had changed, if there was one.
func (e *ensureRun) noteRestored(metric v1alpha1.Metric, restored bool) {
	if restored {
		e.noteRepaired("the %s rule was restored", metric)
	}
}

// repairRule writes a rule that is not as desired. It reports whether it repaired a change by somebody else. If Cloud
// Eye accepts that without effect and alarms depend on the difference, it returns an error and writes again after
// retryRewrite.
func (e *ensureRun) repairRule(
	ctx context.Context, desired v1alpha1.DesiredRule, kept otc.Rule,
) (repaired bool, err error) {
	target := e.targetOf(desired, kept)
	remaining := compare(kept, target)
	ineffectiveAt := e.ineffectiveSince(kept.ID, string(remaining))
	retry := remaining == harmful && e.options.Now().Sub(ineffectiveAt) >= retryRewrite
	if remaining != "" && (ineffectiveAt.IsZero() || retry) {
		if err := e.writeRule(ctx, kept, target); err != nil {
			return false, fmt.Errorf("the %s rule cannot be repaired: %w", desired.Metric, err)
		}
		after, err := e.options.Cloud.Rule(ctx, kept.ID)
		if err != nil { // the next snapshot shows whether it took effect
			after = target
		}
		remaining = compare(after, target)
		e.noteRepair(kept.ID, string(remaining))
		if remaining != "" && ineffectiveAt.IsZero() {
			e.noteRepaired("the %s rule was written again, and Cloud Eye still shows different values", desired.Metric)
		}
		repaired = remaining == "" && !e.isByPolicy(desired, kept)
	}
	if remaining == harmful {
		err = fmt.Errorf("the %s rule was written, and Cloud Eye still shows different values", desired.Metric)
	}
	return repaired, err
}

// isByPolicy reports whether a rule may differ because the policy has changed, or because there was no topic to notify.
func (e *ensureRun) isByPolicy(desired v1alpha1.DesiredRule, kept otc.Rule) bool {
	recorded := ruleOf(e.before, desired.Metric)
	return e.desired.Renewed || e.before.TopicURN == "" || kept.ID != recorded.AlarmID ||
		percent(desired.ThresholdPercent) != recorded.ThresholdPercent
}

// writeRule writes the fields of a rule. Cloud Eye has a separate call that enables a rule.
func (e *ensureRun) writeRule(ctx context.Context, kept, target otc.Rule) error {
	enabled := kept.Enabled
	if kept.Enabled = target.Enabled; compare(kept, target) != "" {
		if err := e.options.Cloud.ModifyRule(ctx, target.ID, target); err != nil {
			return err
		}
	}
	if enabled != target.Enabled {
		return e.options.Cloud.EnableRule(ctx, target.ID, target.Enabled)
	}
	return nil
}

// rulesInOrder reports whether the snapshot shows the rules as desired. If so, it adopts their states.
func (e *ensureRun) rulesInOrder() bool {
	if e.snapshot == nil {
		return false
	}
	observed := e.observed
	for _, metric := range e.options.Metrics {
		name, id := RuleName(e.name, metric.Name), ruleOf(e.observed, metric.Name).AlarmID
		desired, wanted := e.rule(metric.Name)
		if !wanted {
			if id != "" || e.snapshot.rulesNamed[name] > 0 {
				return false
			}
			continue
		}
		r, ok := e.snapshot.onlyRule(name, id)
		if !ok {
			return false
		}
		target := e.targetOf(desired, r)
		remaining := compare(r, target)
		if !sameSeries(r, target) || remaining == harmful ||
			remaining != "" && e.ineffectiveSince(id, string(remaining)).IsZero() {
			return false
		}
		if remaining == "" {
			e.noteRepair(id, "") // the same difference is repaired if it appears again
		}
		observed = e.withRule(observed, e.observedRule(desired, r))
	}
	e.observed = observed
	return true
}
