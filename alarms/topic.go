// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// retryConfirmation is how long a subscription may be pending before its confirmation is requested again.
	retryConfirmation = 30 * time.Minute
	// confirmationLimit is how many confirmations are requested in confirmationPeriod, because SMN limits how often it
	// sends an endpoint one (docs/cloud-facts.md).
	confirmationLimit = 10
	// confirmationPeriod is the period of SMN's limit.
	confirmationPeriod = 10 * time.Minute
	// remark marks our subscriptions on our topic, to distinguish one of an older URL from one that a person added.
	remark = "rds-autopilot"
)

// ReconcileTopic compares the ConfigMap, which read returns, with the topics and subscriptions that the cloud lists. It
// makes all of them as wanted: one topic with a confirmed subscription of the public URL, or none. It writes a new
// topic before anything can be published to it. Once the subscription of a new URL is confirmed, it removes those of
// older ones. While the ConfigMap cannot be read, it creates nothing, because no receiver would know the topic.
//
// With an error, the result has the state as far as it is known. If SMN refuses the topic or the subscription, that is
// SubscriptionRefused. If the ConfigMap cannot be read or written, there is no state. The message has the text.
func (a *Alarms) ReconcileTopic(ctx context.Context, wanted bool, read func(context.Context) (v1alpha1.Topic, error),
	write func(context.Context, v1alpha1.Topic) error) (v1alpha1.Topic, error) {
	stored, err := read(ctx)
	isKnown := err == nil
	store := func(t v1alpha1.Topic) (err error) {
		if !isKnown || !equality.Semantic.DeepEqual(t, stored) {
			err = write(context.WithoutCancel(ctx), t)
			stored, isKnown = t, err == nil
		}
		return err
	}
	if !wanted {
		urn, err := a.findTopic(ctx)
		if err == nil && urn != "" {
			err = a.options.Cloud.DeleteTopic(ctx, urn)
		}
		if err != nil {
			return stored, err
		}
		return v1alpha1.Topic{}, store(v1alpha1.Topic{})
	}
	if err != nil {
		return v1alpha1.Topic{Message: err.Error()}, err
	}
	next := stored
	if !a.ownsTopic(next.URN) { // it is of a restored backup or of another project, or a person has changed it
		next.URN = ""
	}
	if next.URN == "" || next.URL != a.options.Endpoint { // the stored subscription is not the one of our URL
		next = v1alpha1.Topic{URN: next.URN, URL: a.options.Endpoint}
	}
	err = a.ensureTopic(ctx, &next, store)
	next.Message = ""
	if err != nil {
		next.Message = err.Error()
	}
	if isRefused(err) && next.State != v1alpha1.SubscriptionConfirmed {
		next.State = v1alpha1.SubscriptionRefused
	}
	if err := store(next); err != nil {
		return v1alpha1.Topic{URN: next.URN, URL: next.URL, Message: err.Error()}, err
	}
	return next, err
}

func (a *Alarms) ensureTopic(ctx context.Context, t *v1alpha1.Topic, store func(v1alpha1.Topic) error) error {
	urn, err := a.findTopic(ctx)
	if err != nil {
		return err
	}
	if urn == "" {
		*t = v1alpha1.Topic{URL: t.URL}
		name := TopicName(a.options.ClusterID, a.options.Namespace)
		mark := markPrefix + a.options.Namespace + markCluster + a.options.ClusterID
		if urn, err = a.options.Cloud.CreateTopic(ctx, name, mark); err != nil {
			return fmt.Errorf("the topic cannot be created: %w", err)
		}
	}
	if t.URN != urn {
		*t = v1alpha1.Topic{URN: urn, URL: t.URL}
	}
	if err := store(*t); err != nil {
		return err
	}
	listed, err := a.options.Cloud.TopicSubscriptions(ctx, urn)
	if err != nil {
		return fmt.Errorf("the subscriptions of the topic cannot be listed: %w", err)
	}
	return a.ensureSubscription(ctx, t, listed)
}

