// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

// EnsureTopic creates the topic of the installation and the subscription of the public URL, as far as they are missing,
// and returns what exists. was is what the last call returned. It calls record before anything can be published to a new
// topic. Once the subscription of a new URL is confirmed, it removes those of older ones.
//
// With an error, the result has the state as far as it is known. If SMN refuses the topic or the subscription, the
// result's state is SubscriptionRefused and its message has SMN's text.
func (a *Alarms) EnsureTopic(ctx context.Context, was v1alpha1.Topic,
	record func(v1alpha1.Topic) error) (v1alpha1.Topic, error) {
	now := was
	if !a.ownsTopic(now.URN) {
		now.URN = ""
	}
	if now.URN == "" || now.URL != a.options.Endpoint { // the recorded subscription is not the one of our URL
		now = v1alpha1.Topic{URN: now.URN, URL: a.options.Endpoint}
	}
	if err := a.ensureTopic(ctx, &now, record); err != nil {
		now.Message = err.Error()
		if isRefused(err) && now.State != v1alpha1.SubscriptionConfirmed {
			now.State = v1alpha1.SubscriptionRefused
		}
		return now, err
	}
	now.Message = ""
	return now, nil
}

func (a *Alarms) ensureTopic(ctx context.Context, t *v1alpha1.Topic, record func(v1alpha1.Topic) error) error {
	create := func() (err error) {
		*t = v1alpha1.Topic{URL: a.options.Endpoint}
		name := TopicName(a.options.ClusterID, a.options.Namespace)
		mark := markPrefix + a.options.Namespace + markCluster + a.options.ClusterID
		if t.URN, err = a.options.Cloud.CreateTopic(ctx, name, mark); err != nil {
			return fmt.Errorf("the topic cannot be created: %w", err)
		}
		if err := record(*t); err != nil {
			return fmt.Errorf("record the topic: %w", err)
		}
		return nil
	}
	if t.URN == "" {
		if err := create(); err != nil {
			return err
		}
	}
	listed, err := a.options.Cloud.TopicSubscriptions(ctx, t.URN)
	if errors.Is(err, otc.ErrNotFound) { // somebody has deleted the topic
		if err := create(); err != nil {
			return err
		}
		listed, err = a.options.Cloud.TopicSubscriptions(ctx, t.URN)
	}
	if err != nil {
		return fmt.Errorf("the subscriptions of the topic cannot be listed: %w", err)
	}
	return a.ensureSubscription(ctx, t, listed)
}

func (a *Alarms) ensureSubscription(ctx context.Context, t *v1alpha1.Topic, listed []otc.Subscription) error {
	var ours otc.Subscription
	var older []string
	for _, s := range listed {
		// SMN may list the URL in another form than it was given.
		here := otc.SameEndpoint(s.Endpoint, a.options.Endpoint) || s.URN == t.SubscriptionURN
		switch {
		case s.Status == otc.SubscriptionCanceled:
		case here && (ours.URN == "" || s.Status == otc.SubscriptionConfirmed):
			ours = s
		case !here && s.Remark == remark:
			older = append(older, s.URN)
		}
	}
	if ours.Status == otc.SubscriptionConfirmed {
		t.SubscriptionURN, t.State = ours.URN, v1alpha1.SubscriptionConfirmed
		for _, urn := range older {
			if err := a.options.Cloud.Unsubscribe(ctx, urn); err != nil {
				return fmt.Errorf("the subscription of an older URL cannot be removed: %w", err)
			}
		}
		return nil
	}
	t.State = v1alpha1.SubscriptionPending
	if ours.URN != "" && t.RequestedTime != nil && a.options.Now().Sub(t.RequestedTime.Time) < retryConfirmation {
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

// RemoveTopic deletes the topic of the installation with its subscriptions. If its URN is not known, it searches the
// topic by its name. A missing topic is no error.
func (a *Alarms) RemoveTopic(ctx context.Context, was v1alpha1.Topic) error {
	urn := was.URN
	if !a.ownsTopic(urn) {
		listed, err := a.options.Cloud.Topics(ctx)
		if err != nil {
			return fmt.Errorf("list topics: %w", err)
		}
		urn = ""
		for _, t := range listed {
			if t.Name == TopicName(a.options.ClusterID, a.options.Namespace) {
				urn = t.URN
			}
		}
	}
	if urn == "" {
		return nil
	}
	if err := a.options.Cloud.DeleteTopic(ctx, urn); err != nil {
		return fmt.Errorf("delete the topic: %w", err)
	}
	return nil
}

// ownsTopic reports whether a topic URN has the name of our topic and our project. A record may come from a restored
// backup, or from before the credentials changed. Before the first login the project is unknown, and the record counts:
// without it, the receivers would refuse the messages of a cloud that the service cannot reach.
func (a *Alarms) ownsTopic(urn string) bool {
	name, project := TopicName(a.options.ClusterID, a.options.Namespace), a.options.Cloud.ProjectID()
	return strings.HasSuffix(urn, ":"+name) && (project == "" || strings.HasSuffix(urn, ":"+project+":"+name))
}

// isRefused reports whether the cloud has answered, and a retry fails until somebody has changed what its text names.
func isRefused(err error) bool {
	answer, ok := errors.AsType[*otc.Error](err)
	return ok && answer.Status != 0 && !errors.Is(err, otc.ErrUnavailable) && !errors.Is(err, otc.ErrCredentials)
}
