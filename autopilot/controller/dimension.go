// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// dataExpectedAfter is how long after ACTIVE, and after the end of a rule's data, another dimension with data is looked for.
const dataExpectedAfter = 30 * time.Minute

// dimension of the rules, as name:value: the instance's own, which is empty here, or that of its primary node where
// only that one has its data. Cloud Eye is asked which it is 30 minutes after ACTIVE, whatever the rules say: a rule without data
// is in ok for hours. It is not asked where an alarm has come and there is one node: there is data. With several nodes, the data may
// be another node's. A failover is a reason to ask, too.
func (r *round) dimension(ctx context.Context, inst autopilot.Instance) (string, error) {
	seen := r.rap.Status.Instance
	if seen != nil && seen.ID != inst.ID {
		return "", nil // the rules there are another instance's
	}
	silent, onNode := false, ""
	for _, rule := range r.rap.Status.Alarms.Rules {
		silent = silent || rule.State == v1alpha1.StateInsufficientData && rule.StateTime != nil && r.now.Sub(rule.StateTime.Time) >= dataExpectedAfter
		if name, value, _ := strings.Cut(rule.Dimension, ":"); value != inst.ID && value != "" {
			onNode = name + ":" + value
		}
	}
	due := inst.Status == autopilot.StatusStorageFull || // it was ACTIVE for long
		seen != nil && seen.ActiveSince != nil && r.now.Sub(seen.ActiveSince.Time) >= dataExpectedAfter
	failover := onNode != "" && inst.Primary != "" && !strings.HasSuffix(onNode, ":"+inst.Primary)
	unproven := onNode == "" && (!r.hadData() || len(inst.NodeIDs) > 1)
	if !failover && (!due || !silent && !unproven) {
		return onNode, nil
	}
	dimension, err := r.Arming.Dimension(ctx, inst)
	if err != nil { // the rules there are, are better than none
		r.log.Warn("look for the dimension that has data", zap.Error(err))
		return onNode, nil
	}
	if _, value, _ := strings.Cut(dimension, ":"); value != inst.ID && onNode == "" {
		r.log.Info("the rules watch the primary node, since the data of the instance is missing or not the primary's", zap.String("dimension", dimension))
	}
	return dimension, nil
}

// hadData reports whether a rule has ever had data, for an alarm came of it.
func (r *round) hadData() bool {
	return slices.ContainsFunc(r.rap.Status.Alarms.Rules, func(rule v1alpha1.Rule) bool {
		return rule.State == v1alpha1.StateAlarm || slices.ContainsFunc(r.rap.Status.Intake.Signals, func(s v1alpha1.Signal) bool {
			return s.AlarmID == rule.AlarmID
		})
	})
}
