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
)

// Ensure makes the cloud have what is wanted, step by step. After each step that later ones, or messages, rely on it
// calls record; what an interrupted run has made and not recorded is found again by its name. An error of record ends
// it. The returned Have is what is there also if there is an error.
//
// What a listing shows to be in order is not asked for again: if all is, there is no call to the cloud. What is not, or
// all if there is no listing, is read anew before anything is changed.
//
// It also returns a sentence for each thing that somebody else had changed and that is mended: for what is not as it was
// recorded, not for what is to be different now. Period, count and repeat are in no record; unless the policy was renewed
// or the threshold is another one, a difference of theirs is told as brought in line.
//
// ConfirmationLimitError, and otc.ErrQuota of rules, mean that all else is done; both can be in one error.
func (a *Alarms) Ensure(ctx context.Context, want Want, have Have, listed *Listing, record func(Have) error) (Have, []string, error) {
	endpoint, err := url.Parse(want.Endpoint)
	if err != nil || endpoint.Host == "" || (endpoint.Scheme != "http" && endpoint.Scheme != "https") {
		return have, nil, errors.New("the endpoint is not an http(s) URL")
	}
	mark := Mark(want.Namespace, want.ObjectName, want.ClusterID)
	if _, _, _, ok := ParseMark(mark); !ok {
		return have, nil, fmt.Errorf("no one can tell whose it would be: %q", mark)
	}
	for _, rule := range want.Rules {
		if _, err := MetricName(rule.Metric); err != nil {
			return have, nil, err
		}
	}
	if have.TopicURN != "" && !a.owns(have.TopicURN, want.Name) {
		have = Have{}
	}
	e := &ensuring{
		Alarms: a, want: want, mark: mark, protocol: endpoint.Scheme, listed: listed, known: have, have: have, recorded: have, record: record,
	}
	err = e.run(ctx)
	return e.have, e.mended, err
}

// ensuring is one run of Ensure.
type ensuring struct {
	*Alarms
	want     Want
	mark     string
	protocol string
	listed   *Listing
	known    Have // what was recorded before this run
	have     Have
	recorded Have
	record   func(Have) error
	mended   []string

	full  error     // of the quota of rules
	until time.Time // when the confirmation may be asked for, if SMN's limit forbids it now
}

func (e *ensuring) run(ctx context.Context) error {
	if !e.arrivalInOrder() {
		subscriptions, err := e.topic(ctx)
		if err != nil {
			return err
		}
		if err := e.subscription(ctx, subscriptions); err != nil {
			return err
		}
	}
	if !e.rulesInOrder() {
		rules, err := e.cloud.Rules(ctx)
		if err != nil {
			return fmt.Errorf("list rules: %w", err)
		}
		if err := e.rules(ctx, rules); err != nil {
			return err
		}
	}
	if err := e.save(); err != nil {
		return err
	}
	return e.left(ctx)
}

// left is what could not be done, and why.
func (e *ensuring) left(ctx context.Context) error {
	var limit error
	if !e.until.IsZero() {
		limit = ConfirmationLimitError{Until: e.until}
	}
	if e.full == nil {
		return limit
	}
	full := e.full
	if used, quota, err := e.cloud.RuleQuota(ctx); err == nil { // else without the numbers
		full = fmt.Errorf("%d of %d alarm rules used: %w", used, quota, full)
	}
	if limit != nil {
		return fmt.Errorf("%w; %w", full, limit)
	}
	return full
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
			return subscriptions, e.displayName(ctx)
		}
		if !errors.Is(err, otc.ErrNotFound) {
			return nil, fmt.Errorf("list subscriptions: %w", err)
		}
		e.have = Have{Rules: e.have.Rules} // somebody deleted it, and its subscriptions with it
	}
	urn, err := e.cloud.CreateTopic(ctx, e.want.Name, e.mark)
	if err != nil {
		return nil, fmt.Errorf("create topic: %w", err)
	}
	if e.known.TopicURN != "" {
		e.tell("the topic was gone: made again")
	}
	e.have.TopicURN = urn
	if err := e.save(); err != nil { // before anything is sent to it
		return nil, err
	}
	subscriptions, err := e.cloud.TopicSubscriptions(ctx, urn)
	if err != nil {
		return nil, fmt.Errorf("list subscriptions: %w", err)
	}
	return subscriptions, e.displayName(ctx) // one that was found keeps the display name it had
}

// displayName ensures the mark on the topic, if a listing shows another one.
func (e *ensuring) displayName(ctx context.Context) error {
	if e.listed == nil {
		return nil
	}
	if shown, ok := e.listed.topics[e.have.TopicURN]; !ok || shown.DisplayName == e.mark {
		return nil
	}
	topic, err := e.cloud.Topic(ctx, e.have.TopicURN)
	if err != nil {
		return fmt.Errorf("read topic: %w", err)
	}
	if topic.DisplayName == e.mark {
		return nil
	}
	if err := e.cloud.UpdateTopic(ctx, e.have.TopicURN, e.mark); err != nil {
		return fmt.Errorf("update topic: %w", err)
	}
	if e.known.TopicURN != "" {
		e.tell("the topic's display name was changed: written again")
	}
	return nil
}
