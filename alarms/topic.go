// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"golang.org/x/time/rate"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// retryConfirmation is how long a subscription may be pending before its confirmation is requested again.
	retryConfirmation = 30 * time.Minute
	// confirmationRate and confirmationBurst allow 10 requests in 10 minutes. SMN limits how often an endpoint gets a
	// request to confirm (docs/cloud-facts.md).
	confirmationRate  = rate.Limit(1.0 / 60)
	confirmationBurst = 10
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
		now = v1alpha1.Topic{}
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
		*t = v1alpha1.Topic{}
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

// ensureSubscription ensures that the public URL is subscribed.
func (a *Alarms) ensureSubscription(ctx context.Context, t *v1alpha1.Topic, listed []otc.Subscription) error {
	var ours otc.Subscription
	var older []string
	for _, s := range listed {
		// SMN may list the URL in another form than it was given.
		here := otc.SameEndpoint(s.Endpoint, a.options.Endpoint) || s.URN == t.SubscriptionURN && t.URL == a.options.Endpoint
		switch {
		case s.Status == otc.SubscriptionCanceled:
		case here && (ours.URN == "" || s.Status == otc.SubscriptionConfirmed):
			ours = s
		case !here && s.Remark == remark:
			older = append(older, s.URN)
		}
	}
	if ours.Status == otc.SubscriptionConfirmed {
		t.SubscriptionURN, t.URL, t.State = ours.URN, a.options.Endpoint, v1alpha1.SubscriptionConfirmed
		for _, urn := range older {
			if err := a.options.Cloud.Unsubscribe(ctx, urn); err != nil {
				return fmt.Errorf("the subscription of an older URL cannot be removed: %w", err)
			}
		}
		return nil
	}
	isRequested := ours.URN != "" && t.URL == a.options.Endpoint && t.RequestedTime != nil
	t.State, t.URL = v1alpha1.SubscriptionPending, a.options.Endpoint
	if isRequested && a.options.Now().Sub(t.RequestedTime.Time) < retryConfirmation {
		return nil
	}
	return a.subscribe(ctx, t)
}

// subscribe requests the subscription, and with it the confirmation.
func (a *Alarms) subscribe(ctx context.Context, t *v1alpha1.Topic) error {
	endpoint, err := url.Parse(a.options.Endpoint)
	if err != nil {
		return fmt.Errorf("the public URL is not a URL: %w", err)
	}
	if !a.confirmations.AllowN(a.options.Now(), 1) {
		return fmt.Errorf("the confirmation was requested %d times in 10 minutes. It is requested again later", confirmationBurst)
	}
	urn, err := a.options.Cloud.Subscribe(ctx, t.URN, endpoint.Scheme, a.options.Endpoint, remark)
	if err != nil {
		return fmt.Errorf("the public URL cannot be subscribed to the topic: %w", err)
	}
	requested := metav1.NewTime(a.options.Now().Truncate(time.Second))
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
// backup, or from before the credentials changed.
func (a *Alarms) ownsTopic(urn string) bool {
	return strings.HasSuffix(urn, ":"+a.options.Cloud.ProjectID()+":"+TopicName(a.options.ClusterID, a.options.Namespace))
}

// isRefused reports whether SMN has answered, and a retry fails until somebody has changed what its text names.
func isRefused(err error) bool {
	answer, ok := errors.AsType[*otc.Error](err)
	return ok && answer.Status != 0 && !errors.Is(err, otc.ErrUnavailable) && !errors.Is(err, otc.ErrCredentials)
}
