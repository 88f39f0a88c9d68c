package alarms

import (
	"context"
	"fmt"
	"time"

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
		here := s.Endpoint == e.want.Endpoint && s.Protocol == e.protocol
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
		e.note(f.ours.URN, time.Time{})
		return false
	}
	if e.have.SubscriptionURN != f.ours.URN || e.have.SubscribedTime.IsZero() {
		e.have.SubscribedTime = now // made by a run that could not record it: its confirmation is on the way
	}
	if at := e.noted(f.ours.URN); at.After(e.have.SubscribedTime) {
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

// subscription ensures that our URL is subscribed, and no older URL of ours.
func (e *ensuring) subscription(ctx context.Context, listed []otc.Subscription) error {
	f := e.find(listed)
	lost := e.lost(f)
	if e.see(f) {
		if e.until = e.mayAsk(true); e.until.IsZero() {
			urn, err := e.cloud.Subscribe(ctx, e.have.TopicURN, e.protocol, e.want.Endpoint, remark)
			if err != nil {
				return fmt.Errorf("subscribe: %w", err)
			}
			e.have.SubscriptionURN, e.have.Subscription, e.have.SubscribedTime = urn, Pending, e.now()
			e.note(urn, e.have.SubscribedTime)
			e.tellOf(lost, "asked for again")
		} else {
			e.tellOf(lost, "to be asked for again when SMN's limit on confirmations allows it")
		}
	}
	if err := e.save(); err != nil {
		return err
	}
	for _, urn := range f.stale {
		if err := e.cloud.Unsubscribe(ctx, urn); err != nil {
			return fmt.Errorf("unsubscribe: %w", err)
		}
	}
	return nil
}

// arrivalInOrder says whether the listing shows topic and subscription as they shall be, or as they must stay for now,
// and takes its states.
func (e *ensuring) arrivalInOrder() bool {
	if e.listed == nil || !e.listed.topic(e.have.TopicURN, e.mark) {
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
