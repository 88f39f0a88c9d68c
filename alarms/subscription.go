package alarms

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// found is what a list of a topic's subscriptions holds of ours.
type found struct {
	ours     otc.Subscription // of our URL; a confirmed one rather than a pending one
	stale    []string         // of older URLs of ours
	canceled bool             // one of our URL was there
	moved    bool             // the recorded one is of another URL: we have changed it
}

func (e *ensuring) find(listed []otc.Subscription) found {
	var f found
	for _, s := range listed {
		here := s.Protocol == e.protocol && (otc.SameEndpoint(s.Endpoint, e.want.Endpoint) || e.wasSubscribed(s.URN).endpoint == e.want.Endpoint)
		f.moved = f.moved || !here && s.URN == e.have.SubscriptionURN
		switch {
		case s.Status == otc.SubscriptionCanceled:
			f.canceled = f.canceled || here
		case here && (f.ours.URN == "" || s.Status == otc.SubscriptionConfirmed):
			f.ours = s
		case !here && s.Remark == remark:
			f.stale = append(f.stale, s.URN)
		}
	}
	if f.ours.Status != otc.SubscriptionConfirmed {
		f.stale = nil // messages still come by an older one
	}
	return f
}

// see takes what was found for what there is, and says whether the confirmation is to be asked for.
func (e *ensuring) see(f found) (ask bool) {
	now := e.now()
	switch {
	case f.ours.URN == "":
		e.have.SubscriptionURN, e.have.Subscription = "", Missing
		return true
	case f.ours.Status == otc.SubscriptionConfirmed:
		e.have.SubscriptionURN, e.have.Subscription = f.ours.URN, Confirmed
		return false
	}
	if e.have.SubscriptionURN != f.ours.URN || e.have.SubscribedTime.IsZero() {
		e.have.SubscribedTime = now // made by a run that could not record it: its confirmation is on the way
	}
	if at := e.wasSubscribed(f.ours.URN).at; at.After(e.have.SubscribedTime) {
		e.have.SubscribedTime = at
	}
	e.have.SubscriptionURN, e.have.Subscription = f.ours.URN, Pending
	return now.Sub(e.have.SubscribedTime) > askAgainAfter
}

// lost says how somebody has taken the recorded subscription away; empty if nobody has.
func (e *ensuring) lost(f found) string {
	switch {
	case e.have.SubscriptionURN == "" || f.moved:
		return ""
	case f.ours.URN == "" && f.canceled:
		return "the subscription was canceled"
	case f.ours.URN == "":
		return "the subscription was gone"
	case e.have.Subscription == Confirmed && f.ours.Status != otc.SubscriptionConfirmed:
		return "the subscription was no longer confirmed"
	}
	return ""
}

// subscription ensures that our URL is subscribed, and no older URL of ours once messages come by the new one.
func (e *ensuring) subscription(ctx context.Context) error {
	if err := e.listed.smnErr(); err != nil {
		return err
	}
	if e.have.TopicURN == "" || e.arrivalInOrder() { // without a topic: topic has told why
		return nil
	}
	listed, err := e.topicSubscriptions(ctx)
	if err != nil {
		return err
	}
	f := e.find(listed)
	lost := e.lost(f)
	if e.see(f) {
		if err := e.subscribe(ctx, listed, lost); err != nil {
			return err
		}
	}
	if err := e.save(); err != nil {
		return err
	}
	for _, urn := range f.stale {
		if err := e.cloud.Unsubscribe(ctx, urn); err != nil {
			return fmt.Errorf("the subscription of an older URL cannot be removed: %w", err)
		}
		e.forget(urn)
	}
	return e.displayName(ctx)
}

// subscribe asks SMN for the subscription and its confirmation, if SMN's limit allows it now.
func (e *ensuring) subscribe(ctx context.Context, listed []otc.Subscription, lost string) error {
	if e.until = e.mayAsk(true); !e.until.IsZero() {
		e.tellLost(lost, "to be asked for again when SMN's limit on confirmations allows it")
		return nil
	}
	urn, err := e.cloud.Subscribe(ctx, e.have.TopicURN, e.protocol, e.want.Endpoint, remark)
	if err != nil {
		if refused(err) {
			e.giveBack()
		}
		return fmt.Errorf("the public URL cannot be subscribed to the topic: %w", err)
	}
	e.have.SubscriptionURN, e.have.Subscription, e.have.SubscribedTime = urn, Pending, e.now()
	e.noteSubscribed(urn, subscribed{e.want.Endpoint, e.have.SubscribedTime})
	if slices.ContainsFunc(listed, func(s otc.Subscription) bool { return s.URN == urn && s.Status == otc.SubscriptionConfirmed }) {
		e.giveBack() // SMN lists our URL in another form, and has nothing to confirm
		e.have.Subscription = Confirmed
	}
	e.tellLost(lost, "asked for again")
	return nil
}

func (e *ensuring) tellLost(lost, done string) {
	if lost != "" {
		e.tell("%s: %s", lost, done)
	}
}

// refused says whether SMN surely sent no confirmation: it answered, and not with a success.
func refused(err error) bool {
	said, ok := errors.AsType[*otc.Error](err)
	return ok && said.Status != 0
}

// arrivalInOrder says whether the listing shows topic and subscription as they shall be, or as they must stay for now,
// and takes its states.
func (e *ensuring) arrivalInOrder() bool {
	if e.listed == nil {
		return false
	}
	topic, ok := e.listed.topics[e.have.TopicURN]
	if !ok || !e.marked(topic) {
		return false
	}
	f := e.find(e.listed.subscriptions[e.have.TopicURN])
	if len(f.stale) > 0 || f.ours.URN != e.have.SubscriptionURN || e.lost(f) != "" {
		return false
	}
	before := e.have
	if e.see(f) {
		if e.until = e.mayAsk(false); e.until.IsZero() {
			e.have = before
			return false
		}
	}
	return true
}
