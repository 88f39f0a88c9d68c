// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// topicTime bounds one check of the topic. Arming waits for the first one, and rules must not wait for SMN for long.
	topicTime = 20 * time.Second
	// confirmationPoll is how often the subscription is read in the first confirmationWait after its confirmation was
	// requested. SMN confirms within seconds, and no database is armed before.
	confirmationPoll = 5 * time.Second
	confirmationWait = 2 * time.Minute
)

type topicKeeper struct {
	news   chan struct{} // a check of the topic is due
	loaded bool          // the stored topic was read; of keepTopic alone

	mu      sync.Mutex
	now     v1alpha1.Topic
	checked bool // this leader has checked the topic
}

func (c *Controller) topic() (t v1alpha1.Topic, checked bool) {
	c.keeper.mu.Lock()
	defer c.keeper.mu.Unlock()
	return c.keeper.now, c.keeper.checked
}

func (c *Controller) topicURN() string {
	t, _ := c.topic()
	return t.URN
}

func (c *Controller) checkTopic() {
	select {
	case c.keeper.news <- struct{}{}:
	default:
	}
}

func (c *Controller) setTopic(t v1alpha1.Topic, checked bool) {
	c.keeper.mu.Lock()
	defer c.keeper.mu.Unlock()
	c.keeper.now, c.keeper.checked = t, checked
}

func (c *Controller) keepTopic(ctx context.Context) {
	c.setTopic(v1alpha1.Topic{}, false)
	for c.keeper.loaded = false; ctx.Err() == nil; {
		wait, err := c.ensureTopic(ctx)
		if err != nil && ctx.Err() == nil && !c.reportPanic("check the topic", err) {
			c.options.Log.Warn("check the topic", zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-c.keeper.news:
		case <-time.After(wait):
		}
	}
}

// ensureTopic checks the topic once, and returns when to check it again. The topic exists while a database is on or has
// a rule. The first check reads the stored topic.
func (c *Controller) ensureTopic(ctx context.Context) (wait time.Duration, err error) {
	defer autopilot.CatchPanic(&err)
	ctx, cancel := context.WithTimeout(ctx, topicTime)
	defer cancel()
	wait = c.options.Recheck
	if !c.keeper.loaded {
		stored, err := c.options.Kube.LiveTopic(ctx)
		if err != nil {
			return wait, fmt.Errorf("read the topic: %w", err)
		}
		c.setTopic(stored, false)
		c.keeper.loaded = true
	}
	was, checked := c.topic()
	on := c.anyOn()
	next, err := c.changeTopic(ctx, was, on, checked)
	if err != nil && on && next.Message == "" {
		next.Message = err.Error()
	}
	if writeErr := c.storeTopic(context.WithoutCancel(ctx), next); writeErr != nil {
		err = fmt.Errorf("store the topic: %w", writeErr)
		next.Message = err.Error() // it differs from what the next check returns, which is therefore stored
	}
	isChecked := checked || on || err == nil // a removal that has failed is repeated
	isNews := isChecked != checked || next.URN != was.URN || next.State != was.State || next.Message != was.Message
	c.setTopic(next, isChecked) // also if it is not stored, because arming waits for it
	if isNews {
		c.options.Log.Info("topic", zap.String("urn", next.URN), zap.String("subscription", string(next.State)),
			zap.String("message", next.Message))
		c.options.Kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) { c.enqueueArming(Key{a.Namespace, a.Name}) })
	}
	switch {
	case next.State == v1alpha1.SubscriptionPending && next.RequestedTime != nil &&
		c.options.Now().Sub(next.RequestedTime.Time) < confirmationWait:
		return min(confirmationPoll, wait), err
	case next.URN != "" && (next.State != v1alpha1.SubscriptionConfirmed || !on), next.Message != "", err != nil:
		return wait, err
	}
	return c.options.Sweep, nil
}

// changeTopic creates, repairs or removes the topic, and returns what exists. A panic becomes an error, because arming
// waits for the first check.
func (c *Controller) changeTopic(ctx context.Context, was v1alpha1.Topic, on, checked bool) (
	next v1alpha1.Topic, err error) {
	next = was
	defer autopilot.CatchPanic(&err)
	switch {
	case on || was.URN != "" && c.anyRules(ctx):
		return c.options.Cloud.EnsureTopic(ctx, was, func(t v1alpha1.Topic) error { return c.storeTopic(ctx, t) })
	case was != (v1alpha1.Topic{}) || !checked: // a former leader may have created a topic that it could not record
		if err = c.options.Cloud.RemoveTopic(ctx, was); err == nil {
			next = v1alpha1.Topic{}
		}
	}
	return next, err
}

func (c *Controller) storeTopic(ctx context.Context, t v1alpha1.Topic) error {
	was, checked := c.topic()
	if equality.Semantic.DeepEqual(was, t) {
		return nil
	}
	if err := c.options.Kube.WriteTopic(ctx, t); err != nil {
		return err
	}
	c.setTopic(t, checked)
	return nil
}

func (c *Controller) anyOn() (found bool) {
	c.options.Kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) {
		if found {
			return
		}
		if r, ok := c.newRound(Key{a.Namespace, a.Name}); ok {
			found = r.off() == autopilot.Off{}
		}
	})
	return found
}

// anyRules reports whether the cloud has a rule of an object of ours, which notifies the topic. If the rules cannot be
// listed, the topic stays.
func (c *Controller) anyRules(ctx context.Context) (found bool) {
	err := c.options.Cloud.Marked(ctx, c.options.Now(), func(namespace, _ string) {
		found = found || c.options.Kube.IsWatched(namespace)
	})
	return found || err != nil
}
