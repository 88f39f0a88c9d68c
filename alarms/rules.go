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
)

// writeAgainAfter is how long a rule is left as it is that Cloud Eye does not change although alarms depend on it.
const writeAgainAfter = 30 * time.Minute

// rules ensures one rule per wanted metric and none of the others. Removing goes first: it makes room in the quota. One rule
// that cannot be mended is in the way of no other, unless Cloud Eye does not answer at all.
func (e *ensuring) rules(ctx context.Context) error {
	if err := e.listed.cloudEyeErr(); err != nil {
		return err
	}
	if e.rulesInOrder() {
		return nil
	}
	listed, err := e.cloud.Rules(ctx)
	if err != nil {
		return fmt.Errorf("the alarm rules cannot be listed: %w", err)
	}
	var failed failures
	for _, metric := range metrics() {
		if _, wanted := e.want.rule(metric); !wanted {
			err := e.unwanted(ctx, listed, metric)
			if err != nil {
				failed = append(failed, err)
			}
			if e.over(err) {
				return failed
			}
		}
	}
	var full error // told once, for all rules that there is no room for
	for _, want := range e.want.Rules {
		err := e.rule(ctx, listed, want)
		switch {
		case errors.Is(err, otc.ErrQuota):
			full = cmp.Or(full, err)
		case err != nil:
			failed = append(failed, err)
		}
		if e.over(err) {
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

// over says whether an error leaves nothing for the other rules to try.
func (e *ensuring) over(err error) bool {
	_, lost := errors.AsType[recordError](err)
	return lost || errors.Is(err, otc.ErrUnavailable) || errors.Is(err, otc.ErrCredentials)
}

// unwanted removes the rules of a metric that is not watched.
func (e *ensuring) unwanted(ctx context.Context, listed []otc.Rule, metric string) error {
	ours, err := e.ours(ctx, listed, metric)
	if err != nil {
		return err
	}
	if err := e.deleteRules(ctx, ours); err != nil {
		return err
	}
	if e.known.TopicURN != "" && e.known.rule(metric).ID == "" {
		e.tellRemoved(metric, ours)
	}
	e.have = e.have.with(HaveRule{Metric: metric})
	return nil
}

// rule ensures the rule of one metric.
func (e *ensuring) rule(ctx context.Context, listed []otc.Rule, want WantRule) error {
	ours, err := e.ours(ctx, listed, want.Metric)
	if err != nil {
		return err
	}
	known := e.known.rule(want.Metric)
	there := slices.ContainsFunc(ours, func(r otc.Rule) bool { return r.ID == known.ID })
	kept := otc.Rule{}
	if fit := slices.IndexFunc(ours, func(r otc.Rule) bool { return sameSeries(r, e.shape(want, r)) }); fit >= 0 {
		kept = ours[fit]
		ours = slices.Delete(ours, fit, fit+1)
	}
	// Metric and dimension of a rule cannot be changed: one that watches something else goes like a duplicate. It goes
	// from the record first, so that no later run takes it for one that somebody deleted.
	if there && kept.ID != known.ID {
		e.have = e.have.with(HaveRule{Metric: want.Metric})
		if err := e.save(); err != nil {
			return err
		}
	}
	if err := e.deleteRules(ctx, ours); err != nil {
		return err
	}
	if known.ID != "" {
		e.tellRemoved(want.Metric, slices.DeleteFunc(ours, func(r otc.Rule) bool { return r.ID == known.ID }))
	}
	gone := known.ID != "" && !there
	if kept.ID == "" {
		shape := e.shape(want, kept)
		e.have = e.have.with(HaveRule{Metric: want.Metric})
		if shape.ID, err = e.cloud.CreateRule(ctx, shape); err != nil {
			return fmt.Errorf("the %s rule cannot be made: %w", want.Metric, err)
		}
		if gone {
			e.tell("the %s rule was gone: made again", want.Metric)
		}
		e.have = e.have.with(haveOf(want, shape))
		return e.save() // before its first alarm comes
	}
	if gone {
		e.tell("the %s rule was gone: another one of its name is kept", want.Metric)
	}
	as := haveOf(want, kept)
	if as.ThresholdPercent = int(kept.Threshold); kept.ID == known.ID {
		as.ThresholdPercent = known.ThresholdPercent
	}
	e.have = e.have.with(as) // until it is mended
	if err := e.mend(ctx, want, kept); err != nil {
		return err
	}
	e.have = e.have.with(haveOf(want, kept))
	return nil
}

// mend gives a rule what it shall have. What Cloud Eye acknowledges and then shows otherwise is an error if alarms do not
// come as wanted for it; then it is tried again after a while.
func (e *ensuring) mend(ctx context.Context, want WantRule, kept otc.Rule) error {
	shape := e.shape(want, kept)
	before, inVain := differences(kept, shape), e.ruleInVain(shape, kept)
	after := kept
	if len(before) > 0 && (inVain.IsZero() || !harmless(before) && e.now().Sub(inVain) >= writeAgainAfter) {
		if err := e.write(ctx, shape, before); err != nil {
			return fmt.Errorf("the %s rule cannot be mended: %w", want.Metric, err)
		}
		var err error
		if after, err = e.cloud.Rule(ctx, kept.ID); err != nil { // it is looked at again with the next listing
			after = shape
		}
		e.noteRepair(kept.ID, unchanged{fingerprint(shape), fingerprint(after)})
		switch left := differences(after, shape); {
		case len(left) == 0 && kept.ID == e.known.rule(want.Metric).ID:
			e.tellMended(kept, shape, want.Metric)
		case len(left) > 0 && inVain.IsZero():
			e.tell("the %s rule was written again, and Cloud Eye still shows it otherwise: %s", want.Metric, strings.Join(left, ", "))
		}
	}
	if left := differences(after, shape); !harmless(left) {
		return fmt.Errorf("the %s rule was written, and Cloud Eye still shows it otherwise: %s", want.Metric, strings.Join(left, ", "))
	}
	return nil
}

// write changes a rule; whether it is enabled has a call of its own.
func (e *ensuring) write(ctx context.Context, shape otc.Rule, differences []string) error {
	enabled := slices.Contains(differences, diffEnabled)
	if !enabled || len(differences) > 1 {
		if err := e.cloud.ModifyRule(ctx, shape.ID, shape); err != nil {
			return err
		}
	}
	if enabled {
		return e.cloud.EnableRule(ctx, shape.ID, shape.Enabled)
	}
	return nil
}

// ruleInVain says when that rule was written so, and read as it is now.
func (e *ensuring) ruleInVain(shape, there otc.Rule) time.Time {
	return e.inVain(shape.ID, unchanged{fingerprint(shape), fingerprint(there)})
}

// fingerprint is all that can be changed of a rule.
func fingerprint(r otc.Rule) string {
	r.State, r.UpdateTime = "", time.Time{}
	return fmt.Sprintf("%+v", r)
}

// rulesInOrder says whether the listing shows the rules as they shall be, and takes their states.
func (e *ensuring) rulesInOrder() bool {
	if e.listed == nil {
		return false
	}
	have := e.have
	for _, metric := range metrics() {
		name, id := RuleName(e.want.Name, metric), e.have.rule(metric).ID
		want, wanted := e.want.rule(metric)
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
		shape := e.shape(want, r)
		left := differences(r, shape)
		if !sameSeries(r, shape) || !harmless(left) || len(left) > 0 && e.ruleInVain(shape, r).IsZero() {
			return false
		}
		if len(left) == 0 {
			e.noteRepair(id, unchanged{}) // the same damage, done again, is another matter
		}
		have = have.with(haveOf(want, r))
	}
	e.have = have
	return true
}

func haveOf(want WantRule, there otc.Rule) HaveRule {
	return HaveRule{
		Metric: want.Metric, ID: there.ID, ThresholdPercent: want.ThresholdPercent,
		Dimension: want.Dimension + ":" + want.DimensionValue, State: there.State, StateTime: there.UpdateTime,
	}
}

// shape is the rule as it shall be. While no topic is known it notifies what it did, or nothing; the metric was checked.
func (e *ensuring) shape(want WantRule, there otc.Rule) otc.Rule {
	metric, _ := MetricName(want.Metric)
	shape := otc.Rule{
		ID: there.ID, Name: RuleName(e.want.Name, want.Metric), Description: e.mark,
		Namespace: otc.MetricNamespace, Metric: metric, Dimension: want.Dimension, DimensionValue: want.DimensionValue,
		Period: want.PeriodSeconds, Count: want.Count, Repeat: want.RepeatSeconds,
		Filter: "average", Comparison: ">=", Threshold: float64(want.ThresholdPercent), Unit: "%", Level: 2, Enabled: true,
		ActionEnabled: there.ActionEnabled, AlarmActions: there.AlarmActions, OKActions: there.OKActions,
	}
	if topic := e.have.TopicURN; topic != "" {
		shape.ActionEnabled, shape.AlarmActions, shape.OKActions = true, []string{topic}, []string{topic}
	}
	return shape
}

// ours are the rules of one metric: the recorded one first, then the oldest. A recorded rule that the pages did not
// show (they may shift while they are read) is asked for, so that it is not made twice.
func (e *ensuring) ours(ctx context.Context, listed []otc.Rule, metric string) ([]otc.Rule, error) {
	return e.Alarms.ours(ctx, listed, e.want.Name, metric, e.have)
}

func (a *Alarms) ours(ctx context.Context, listed []otc.Rule, base, metric string, have Have) ([]otc.Rule, error) {
	name, recordedID := RuleName(base, metric), have.rule(metric).ID
	// A record alone proves nothing; a rule that was renamed still notifies our topic, or bears our mark.
	isOurs := func(r otc.Rule) bool {
		return r.Name == name || r.ID == recordedID &&
			(have.TopicURN != "" && slices.Contains(r.AlarmActions, have.TopicURN) || bears(r.Description, base))
	}
	var ours []otc.Rule
	seen := recordedID == ""
	for _, r := range listed {
		seen = seen || r.ID == recordedID
		if isOurs(r) {
			ours = append(ours, r)
		}
	}
	if !seen {
		r, err := a.cloud.Rule(ctx, recordedID)
		switch {
		case err == nil && isOurs(r):
			ours = append(ours, r)
		case err != nil && !errors.Is(err, otc.ErrNotFound):
			return nil, fmt.Errorf("the %s rule cannot be read: %w", metric, err)
		}
	}
	slices.SortFunc(ours, func(x, y otc.Rule) int {
		switch {
		case x.ID == recordedID:
			return -1
		case y.ID == recordedID:
			return 1
		}
		return strings.Compare(x.ID, y.ID) // ids begin with the time of making
	})
	return ours, nil
}

func (a *Alarms) deleteRules(ctx context.Context, rules []otc.Rule) error {
	for _, r := range rules {
		if err := a.cloud.DeleteRule(ctx, r.ID); err != nil {
			return fmt.Errorf("the rule %s cannot be deleted: %w", r.Name, err)
		}
		a.forget(r.ID)
	}
	return nil
}

func sameSeries(have, want otc.Rule) bool {
	return have.Namespace == want.Namespace && have.Metric == want.Metric &&
		have.Dimension == want.Dimension && have.DimensionValue == want.DimensionValue
}
