package alarms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// rules ensures one rule per wanted metric and none of the others. Removing goes first: it makes room in the quota.
func (e *ensuring) rules(ctx context.Context, listed []otc.Rule) error {
	for _, metric := range metrics() {
		if _, wanted := e.want.rule(metric); wanted {
			continue
		}
		ours, err := e.ours(ctx, listed, metric)
		if err != nil {
			return err
		}
		if err := e.deleteRules(ctx, ours); err != nil {
			return err
		}
		if e.known.TopicURN != "" && e.known.rule(metric).ID == "" {
			e.tellRemoved(metric, len(ours), 0)
		}
		e.have = e.have.with(HaveRule{Metric: metric})
	}
	for _, want := range e.want.Rules {
		err := e.rule(ctx, listed, want)
		if errors.Is(err, otc.ErrQuota) { // the others may need mending all the same
			e.full = err
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rule ensures the rule of one metric.
func (e *ensuring) rule(ctx context.Context, listed []otc.Rule, want WantRule) error {
	shape, err := e.shape(want)
	if err != nil {
		return err
	}
	ours, err := e.ours(ctx, listed, want.Metric)
	if err != nil {
		return err
	}
	known := e.known.rule(want.Metric)
	there := slices.ContainsFunc(ours, func(r otc.Rule) bool { return r.ID == known.ID })
	kept := otc.Rule{}
	if fit := slices.IndexFunc(ours, func(r otc.Rule) bool { return sameSeries(r, shape) }); fit >= 0 {
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
		others := slices.DeleteFunc(ours, func(r otc.Rule) bool { return r.ID == known.ID })
		e.tellRemoved(want.Metric, len(others), 1)
	}
	gone := known.ID != "" && !there
	if kept.ID == "" {
		e.have = e.have.with(HaveRule{Metric: want.Metric})
		id, err := e.cloud.CreateRule(ctx, shape)
		if err != nil {
			return fmt.Errorf("create rule %s: %w", shape.Name, err)
		}
		if gone {
			e.tell("the %s rule was gone: made again", want.Metric)
		}
		e.have = e.have.with(haveOf(want, shape, otc.Rule{ID: id}))
		return e.save() // before its first alarm comes
	}
	if gone {
		e.tell("the %s rule was gone: another one of its name is kept", want.Metric)
	}
	if err := e.mend(ctx, want, shape, kept); err != nil {
		return err
	}
	e.have = e.have.with(haveOf(want, shape, kept))
	return nil
}

// mend gives a rule the numbers it shall have, and enables it.
func (e *ensuring) mend(ctx context.Context, want WantRule, shape, kept otc.Rule) error {
	known := e.known.rule(want.Metric)
	if !sameNumbers(kept, shape) {
		if err := e.cloud.ModifyRule(ctx, kept.ID, shape); err != nil {
			return fmt.Errorf("modify rule %s: %w", shape.Name, err)
		}
		if kept.ID == known.ID {
			e.tellNumbers(kept, shape, known)
		}
	}
	if !kept.Enabled {
		if err := e.cloud.EnableRule(ctx, kept.ID, true); err != nil {
			return fmt.Errorf("enable rule %s: %w", shape.Name, err)
		}
		if kept.ID == known.ID {
			e.tell("the %s rule was disabled: enabled again", want.Metric)
		}
	}
	return nil
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
		shape, err := e.shape(want)
		if err != nil {
			return false
		}
		r, ok := e.listed.onlyRule(name, id)
		if !ok || !sameSeries(r, shape) || !sameNumbers(r, shape) || !r.Enabled {
			return false
		}
		have = have.with(haveOf(want, shape, r))
	}
	e.have = have
	return true
}

func haveOf(want WantRule, shape, there otc.Rule) HaveRule {
	return HaveRule{
		Metric: want.Metric, ID: there.ID, ThresholdPercent: want.ThresholdPercent,
		Dimension: shape.Dimension + ":" + shape.DimensionValue, State: there.State, StateTime: there.UpdateTime,
	}
}

// shape is the rule as it shall be.
func (e *ensuring) shape(want WantRule) (otc.Rule, error) {
	metric, err := MetricName(want.Metric)
	return otc.Rule{
		Name: RuleName(e.want.Name, want.Metric), Description: e.mark,
		Namespace: otc.MetricNamespace, Metric: metric, Dimension: want.Dimension, DimensionValue: want.DimensionValue,
		Period: want.PeriodSeconds, Count: want.Count, Repeat: want.RepeatSeconds,
		Filter: "average", Comparison: ">=", Threshold: float64(want.ThresholdPercent), Unit: "%", Level: 2,
		Enabled: true, ActionEnabled: true, AlarmActions: []string{e.have.TopicURN}, OKActions: []string{e.have.TopicURN},
	}, err
}

// ours are the rules of one metric: the recorded one first, then the oldest. A recorded rule that the pages did not
// show (they may shift while they are read) is asked for, so that it is not made twice.
func (e *ensuring) ours(ctx context.Context, listed []otc.Rule, metric string) ([]otc.Rule, error) {
	return e.Alarms.ours(ctx, listed, RuleName(e.want.Name, metric), e.have.rule(metric).ID, e.have.TopicURN)
}

func (a *Alarms) ours(ctx context.Context, listed []otc.Rule, name, recordedID, topicURN string) ([]otc.Rule, error) {
	isOurs := func(r otc.Rule) bool {
		return r.Name == name || (r.ID == recordedID && topicURN != "" && slices.Contains(r.AlarmActions, topicURN))
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
			return nil, fmt.Errorf("read rule: %w", err)
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
			return fmt.Errorf("delete rule %s: %w", r.Name, err)
		}
	}
	return nil
}

func sameSeries(have, want otc.Rule) bool {
	return have.Namespace == want.Namespace && have.Metric == want.Metric &&
		have.Dimension == want.Dimension && have.DimensionValue == want.DimensionValue
}

func sameNumbers(have, want otc.Rule) bool {
	return have.Name == want.Name && have.Description == want.Description &&
		have.Threshold == want.Threshold && have.Comparison == want.Comparison && have.Filter == want.Filter &&
		have.Period == want.Period && have.Count == want.Count && have.Repeat == want.Repeat &&
		have.ActionEnabled == want.ActionEnabled &&
		slices.Equal(have.AlarmActions, want.AlarmActions) && slices.Equal(have.OKActions, want.OKActions)
}
