// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// retryConfirmation is how long a subscription may be pending before its confirmation is requested again.
	retryConfirmation = 30 * time.Minute
	// remark marks our subscriptions on our topics, to distinguish one of an older URL from one that a person added.
	remark = "rds-autopilot"
)

// Ensure brings the cloud to the desired state in three steps: topic, rules, subscription. The rules do not wait for
// SMN: if SMN fails, they are created without a topic to notify, because their state can be read all the same. Ensure
// calls record after each step that later steps or messages rely on, and stops at an error of record. The next run
// finds by name what an interrupted run has created and not recorded.
//
// If the lister's snapshot shows that everything is in order, Ensure sends no request to the cloud. Otherwise it reads
// the state again before it changes anything. It leaves alone what the snapshot could not read.
//
// Ensure returns the state as far as it is known, also with an error, and names each object that it restored after a
// change by others. A rule that it writes because of a new policy is not named. A repair that the cloud accepts without
// effect is reported once and not repeated while it leaves the same difference; rules on which alarms depend are
// rewritten after retryRewrite.
//
// The error is one line with all failures. It wraps v1alpha1.ErrQuota, v1alpha1.ErrConfirmationLimit or
// v1alpha1.ErrSubscriptionRefused if that is the reason.
func (a *Alarms) Ensure(ctx context.Context, desired v1alpha1.DesiredAlarms, record func(v1alpha1.Alarms) error,
) (v1alpha1.Alarms, []string, error) {
	observed := desired.Autopilot.Status.Alarms
	e, err := a.newRun(desired, record)
	if err != nil {
		return observed, nil, err
	}
	if e.snapshot, err = a.options.Lister.Snapshot(ctx, desired.NotBefore); err != nil {
		return observed, nil, err
	}
	err = withReason(e.run(ctx))
	return *e.observed.DeepCopy(), e.repaired, err
}

// newRun checks what is desired and returns a run without a snapshot.
func (a *Alarms) newRun(desired v1alpha1.DesiredAlarms, record func(v1alpha1.Alarms) error) (*ensureRun, error) {
	endpoint, err := url.Parse(a.options.Endpoint)
	if err != nil || endpoint.Host == "" || (endpoint.Scheme != "http" && endpoint.Scheme != "https") {
		return nil, errors.New("the endpoint is not an http(s) URL")
	}
	owner := desired.Autopilot
	mark := Mark(owner.Namespace, owner.Name, a.options.ClusterID)
	if _, _, _, ok := ParseMark(mark); !ok {
		return nil, fmt.Errorf("namespace, name and cluster id make no readable mark: %q", mark)
	}
	for _, rule := range desired.Rules {
		if _, err := a.metric(rule.Metric); err != nil {
			return nil, err
		}
	}
	if desired.Dimension == "" {
		name, err := InstanceDimension(desired.Engine)
		if err != nil {
			return nil, err
		}
		desired.Dimension = name + ":" + desired.InstanceID
	}
	name, observed := cloudName(owner), owner.Status.Alarms
	if observed.TopicURN != "" && !a.owns(observed.TopicURN, name) {
		observed = v1alpha1.Alarms{}
	}
	return &ensureRun{
		Alarms: a, desired: desired, name: name, mark: mark, protocol: endpoint.Scheme,
		before: observed, observed: observed, recorded: observed, record: record,
	}, nil
}

// ensureRun is one run of Ensure.
type ensureRun struct {
	*Alarms
	desired  v1alpha1.DesiredAlarms
	name     string // of the topic, with which the names of the rules begin
	mark     string
	protocol string
	snapshot *Snapshot       // nil if there is none
	before   v1alpha1.Alarms // recorded before this run
	observed v1alpha1.Alarms // the state as far as it is known
	recorded v1alpha1.Alarms // recorded last
	record   func(v1alpha1.Alarms) error
	repaired []string

	confirmationAllowed time.Time // when the confirmation may be requested, if SMN's limit forbids it now
}

func (e *ensureRun) run(ctx context.Context) error {
	var failed failures
	for _, step := range []func(context.Context) error{
		refusable(e.ensureTopic), e.ensureRules, refusable(e.ensureSubscription),
		func(context.Context) error { return e.save() },
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
		return fmt.Errorf("%w until %s UTC", v1alpha1.ErrConfirmationLimit,
			e.confirmationAllowed.UTC().Format(time.TimeOnly))
	}
	return nil
}

