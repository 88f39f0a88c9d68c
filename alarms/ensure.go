package alarms

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

const (
	// askAgainAfter is how long a subscription may be pending before its confirmation is asked for again.
	askAgainAfter = 30 * time.Minute
	// remark marks our subscriptions on our topics, so that one of an older URL is known from one a person added.
	remark = "rds-autopilot"

	displayNameLimit = 192 // bytes; SMN api: creating_a_topic.rst
	descriptionLimit = 256 // CES api v1: creating_an_alarm_rule.rst
)

// Ensure makes the cloud have what is wanted, step by step. After each step that later ones, or messages, rely on it
// calls record; what an interrupted run has made and not recorded is found again by its name. An error of record ends
// it. The returned Have is what is there also if there is an error.
func (a *Alarms) Ensure(ctx context.Context, want Want, have Have, record func(Have) error) (Have, error) {
	endpoint, err := url.Parse(want.Endpoint)
	if err != nil || endpoint.Host == "" || (endpoint.Scheme != "http" && endpoint.Scheme != "https") {
		return have, errors.New("the endpoint is not an http(s) URL")
	}
	for _, rule := range want.Rules {
		if _, err := MetricName(rule.Metric); err != nil {
			return have, err
		}
	}
	if have.TopicURN != "" && !a.owns(have.TopicURN, want.Name) {
		have = Have{}
	}
	e := &ensuring{Alarms: a, want: want, protocol: endpoint.Scheme, have: have, recorded: have, record: record}
	err = e.run(ctx)
	return e.have, err
}

// ensuring is one run of Ensure.
type ensuring struct {
	*Alarms
	want     Want
	protocol string
	have     Have
	recorded Have
	record   func(Have) error
}

func (e *ensuring) run(ctx context.Context) error {
	subscriptions, err := e.topic(ctx)
	if err != nil {
		return err
	}
	if err := e.subscription(ctx, subscriptions); err != nil {
		return err
	}
	rules, err := e.cloud.Rules(ctx)
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	if err := e.rules(ctx, rules); err != nil {
		return err
	}
	return e.save()
}

// save records what has changed since the last time.
func (e *ensuring) save() error {
	if e.have.equal(e.recorded) {
		return nil
	}
	if err := e.record(e.have); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	e.recorded = e.have
	return nil
}

// topic ensures the topic and returns its subscriptions. That list also tells whether a recorded topic still exists.
func (e *ensuring) topic(ctx context.Context) ([]otc.Subscription, error) {
	if e.have.TopicURN != "" {
		subscriptions, err := e.cloud.TopicSubscriptions(ctx, e.have.TopicURN)
		if err == nil {
			return subscriptions, nil
		}
		if !errors.Is(err, otc.ErrNotFound) {
			return nil, fmt.Errorf("list subscriptions: %w", err)
		}
		e.have = Have{Rules: e.have.Rules} // somebody deleted it, and its subscriptions with it
	}
	urn, err := e.cloud.CreateTopic(ctx, e.want.Name, cut(e.want.DisplayName, displayNameLimit))
	if err != nil {
		return nil, fmt.Errorf("create topic: %w", err)
	}
	e.have.TopicURN = urn
	if err := e.save(); err != nil { // before anything is sent to it
		return nil, err
	}
	subscriptions, err := e.cloud.TopicSubscriptions(ctx, urn)
	if err != nil {
		return nil, fmt.Errorf("list subscriptions: %w", err)
	}
	return subscriptions, nil
}

// subscription ensures that our URL is subscribed, and no older URL of ours.
func (e *ensuring) subscription(ctx context.Context, listed []otc.Subscription) error {
	var ours otc.Subscription
	var stale []string
	for _, s := range listed {
		here := s.Endpoint == e.want.Endpoint && s.Protocol == e.protocol
		switch {
		case s.Status == otc.SubscriptionCanceled:
		case here && (ours.URN == "" || s.Status == otc.SubscriptionConfirmed):
			ours = s
		case !here && s.Remark == remark:
			stale = append(stale, s.URN)
		}
	}
	now := e.now()
	switch {
	case ours.URN == "":
		e.have.SubscriptionURN, e.have.Subscription = "", Missing
	case ours.Status == otc.SubscriptionConfirmed:
		e.have.SubscriptionURN, e.have.Subscription = ours.URN, Confirmed
	default:
		if e.have.SubscriptionURN != ours.URN || e.have.SubscribedTime.IsZero() {
			e.have.SubscribedTime = now // made by a run that could not record it: its confirmation is on the way
		}
		e.have.SubscriptionURN, e.have.Subscription = ours.URN, Pending
	}
	overdue := e.have.Subscription == Pending && now.Sub(e.have.SubscribedTime) > askAgainAfter
	if (e.have.Subscription == Missing || overdue) && e.mayAsk() {
		urn, err := e.cloud.Subscribe(ctx, e.have.TopicURN, e.protocol, e.want.Endpoint, remark)
		if err != nil {
			return fmt.Errorf("subscribe: %w", err)
		}
		e.have.SubscriptionURN, e.have.Subscription, e.have.SubscribedTime = urn, Pending, now
	}
	if err := e.save(); err != nil {
		return err
	}
	for _, urn := range stale {
		if err := e.cloud.Unsubscribe(ctx, urn); err != nil {
			return fmt.Errorf("unsubscribe: %w", err)
		}
	}
	return nil
}
