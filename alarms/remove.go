// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"fmt"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Remove removes everything of one database from the cloud: the rules and the topic in its status, then those with its
// exact names. It touches nothing else. A missing rule or topic is no error. It removes rules first, because they would
// notify a topic that no longer exists.
func (a *Alarms) Remove(ctx context.Context, owner *v1alpha1.RdsAutopilot) error {
	name, observed := cloudName(owner), owner.Status.Alarms
	if observed.TopicURN != "" && !a.owns(observed.TopicURN, name) {
		observed = v1alpha1.Alarms{}
	}
	listed, err := a.options.Lister.Rules(ctx)
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	for _, metric := range a.options.Metrics {
		ours, err := a.rulesOf(ctx, listed, name, metric.Name, observed)
		if err != nil {
			return err
		}
		if err := a.deleteRules(ctx, ours); err != nil {
			return err
		}
	}
	if observed.TopicURN != "" { // SMN deletes the subscriptions with the topic
		if err := a.options.Cloud.DeleteTopic(ctx, observed.TopicURN); err != nil {
			return fmt.Errorf("delete topic: %w", err)
		}
		a.forget(observed.TopicURN, observed.SubscriptionURN)
	}
	topics, err := a.options.Lister.Topics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	for _, t := range topics {
		if t.Name == name {
			if err := a.options.Cloud.DeleteTopic(ctx, t.URN); err != nil {
				return fmt.Errorf("delete topic: %w", err)
			}
		}
	}
	return nil
}