// findTopic returns the URN of our topic, or an empty text if the cloud lists none. Only this list proves that a topic
// exists: for a deleted one, SMN may list no subscriptions in place of an error.
func (a *Alarms) findTopic(ctx context.Context) (urn string, err error) {
	listed, err := a.options.Cloud.Topics(ctx)
	if err != nil {
		return "", fmt.Errorf("the topics cannot be listed: %w", err)
	}
	for _, t := range listed { // another project may share a topic of our name
		if a.ownsTopic(t.URN) {
			return t.URN, nil
		}
	}
	return "", nil
}

func (a *Alarms) ensureSubscription(ctx context.Context, t *v1alpha1.Topic, listed []otc.Subscription) error {
	var ours otc.Subscription
	var older []string
	trim := func(endpoint string) string { return strings.TrimRight(endpoint, "/") }
	for _, s := range listed {
		// SMN may list the URL of the stored subscription without the slash at its end.
		here := otc.SameEndpoint(s.Endpoint, a.options.Endpoint) ||
			s.URN == t.SubscriptionURN && otc.SameEndpoint(trim(s.Endpoint), trim(a.options.Endpoint))
		switch {
		case s.Status == otc.SubscriptionCanceled:
		case here && (ours.URN == "" || s.Status == otc.SubscriptionConfirmed):
			ours = s
		case !here && s.Remark == remark:
			older = append(older, s.URN)
		}
	}
	t.SubscriptionURN, t.State = ours.URN, v1alpha1.SubscriptionPending
	if ours.Status == otc.SubscriptionConfirmed {
		t.State = v1alpha1.SubscriptionConfirmed
		for _, urn := range older {
			if err := a.options.Cloud.Unsubscribe(ctx, urn); err != nil {
				return fmt.Errorf("the subscription of an older URL cannot be removed: %w", err)
			}
		}
		return nil
	}
	// A time that is far ahead is not ours.
	if ours.URN != "" && t.RequestedTime != nil && a.options.Now().Sub(t.RequestedTime.Time).Abs() < retryConfirmation {
		return nil
	}
	return a.subscribe(ctx, t)
}

func (a *Alarms) subscribe(ctx context.Context, t *v1alpha1.Topic) error {
	now := a.options.Now()
	isOld := func(at time.Time) bool { return now.Sub(at) >= confirmationPeriod }
	if a.requested = slices.DeleteFunc(a.requested, isOld); len(a.requested) >= confirmationLimit {
		return fmt.Errorf("the confirmation was requested %d times in 10 minutes. It is requested again later", confirmationLimit)
	}
	protocol, _, _ := strings.Cut(a.options.Endpoint, "://")
	urn, err := a.options.Cloud.Subscribe(ctx, t.URN, protocol, a.options.Endpoint, remark)
	if !isRefused(err) { // SMN sends no confirmation if it refuses the subscription
		a.requested = append(a.requested, now)
	}
	if err != nil {
		return fmt.Errorf("the public URL cannot be subscribed to the topic: %w", err)
	}
	requested := metav1.NewTime(now.Truncate(time.Second))
	t.SubscriptionURN, t.RequestedTime = urn, &requested
	return nil
}

// ownsTopic reports whether a topic URN has the name of our topic and our project. Before the first login the project
// is unknown, and a stored URN counts: without it, the receivers would refuse the messages of a cloud that the service
// cannot reach.
func (a *Alarms) ownsTopic(urn string) bool {
	name, project := TopicName(a.options.ClusterID, a.options.Namespace), a.options.Cloud.ProjectID()
	return strings.HasSuffix(urn, ":"+name) && (project == "" || strings.HasSuffix(urn, ":"+project+":"+name))
}

// isRefused reports whether the cloud has answered, and a retry fails until somebody has changed what its text names.
func isRefused(err error) bool {
	answer, ok := errors.AsType[*otc.Error](err)
	return ok && answer.Status != 0 && !errors.Is(err, otc.ErrUnavailable) && !errors.Is(err, otc.ErrCredentials)
}
