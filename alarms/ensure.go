// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// askAgainAfter is how long a subscription may be pending before its confirmation is asked for again.
	askAgainAfter = 30 * time.Minute
	// remark marks our subscriptions on our topics, so that one of an older URL is known from one a person added.
	remark = "rds-autopilot"
)

// Ensure makes the cloud have what is desired, step by step: the topic, the rules, the subscription. The rules wait for
// nothing: where SMN fails they are made all the same, without a topic to notify if there is none yet, for their state can
// be read. After each step that later ones, or messages, rely on it calls record; what an interrupted run has made and not
// recorded is found again by its name. An error of record ends it. It returns what is there as far as is known, also if
// there is an error.
//
// What a listing shows to be in order is not asked for again: if all is, there is no call to the cloud. What is not, or all
// if there is no listing, is read anew before anything is changed. What a listing could not read is left as it is.
//
// It also returns a sentence for each thing that somebody else had changed and that is mended: for what is not as it was
// recorded, not for what is to be different now. Period, count and repeat are in no record; unless the policy was renewed or
// the threshold is another one, a difference of theirs is reported as brought in line. A repair that the cloud acknowledges
// and does not show is reported too, and not repeated while the cloud shows the same.
//
// The error is one line with all that failed, and wraps otc.ErrQuota where a quota is exhausted. A ConfirmationLimitError
// means that all else is done.
func (a *Alarms) Ensure(ctx context.Context, desired Desired, observed v1alpha1.Alarms, listed *Listing, record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, []string, error) {
	endpoint, err := url.Parse(desired.Endpoint)
	if err != nil || endpoint.Host == "" || (endpoint.Scheme != "http" && endpoint.Scheme != "https") {
		return observed, nil, errors.New("the endpoint is not an http(s) URL")
	}
	mark := Mark(desired.Namespace, desired.ObjectName, desired.ClusterID)
	if _, _, _, ok := ParseMark(mark); !ok {
		return observed, nil, fmt.Errorf("namespace, name and cluster id make no mark that can be read again: %q", mark)
	}
	for _, rule := range desired.Rules {
		if _, err := a.metric(rule.Metric); err != nil {
			return observed, nil, err
		}
	}
	if observed.TopicURN != "" && !a.owns(observed.TopicURN, desired.Name) {
		observed = v1alpha1.Alarms{}
	}
	e := &ensureRun{
		Alarms: a, desired: desired, mark: mark, protocol: endpoint.Scheme, listed: listed,
		before: observed, observed: observed, recorded: observed, record: record,
	}
	err = e.run(ctx)
	return *e.observed.DeepCopy(), e.mended, err
}

// ensureRun is one run of Ensure.
type ensureRun struct {
	*Alarms
	desired  Desired
	mark     string
	protocol string
	listed   *Listing
	before   v1alpha1.Alarms // what was recorded before this run
	observed v1alpha1.Alarms // what is there, as far as is known by now
	recorded v1alpha1.Alarms // what was recorded last
	record   func(v1alpha1.Alarms) error
	mended   []string

	confirmationAllowed time.Time // when the confirmation may be asked for, if SMN's limit forbids it now
}

func (e *ensureRun) run(ctx context.Context) error {
	var failed failures
	for _, step := range []func(context.Context) error{
		e.ensureTopic, e.ensureRules, e.ensureSubscription, func(context.Context) error { return e.save() },
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
	if !e.confirmationAllowed.IsZero() {
		return ConfirmationLimitError{Until: e.confirmationAllowed}
	}
	return nil
}

// failures are joined in one line.
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
func (e *ensureRun) save() error {
	if equality.Semantic.DeepEqual(e.observed, e.recorded) {
		return nil
	}
	if err := e.record(*e.observed.DeepCopy()); err != nil {
		return recordError{fmt.Errorf("record: %w", err)}
	}
	e.recorded = e.observed
	return nil
}

// ensureTopic makes the topic where none is known. The rules are still to come, so it takes no more than a third of the
// time.
func (e *ensureRun) ensureTopic(ctx context.Context) error {
	if e.observed.TopicURN != "" || e.listed.smnErr() != nil { // ensureSubscription returns that error
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
func (e *ensureRun) createTopic(ctx context.Context) error {
	urn, err := e.cloud.CreateTopic(ctx, e.desired.Name, e.mark)
	if err != nil {
		return fmt.Errorf("the topic cannot be made: %w", err)
	}
	if e.before.TopicURN != "" {
		e.noteMended("the topic was gone: made again")
	}
	e.observed.TopicURN = urn
	return e.save() // before anything is sent to it
}

// topicSubscriptions lists the topic's subscriptions, which also shows whether a recorded topic still exists.
func (e *ensureRun) topicSubscriptions(ctx context.Context) ([]otc.Subscription, error) {
	subscriptions, err := e.cloud.TopicSubscriptions(ctx, e.observed.TopicURN)
	if errors.Is(err, otc.ErrNotFound) {
		e.observed = v1alpha1.Alarms{Rules: e.observed.Rules} // somebody deleted it, and its subscriptions with it
		if err := e.createTopic(ctx); err != nil {
			return nil, err
		}
		subscriptions, err = e.cloud.TopicSubscriptions(ctx, e.observed.TopicURN)
	}
	if err != nil {
		return nil, fmt.Errorf("the subscriptions of the topic cannot be listed: %w", err)
	}
	return subscriptions, nil
}

// ensureDisplayName ensures the mark on the topic, if a listing shows another one: a topic that was found keeps what it had.
func (e *ensureRun) ensureDisplayName(ctx context.Context) error {
	if e.listed == nil {
		return nil
	}
	if shown, ok := e.listed.topics[e.observed.TopicURN]; !ok || e.marked(shown) {
		return nil
	}
	topic, err := e.cloud.Topic(ctx, e.observed.TopicURN)
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
	e.noteRepair(topic.URN, repair{e.mark, after.DisplayName})
	switch {
	case after.DisplayName != e.mark:
		e.noteMended("the topic's display name was written again, and SMN still shows %q", after.DisplayName)
	case e.before.TopicURN != "":
		e.noteMended("the topic's display name was changed: written again")
	}
	return nil
}

// marked reports whether a topic has its display name, or one that SMN makes of it.
func (e *ensureRun) marked(t otc.Topic) bool {
	if t.DisplayName == e.mark {
		e.noteRepair(t.URN, repair{})
		return true
	}
	return !e.ineffectiveSince(t.URN, repair{e.mark, t.DisplayName}).IsZero()
}
