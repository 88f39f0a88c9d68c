package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// dimension of the rules, as name:value: the instance's own, which is empty here, or that of its primary node where
// only that one has data. Which it is, is looked at where there was no data for long, and after a failover.
func (r *round) dimension(ctx context.Context, inst autopilot.Instance) (string, error) {
	const long = 30 * time.Minute
	if was := r.rap.Status.Instance; was != nil && was.ID != inst.ID {
		return "", nil // the rules there are another instance's
	}
	silent, onNode := false, ""
	for _, rule := range r.next.Alarms.Rules {
		silent = silent || rule.State == v1alpha1.StateInsufficientData && rule.StateTime != nil && r.now.Sub(rule.StateTime.Time) >= long
		if name, value, _ := strings.Cut(rule.Dimension, ":"); value != inst.ID && value != "" {
			onNode = name + ":" + value
		}
	}
	active := r.next.Instance != nil && r.next.Instance.ActiveSince != nil && r.now.Sub(r.next.Instance.ActiveSince.Time) >= long
	failover := onNode != "" && inst.Primary != "" && !strings.HasSuffix(onNode, ":"+inst.Primary)
	if failover || silent && active {
		dimension, err := r.Arming.Dimension(ctx, inst)
		if err != nil {
			return "", fmt.Errorf("look for the dimension: %w", err)
		}
		return dimension, nil
	}
	return onNode, nil
}
