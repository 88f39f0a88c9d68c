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

// retryRewrite is how long to wait before rewriting a rule that Cloud Eye accepted but did not change.
const retryRewrite = 30 * time.Minute

// Ensure makes the rules of one database as desired: one rule for each desired metric, none for the others, and none
// that watches another instance. It calls record after each new rule, because Cloud Eye may notify at once, and stops at
// an error of record. If the list of rules shows that everything is in order, it sends no request to the cloud.
// Otherwise it lists the rules again before it changes anything.
//
// Ensure returns what exists as far as it is known, also with an error, and the metrics whose recorded rule it created
// again or wrote with effect. If the cloud accepts a repair without effect, it repeats the repair after retryRewrite.
// Until then it returns an error, unless the difference is harmless.
//
// The error is one line with all failures. It wraps v1alpha1.ErrQuota, ErrRuleRefused or ErrNameTooLong if that is the
// reason. The result's Refused has Cloud Eye's last answer of the first two kinds until a run succeeds.
func (a *Alarms) Ensure(ctx context.Context, desired v1alpha1.DesiredAlarms,
	record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, []v1alpha1.Metric, error) {
	e := &ensureRun{
		Alarms: a, desired: desired, mark: a.mark(desired.Namespace, desired.Name, desired.Recommends),
		observed: desired.Recorded, record: record,
	}
	err := e.run(ctx)
	if err == nil {
		e.observed.Refused = ""
		return *e.observed.DeepCopy(), e.repaired, nil
	}
	err = oneLine{err}
	if errors.Is(err, v1alpha1.ErrQuota) || errors.Is(err, v1alpha1.ErrRuleRefused) {
		e.observed.Refused = err.Error()
	}
	return *e.observed.DeepCopy(), e.repaired, err
}

type ensureRun struct {
	*Alarms
	desired  v1alpha1.DesiredAlarms
	mark     Mark
	observed v1alpha1.Alarms // what exists, as far as it is known
	record   func(v1alpha1.Alarms) error
	repaired []v1alpha1.Metric
}

// errRecord ends a run, because the receiver must know a rule before its first alarm.
var errRecord = errors.New("record")

type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }

func (e oneLine) Unwrap() error { return e.error }

func (e *ensureRun) run(ctx context.Context) error {
	if n := len(e.mark.Namespace) + len(e.mark.Name); n > partsLimit {
		return fmt.Errorf("%w: namespace and name have %d characters together, and a rule in the cloud has room for %d. Use a shorter name",
			v1alpha1.ErrNameTooLong, n, partsLimit)
	}
	if e.desired.Dimension == "" {
		name, _, err := otc.Dimensions(e.desired.Engine)
		if err != nil {
			return err
		}
		e.desired.Dimension = name + ":" + e.desired.InstanceID
	}
	listed, err := e.options.Cloud.Rules(ctx, e.desired.NotBefore)
	if err != nil {
		return fmt.Errorf("the alarm rules cannot be listed: %w", err)
	}
	if e.inOrder(listed) {
		return nil
	}
	if listed, err = e.options.Cloud.Rules(ctx, e.options.Now()); err != nil {
		return fmt.Errorf("the alarm rules cannot be listed: %w", err)
	}
	var failed, full error                     // full is reported once, for all rules that exceed the quota
	for _, metric := range e.options.Metrics { // removals first, because they free quota
		if _, wanted := e.rule(metric.Name); !wanted {
			failed = errors.Join(failed, e.removeUnwanted(ctx, listed, metric.Name))
		}
	}
	for _, desired := range e.desired.Rules {
		err := e.ensureRule(ctx, listed, desired)
		if errors.Is(err, otc.ErrQuota) {
			full, err = cmp.Or(full, err), nil
		}
		failed = errors.Join(failed, err)
		if errors.Is(err, errRecord) || errors.Is(err, otc.ErrUnavailable) || errors.Is(err, otc.ErrCredentials) {
			return failed // the other rules would fail with the same error
		}
	}
	if full != nil {
		if used, quota, err := e.options.Cloud.RuleQuota(ctx); err == nil { // otherwise the error has no numbers
			full = fmt.Errorf("%d of %d alarm rules used: %w", used, quota, full)
		}
		failed = errors.Join(failed, fmt.Errorf("%w: %w", v1alpha1.ErrQuota, full))
	}
	return failed
}

// inOrder reports whether the list shows the rules as desired. If so, it adopts their states.
func (e *ensureRun) inOrder(listed []otc.Rule) bool {
	observed := v1alpha1.Alarms{}
	for _, metric := range e.options.Metrics {
		ours := e.rulesOf(listed, metric.Name)
		desired, wanted := e.rule(metric.Name)
		if !wanted && len(ours) == 0 {
			continue
		}
		if !wanted || len(ours) != 1 || ours[0].ID != e.recorded(metric.Name).AlarmID {
			return false
		}
		target := e.target(desired, ours[0])
		if !sameSeries(ours[0], target) {
			return false
		}
		remaining := differences(ours[0], target)
		if !harmless(remaining) ||
			len(remaining) > 0 && e.ineffectiveSince(ours[0].ID, strings.Join(remaining, ", ")).IsZero() {
			return false
		}
		if len(remaining) == 0 {
			e.noteRepair(ours[0].ID, "") // the same difference is repaired if it appears again
		}
		observed.Rules = append(observed.Rules, e.observedRule(desired, ours[0]))
	}
	e.observed = observed
	return true
}

