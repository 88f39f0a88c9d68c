// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// topicTime bounds one check of the topic. Arming waits for the first one, and rules must not wait for SMN for long.
	topicTime = 20 * time.Second
	// topicPause is the least time between two checks. Another writer that undoes each write of the ConfigMap must not
	// use up the requests to SMN.
	topicPause = time.Second
	// confirmationPoll is how often the subscription is read in the first confirmationWait after its confirmation was
	// requested. SMN confirms within seconds, and no database is armed before.
	confirmationPoll = 5 * time.Second
	confirmationWait = 2 * time.Minute
)

type topicKeeper struct {
	news chan struct{} // a check of the topic is due
	// last is the result of this leader's last check, for arming. It is nil before the first check. No check uses it as a
	// source.
	last atomic.Pointer[v1alpha1.Topic]
}

func (c *Controller) topic() (t v1alpha1.Topic, checked bool) {
	if last := c.keeper.last.Load(); last != nil {
		return *last, true
	}
	return v1alpha1.Topic{}, false
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

// TopicChanged handles a watch event of the ConfigMap of the topic. On the leader, a change by somebody else starts a
// check.
func (c *Controller) TopicChanged(stored v1alpha1.Topic) {
	if last, _ := c.topic(); c.leading() != nil && !equality.Semantic.DeepEqual(last, stored) {
		c.checkTopic()
	}
}

func (c *Controller) keepTopic(ctx context.Context) {
	for c.keeper.last.Store(nil); ctx.Err() == nil; {
		wait, err := c.ensureTopic(ctx)
		if err != nil && ctx.Err() == nil && !c.reportPanic("check the topic", err) {
			c.options.Log.Warn("check the topic", zap.Error(err))
		}
		due := time.After(wait)
		select {
		case <-ctx.Done():
		case <-time.After(min(topicPause, wait)):
		}
		select {
		case <-ctx.Done():
		case <-c.keeper.news:
		case <-due:
		}
	}
}

// ensureTopic checks the topic once, and returns when to check it again.
func (c *Controller) ensureTopic(ctx context.Context) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, topicTime)
	defer cancel()
	was, checked := c.topic()
	on, next, err := c.reconcileTopic(ctx)
	_, isRefused := errors.AsType[*autopilot.RefusedError](err)
	if checked && errors.Is(err, autopilot.ErrKubernetes) && !isRefused {
		next = was // an API server that does not answer says nothing about the topic
	} else if err != nil && next.Message == "" {
		next.Message = err.Error()
	}
	c.keeper.last.Store(&next)
	if !checked || next.URN != was.URN || next.State != was.State || next.Message != was.Message {
		c.options.Log.Info("topic", zap.String("urn", next.URN), zap.String("subscription", string(next.State)),
			zap.String("message", next.Message))
		c.options.Kube.EachAutopilot(func(a *v1alpha1.RdsAutopilot) { c.enqueueArming(Key{a.Namespace, a.Name}) })
	}
	switch wait = c.options.Recheck; {
	case next.State == v1alpha1.SubscriptionPending && next.RequestedTime != nil &&
		c.options.Now().Sub(next.RequestedTime.Time) < confirmationWait:
		return min(confirmationPoll, wait), err
	case err != nil, next.Message != "", next.URN != "" && (next.State != v1alpha1.SubscriptionConfirmed || !on):
		return wait, err
	}
	return c.options.Sweep, nil
}

// reconcileTopic creates, repairs or removes the topic, and returns what exists. The topic exists while a database is
// on or has a rule. A panic becomes an error, because arming waits for the first check.
func (c *Controller) reconcileTopic(ctx context.Context) (on bool, next v1alpha1.Topic, err error) {
	defer autopilot.CatchPanic(&err)
	kube := c.options.Kube
	if on = c.anyOn(); !on && c.anyRules(ctx) {
		next, err = kube.LiveTopic(ctx)
		return on, next, err
	}
	next, err = c.options.Cloud.ReconcileTopic(ctx, on, kube.LiveTopic, kube.WriteTopic)
	return on, next, err
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
