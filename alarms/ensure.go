package alarms

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

const (
	// askAgainAfter is how long a subscription may be pending before its confirmation is asked for again.
	askAgainAfter = 30 * time.Minute
	// remark marks our subscriptions on our topics, so that one of an older URL is known from one a person added.
	remark = "rds-autopilot"
)

// Ensure makes the cloud have what is wanted, step by step: the topic, the rules, the subscription. The rules wait for
// nothing: where SMN fails they are made all the same, without a topic to notify if there is none yet, for their state can be
// read. After each step that later ones, or messages, rely on it calls record; what an interrupted run has made and not
// recorded is found again by its name. An error of record ends it. The returned Have is what is there as far as is known,
// also if there is an error.
//
// What a listing shows to be in order is not asked for again: if all is, there is no call to the cloud. What is not, or
// all if there is no listing, is read anew before anything is changed. What a listing could not read is left as it is.
//
// It also returns a sentence for each thing that somebody else had changed and that is mended: for what is not as it was
// recorded, not for what is to be different now. Period, count and repeat are in no record; unless the policy was renewed
// or the threshold is another one, a difference of theirs is told as brought in line. A repair that the cloud acknowledges
// and does not show is told too, and not repeated while the cloud shows the same.
//
// The error is one line with all that failed, and wraps otc.ErrQuota where a quota is exhausted. A ConfirmationLimitError
// means that all else is done.
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

	until time.Time // when the confirmation may be asked for, if SMN's limit forbids it now
}

func (e *ensuring) run(ctx context.Context) error {
	var failed failures
	for _, step := range []func(context.Context) error{
		e.topic, e.rules, e.subscription, func(context.Context) error { return e.save() },
	} {
		err := step(ctx)
		if _, lost := errors.AsType[recordError](err); lost {
			return err
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	if failed != nil {
		return failed
	}
	if !e.until.IsZero() {
		return ConfirmationLimitError{Until: e.until}
	}
	return nil
}

// failures are told in one line.
type failures []error

func (f failures) Error() string {
	texts := make([]string, 0, len(f))
	for _, err := range f {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }

// recordError ends a run: what cannot be recorded must not be built upon.
type recordError struct{ error }

func (e recordError) Unwrap() error { return e.error }

// save records what has changed since the last time.
func (e *ensuring) save() error {
	if e.have.equal(e.recorded) {
		return nil
	}
	if err := e.record(e.have); err != nil {
		return recordError{fmt.Errorf("record: %w", err)}
	}
	e.recorded = e.have
	return nil
}

// topic makes the topic where none is known. The rules are still to come, so it takes no more than a third of the time.
func (e *ensuring) topic(ctx context.Context) error {
	if e.have.TopicURN != "" || e.listed.smnErr() != nil { // which subscription tells
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/3)
		defer cancel()
	}
	return e.createTopic(ctx)
}

// createTopic makes the topic, or finds it by its name.
func (e *ensuring) createTopic(ctx context.Context) error {
	urn, err := e.cloud.CreateTopic(ctx, e.want.Name, e.mark)
	if err != nil {
		return fmt.Errorf("the topic cannot be made: %w", err)
	}
	if e.known.TopicURN != "" {
		e.tell("the topic was gone: made again")
	}
	e.have.TopicURN = urn
	return e.save() // before anything is sent to it
}

// topicSubscriptions lists the topic's subscriptions, which also tells whether a recorded topic still exists.
func (e *ensuring) topicSubscriptions(ctx context.Context) ([]otc.Subscription, error) {
	subscriptions, err := e.cloud.TopicSubscriptions(ctx, e.have.TopicURN)
	if errors.Is(err, otc.ErrNotFound) {
		e.have = Have{Rules: e.have.Rules} // somebody deleted it, and its subscriptions with it
		if err := e.createTopic(ctx); err != nil {
			return nil, err
		}
		subscriptions, err = e.cloud.TopicSubscriptions(ctx, e.have.TopicURN)
	}
	if err != nil {
		return nil, fmt.Errorf("the subscriptions of the topic cannot be listed: %w", err)
	}
	return subscriptions, nil
}

// displayName ensures the mark on the topic, if a listing shows another one: a topic that was found keeps what it had.
func (e *ensuring) displayName(ctx context.Context) error {
	if e.listed == nil {
		return nil
	}
	if shown, ok := e.listed.topics[e.have.TopicURN]; !ok || e.marked(shown) {
		return nil
	}
	topic, err := e.cloud.Topic(ctx, e.have.TopicURN)
	if err != nil {
		return fmt.Errorf("the topic cannot be read: %w", err)
	}
	if e.marked(topic) {
		return nil
	}
	if err := e.cloud.UpdateTopic(ctx, topic.URN, e.mark); err != nil {
		return fmt.Errorf("the topic's display name cannot be changed: %w", err)
	}
	after, err := e.cloud.Topic(ctx, topic.URN)
	if err != nil { // it is looked at again with the next listing
		after.DisplayName = e.mark
	}
	e.noteRepair(topic.URN, unchanged{e.mark, after.DisplayName})
	switch {
	case after.DisplayName != e.mark:
		e.tell("the topic's display name was written again, and SMN still shows %q", after.DisplayName)
	case e.known.TopicURN != "":
		e.tell("the topic's display name was changed: written again")
	}
	return nil
}

// marked says whether a topic has its display name, or one that SMN makes of it.
func (e *ensuring) marked(t otc.Topic) bool {
	if t.DisplayName == e.mark {
		e.noteRepair(t.URN, unchanged{})
		return true
	}
	return !e.inVain(t.URN, unchanged{e.mark, t.DisplayName}).IsZero()
}
