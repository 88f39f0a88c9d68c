// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// subscriptionsFound are our subscriptions in a list of a topic's subscriptions.
type subscriptionsFound struct {
	ours  otc.Subscription // of our URL; a confirmed one is preferred to a pending one
	stale []string         // URNs of those of older URLs
	moved bool             // whether the recorded one is of another URL, because our URL has changed
	urls  []string         // to which SMN delivers, sorted
}

// findSubscriptions finds our subscriptions in a list.
func (e *ensureRun) findSubscriptions(listed []otc.Subscription) subscriptionsFound {
	var f subscriptionsFound
	for _, s := range listed {
		here := s.Protocol == e.protocol && (otc.SameEndpoint(s.Endpoint, e.options.Endpoint) ||
			e.wasSubscribed(s.URN).endpoint == e.options.Endpoint)
		f.moved = f.moved || !here && s.URN == e.observed.SubscriptionURN
		if s.Status != otc.SubscriptionCanceled && (here || s.Remark == remark) {
			f.urls = append(f.urls, s.Endpoint)
		}
		switch {
		case s.Status == otc.SubscriptionCanceled: // it delivers nothing
		case here && (f.ours.URN == "" || s.Status == otc.SubscriptionConfirmed):
			f.ours = s
		case !here && s.Remark == remark:
			f.stale = append(f.stale, s.URN)
		}
	}
	slices.Sort(f.urls)
	f.urls = slices.Compact(f.urls)
	if f.ours.Status != otc.SubscriptionConfirmed {
		f.stale = nil // messages still arrive by an older one
	}
	return f
}

// adoptState adopts the state of our subscription, and reports whether to request its confirmation.
func (e *ensureRun) adoptState(f subscriptionsFound) (request bool) {
	now := e.options.Now()
	e.observed.Endpoints = f.urls // before one of them is removed, so that the receiver still serves it
	switch {
	case f.ours.URN == "":
		e.observed.SubscriptionURN, e.observed.Subscription = "", v1alpha1.SubscriptionMissing
		return true
	case f.ours.Status == otc.SubscriptionConfirmed:
		e.observed.SubscriptionURN, e.observed.Subscription = f.ours.URN, v1alpha1.SubscriptionConfirmed
		return false
	}
	if e.observed.SubscriptionURN != f.ours.URN || e.observed.SubscribedTime.IsZero() {
		e.observed.SubscribedTime = seconds(now) // a run that could not record it has just requested its confirmation
	}
	if at := e.wasSubscribed(f.ours.URN).at; at.After(e.observed.SubscribedTime.Time) {
		e.observed.SubscribedTime = seconds(at)
	}
	e.observed.SubscriptionURN, e.observed.Subscription = f.ours.URN, v1alpha1.SubscriptionPending
	return now.Sub(e.observed.SubscribedTime.Time) > retryConfirmation
}

// isLost reports whether the recorded subscription is gone, canceled or no longer confirmed.
func (e *ensureRun) isLost(f subscriptionsFound) bool {
	return e.observed.SubscriptionURN != "" && !f.moved && (f.ours.URN == "" ||
		e.observed.Subscription == v1alpha1.SubscriptionConfirmed && f.ours.Status != otc.SubscriptionConfirmed)
}

// ensureSubscription ensures that our URL is subscribed. Once the subscription is confirmed, it removes those of
// older URLs.
func (e *ensureRun) ensureSubscription(ctx context.Context) error {
	if err := e.snapshot.smnErr(); err != nil {
		return err
	}
	if e.observed.TopicURN == "" || e.deliveryInOrder() { // ensureTopic has returned why there is no topic
		return nil
	}
	listed, err := e.topicSubscriptions(ctx)
	if err != nil {
		return err
	}
	f := e.findSubscriptions(listed)
	lost := e.isLost(f)
	if e.adoptState(f) {
		if err := e.subscribe(ctx, listed); err != nil {
			return err
		}
		if lost {
			e.noteRepaired("the subscription is requested again")
		}
	}
	if err := e.save(); err != nil {
		return err
	}
	for _, urn := range f.stale {
		if err := e.options.Cloud.Unsubscribe(ctx, urn); err != nil {
			return fmt.Errorf("the subscription of an older URL cannot be removed: %w", err)
		}
		e.forget(urn)
	}
	if len(f.stale) > 0 {
		e.observed.Endpoints = []string{e.options.Endpoint}
	}
	return e.ensureDisplayName(ctx)
}

// subscribe requests the subscription and its confirmation, if SMN's limit on confirmations allows it now. A refused
// Subscribe does not count against the limit, because SMN sends no confirmation for it.
func (e *ensureRun) subscribe(ctx context.Context, listed []otc.Subscription) error {
	e.confirmationAllowed = e.confirmationAllowedAt(true)
	if !e.confirmationAllowed.IsZero() {
		return nil
	}
	urn, err := e.options.Cloud.Subscribe(ctx, e.observed.TopicURN, e.protocol, e.options.Endpoint, remark)
	if err != nil {
		if hasAnswer(err) {
			e.returnConfirmation()
		}
		return fmt.Errorf("the public URL cannot be subscribed to the topic: %w", err)
	}
	e.observed.SubscriptionURN, e.observed.Subscription, e.observed.SubscribedTime = urn, v1alpha1.SubscriptionPending,
		seconds(e.options.Now())
	all := append(slices.Clone(e.observed.Endpoints), e.options.Endpoint)
	e.observed.Endpoints = slices.Compact(slices.Sorted(slices.Values(all)))
	e.noteSubscribed(urn, subscribed{e.options.Endpoint, e.observed.SubscribedTime.Time})
	if slices.ContainsFunc(listed, func(s otc.Subscription) bool { return s.URN == urn && s.Status == otc.SubscriptionConfirmed }) {
		e.returnConfirmation() // SMN lists our URL in another form, and sends no confirmation
		e.observed.Subscription = v1alpha1.SubscriptionConfirmed
	}
	return nil
}

// hasAnswer reports whether SMN answered with an error, so that it has certainly sent no confirmation.
func hasAnswer(err error) bool {
	answer, ok := errors.AsType[*otc.Error](err)
	return ok && answer.Status != 0
}

// deliveryInOrder reports whether the snapshot shows topic and subscription as desired, or as they must stay until
// SMN's limit allows a change. If so, it adopts their states.
func (e *ensureRun) deliveryInOrder() bool {
	if e.snapshot == nil {
		return false
	}
	topic, ok := e.snapshot.topics[e.observed.TopicURN]
	if !ok || !e.marked(topic) {
		return false
	}
	f := e.findSubscriptions(e.snapshot.subscriptions[e.observed.TopicURN])
	if len(f.stale) > 0 || f.ours.URN != e.observed.SubscriptionURN || e.isLost(f) {
		return false
	}
	before := e.observed
	if e.adoptState(f) {
		e.confirmationAllowed = e.confirmationAllowedAt(false)
		if e.confirmationAllowed.IsZero() {
			e.observed = before
			return false
		}
	}
	return true
}

// seconds truncates a time as the API server does when it stores one.
func seconds(t time.Time) *metav1.Time {
	s := metav1.NewTime(t.Truncate(time.Second))
	return &s
}