// refusedError is an error with SMN's own text.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// withReason wraps the error of a run with the reason that the controller distinguishes, if there is one. A refusal of
// SMN is no reason while a part of the cloud does not answer, because the retry must not wait for the sweep then.
func withReason(err error) error {
	_, refused := errors.AsType[refusedError](err)
	unavailable := errors.Is(err, otc.ErrUnavailable)
	if errors.Is(err, otc.ErrQuota) {
		err = fmt.Errorf("%w: %w", v1alpha1.ErrQuota, err)
	}
	if refused && !unavailable {
		err = fmt.Errorf("%w: %w", v1alpha1.ErrSubscriptionRefused, err)
	}
	return err
}

// refusable marks the errors of a step at SMN that are refusals.
func refusable(step func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := step(ctx)
		another := func(kind error) bool { return errors.Is(err, kind) }
		if !hasAnswer(err) || slices.ContainsFunc([]error{otc.ErrUnavailable, otc.ErrCredentials, otc.ErrQuota, otc.ErrNotFound}, another) {
			return err
		}
		return refusedError{err}
	}
}

// failures is an error whose text is one line.
type failures []error

func (f failures) Error() string {
	texts := make([]string, 0, len(f))
	for _, err := range f {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }

// recordError ends a run, because no later step may rely on a step that is not recorded.
type recordError struct{ error }

func (e recordError) Unwrap() error { return e.error }

// save records the state if it has changed since the last record.
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

// noteRepaired adds a sentence to the report of repairs.
func (e *ensureRun) noteRepaired(format string, args ...any) {
	e.repaired = append(e.repaired, fmt.Sprintf(format, args...))
}

// ensureTopic creates the topic if none is known. It uses at most a third of the time, so that the rules have the rest.
func (e *ensureRun) ensureTopic(ctx context.Context) error {
	if e.observed.TopicURN != "" || e.snapshot.smnErr() != nil { // ensureSubscription returns that error
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/3)
		defer cancel()
	}
	return e.createTopic(ctx)
}

// createTopic creates the topic, or finds it by its name.
func (e *ensureRun) createTopic(ctx context.Context) error {
	urn, err := e.options.Cloud.CreateTopic(ctx, e.name, e.mark)
	if err != nil {
		return fmt.Errorf("the topic cannot be created: %w", err)
	}
	if e.before.TopicURN != "" {
		e.noteRepaired("the topic was restored")
	}
	e.observed.TopicURN = urn
	return e.save() // before anything is published to it
}

// topicSubscriptions lists the topic's subscriptions. If the recorded topic no longer exists, it creates the topic
// again.
func (e *ensureRun) topicSubscriptions(ctx context.Context) ([]otc.Subscription, error) {
	subscriptions, err := e.options.Cloud.TopicSubscriptions(ctx, e.observed.TopicURN)
	if errors.Is(err, otc.ErrNotFound) {
		e.observed = v1alpha1.Alarms{Rules: e.observed.Rules} // the subscriptions were deleted with the topic
		if err := e.createTopic(ctx); err != nil {
			return nil, err
		}
		subscriptions, err = e.options.Cloud.TopicSubscriptions(ctx, e.observed.TopicURN)
	}
	if err != nil {
		return nil, fmt.Errorf("the subscriptions of the topic cannot be listed: %w", err)
	}
	return subscriptions, nil
}

// ensureDisplayName writes the mark if the snapshot shows another display name. A topic that createTopic found by its
// name may have another one.
func (e *ensureRun) ensureDisplayName(ctx context.Context) error {
	if e.snapshot == nil {
		return nil
	}
	if shown, ok := e.snapshot.topics[e.observed.TopicURN]; !ok || e.marked(shown) {
		return nil
	}
	topic, err := e.options.Cloud.Topic(ctx, e.observed.TopicURN)
	if err != nil {
		return fmt.Errorf("the topic cannot be read: %w", err)
	}
	if e.marked(topic) {
		return nil
	}
	if err := e.options.Cloud.UpdateTopic(ctx, topic.URN, e.mark); err != nil {
		return fmt.Errorf("the topic's display name cannot be changed: %w", err)
	}
	after, err := e.options.Cloud.Topic(ctx, topic.URN)
	if err != nil { // the next snapshot shows whether it took effect
		after.DisplayName = e.mark
	}
	switch {
	case !e.marked(after):
		e.noteRepair(topic.URN, strconv.Quote(after.DisplayName))
		e.noteRepaired("the topic's display name was written again, and SMN still shows %q", after.DisplayName)
	case e.before.TopicURN != "":
		e.noteRepaired("the topic was restored")
	}
	return nil
}

// marked reports whether a topic has the mark as its display name, or a display name that SMN makes of the mark.
func (e *ensureRun) marked(t otc.Topic) bool {
	if t.DisplayName == e.mark {
		e.noteRepair(t.URN, "")
		return true
	}
	return !e.ineffectiveSince(t.URN, strconv.Quote(t.DisplayName)).IsZero()
}
