// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"fmt"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Remove takes everything of one database out of the cloud: what is recorded, then what bears its exact names. Nothing
// else is touched, and what is gone already is no error. Rules go first: they would notify a topic that is no more.
func (a *Alarms) Remove(ctx context.Context, name string, observed v1alpha1.Alarms) error {
	if observed.TopicURN != "" && !a.owns(observed.TopicURN, name) {
		observed = v1alpha1.Alarms{}
	}
	listed, err := a.lists.Rules(ctx)
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	for _, metric := range a.metrics {
		ours, err := a.rulesOf(ctx, listed, name, metric.Name, observed)
		if err != nil {
			return err
		}
		if err := a.deleteRules(ctx, ours); err != nil {
			return err
		}
	}
	if observed.TopicURN != "" { // its subscriptions go with it
		if err := a.cloud.DeleteTopic(ctx, observed.TopicURN); err != nil {
			return fmt.Errorf("delete topic: %w", err)
		}
		a.forget(observed.TopicURN, observed.SubscriptionURN)
	}
	topics, err := a.lists.Topics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	for _, t := range topics {
		if t.Name == name {
			if err := a.cloud.DeleteTopic(ctx, t.URN); err != nil {
				return fmt.Errorf("delete topic: %w", err)
			}
		}
	}
	return nil
}
