package alarms

import (
	"context"
	"fmt"
)

// Remove takes everything of one database out of the cloud: what is recorded, then what bears its exact names. Nothing
// else is touched, and what is gone already is no error. Rules go first: they would notify a topic that is no more.
func (a *Alarms) Remove(ctx context.Context, name string, have Have) error {
	if have.TopicURN != "" && !a.owns(have.TopicURN, name) {
		have = Have{}
	}
	listed, err := a.cloud.Rules(ctx)
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	for _, metric := range metrics() {
		ours, err := a.ours(ctx, listed, name, metric, have)
		if err != nil {
			return err
		}
		if err := a.deleteRules(ctx, ours); err != nil {
			return err
		}
	}
	if have.TopicURN != "" { // its subscriptions go with it
		if err := a.cloud.DeleteTopic(ctx, have.TopicURN); err != nil {
			return fmt.Errorf("delete topic: %w", err)
		}
		a.forget(have.TopicURN, have.SubscriptionURN)
	}
	topics, err := a.cloud.Topics(ctx)
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