func (e *ensureRun) removeUnwanted(ctx context.Context, listed []otc.Rule, metric v1alpha1.Metric) error {
	for _, r := range e.rulesOf(listed, metric) {
		if err := e.deleteRule(ctx, r); err != nil {
			return err
		}
	}
	e.observe(v1alpha1.Rule{Metric: metric})
	return nil
}

// ensureRule ensures the rule of one metric. Metric and dimension of a rule cannot be changed, so a rule that watches
// something else is deleted like a duplicate.
func (e *ensureRun) ensureRule(ctx context.Context, listed []otc.Rule, desired v1alpha1.DesiredRule) error {
	kept := otc.Rule{}
	for _, r := range e.rulesOf(listed, desired.Metric) {
		if kept.ID == "" && sameSeries(r, e.target(desired, r)) {
			kept = r
		} else if err := e.deleteRule(ctx, r); err != nil {
			return err
		}
	}
	for _, r := range listed { // a name alone says that a rule is ours if its mark was cut and it is not recorded
		if target := e.target(desired, r); kept.ID == "" && r.Name == target.Name && sameSeries(r, target) {
			kept = r
		}
	}
	if kept.ID == "" {
		return e.createRule(ctx, desired)
	}
	there := e.observedRule(desired, kept)
	there.ThresholdPercent = percent(int(kept.Threshold))
	e.observe(there) // until it is repaired
	if err := e.repairRule(ctx, desired, kept); err != nil {
		return err
	}
	e.observe(e.observedRule(desired, kept))
	return nil
}

func (e *ensureRun) createRule(ctx context.Context, desired v1alpha1.DesiredRule) (err error) {
	target := e.target(desired, otc.Rule{})
	e.observe(v1alpha1.Rule{Metric: desired.Metric})
	if target.ID, err = e.options.Cloud.CreateRule(ctx, target); err != nil {
		err = fmt.Errorf("the %s rule cannot be created: %w", desired.Metric, err)
		answer, _ := errors.AsType[*otc.Error](err)
		if isRefused(err) && answer.Code != "" && !errors.Is(err, otc.ErrQuota) { // a proxy's page has no code
			err = fmt.Errorf("%w: %w", v1alpha1.ErrRuleRefused, err)
		}
		return err
	}
	if e.recorded(desired.Metric).AlarmID != "" {
		e.repaired = append(e.repaired, desired.Metric)
	}
	e.observe(e.observedRule(desired, target))
	if err := e.record(*e.observed.DeepCopy()); err != nil { // before its first alarm arrives
		return fmt.Errorf("%w: %w", errRecord, err)
	}
	return nil
}

// repairRule writes a rule that is not as desired. If Cloud Eye accepts that without effect and the difference is not
// harmless, it returns an error and writes again after retryRewrite.
func (e *ensureRun) repairRule(ctx context.Context, desired v1alpha1.DesiredRule, kept otc.Rule) error {
	target := e.target(desired, kept)
	found := differences(kept, target)
	remaining := found
	ineffectiveAt := e.ineffectiveSince(kept.ID, strings.Join(found, ", "))
	retry := !harmless(found) && e.options.Now().Sub(ineffectiveAt) >= retryRewrite
	if len(found) > 0 && (ineffectiveAt.IsZero() || retry) {
		if err := e.writeRule(ctx, target, found); err != nil {
			return fmt.Errorf("the %s rule cannot be repaired: %w", desired.Metric, err)
		}
		after, err := e.options.Cloud.Rule(ctx, kept.ID)
		if err != nil { // the next list shows whether it took effect
			after = target
		}
		remaining = differences(after, target)
		e.noteRepair(kept.ID, strings.Join(remaining, ", "))
		if len(remaining) == 0 {
			e.repaired = append(e.repaired, desired.Metric)
		}
	}
	if !harmless(remaining) {
		return fmt.Errorf("the %s rule was written, and Cloud Eye still shows different values: %s", desired.Metric,
			strings.Join(remaining, ", "))
	}
	return nil
}

// writeRule writes the fields of a rule. Cloud Eye has a separate call that enables a rule.
func (e *ensureRun) writeRule(ctx context.Context, target otc.Rule, differences []string) error {
	isSwitched := slices.Contains(differences, diffEnabled)
	if !isSwitched || len(differences) > 1 {
		if err := e.options.Cloud.ModifyRule(ctx, target.ID, target); err != nil || !isSwitched {
			return err
		}
	}
	return e.options.Cloud.EnableRule(ctx, target.ID, target.Enabled)
}
