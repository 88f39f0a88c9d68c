// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/smn/v2/subscriptions"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/smn/v2/topics"
)

// States of a subscription (SMN api: querying_subscriptions.rst).
const (
	SubscriptionConfirmed = 1
	SubscriptionCanceled  = 3
)

// Subscription is an endpoint that receives the messages of a topic.
type Subscription struct {
	URN      string
	Protocol string // http or https, unless a person added it
	Endpoint string
	Remark   string // at most 128 bytes
	Status   int
}

// TopicSubscriptions lists the subscriptions of a topic. The error wraps ErrNotFound if there is no such topic.
func (c *Cloud) TopicSubscriptions(ctx context.Context, topicURN string) ([]Subscription, error) {
	return everyPage(
		func(s subscriptions.Subscription) string {
			return s.SubscriptionUrn + " " + s.TopicUrn + " " + s.Endpoint
		},
		func(s subscriptions.Subscription) Subscription {
			return Subscription{
				URN: s.SubscriptionUrn, Protocol: s.Protocol, Endpoint: s.Endpoint, Remark: s.Remark, Status: s.Status,
			}
		},
		func(offset int, _ string) ([]subscriptions.Subscription, int, error) {
			page, err := subscriptions.ListTopic(c.client(ctx, opListTopicSubscriptions, topicURN), subscriptions.ListTopicOpts{
				TopicUrn: topicURN, Offset: strconv.Itoa(offset), Limit: pageSize,
			})
			return page, -1, c.transport.wrapError(opListTopicSubscriptions, err)
		})
}

// Subscribe adds an endpoint to a topic and returns the URN of the subscription. SMN sends the endpoint a request to
// confirm, and sends it again if the subscription exists and is unconfirmed. SMN answers 200 for an existing
// subscription (SMN api: adding_a_subscription.rst), or the code SMN.0190 without a URN, also with 200
// (error_codes.rst); then Subscribe searches the list. The error wraps ErrQuota if topic or project are full.
func (c *Cloud) Subscribe(ctx context.Context, topicURN, protocol, endpoint, remark string) (urn string, err error) {
	reply, err := subscriptions.Create(c.client(ctx, opSubscribe, topicURN),
		subscriptions.CreateOpts{Endpoint: endpoint, Protocol: protocol, Remark: remark}, topicURN)
	if err == nil {
		return reply.SubscriptionUrn, nil
	}
	err = c.transport.wrapError(opSubscribe, err)
	if e, ok := errors.AsType[*Error](err); !ok || !e.hasCode("SMN.0190") {
		return "", err
	}
	existing, listErr := c.TopicSubscriptions(ctx, topicURN)
	if listErr != nil {
		return "", listErr
	}
	for _, s := range existing {
		// SMN may list it without the slash at its end.
		isSame := SameEndpoint(strings.TrimRight(s.Endpoint, "/"), strings.TrimRight(endpoint, "/"))
		if isSame && s.Protocol == protocol && s.Status != SubscriptionCanceled {
			return s.URN, nil
		}
	}
	return "", err
}

// Unsubscribe deletes a subscription. A missing one is no error.
func (c *Cloud) Unsubscribe(ctx context.Context, urn string) error {
	return c.delete(ctx, opUnsubscribe, "subscriptions", urn)
}

// Topic is an SMN topic (SMN api: creating_a_topic.rst).
type Topic struct {
	URN         string
	Name        string // unique in the project
	DisplayName string // at most 192 bytes
}

// Topics lists all topics of the project. The API has no filter by name.
func (c *Cloud) Topics(ctx context.Context) ([]Topic, error) {
	return everyPage(
		func(t topics.Topic) string { return t.TopicUrn },
		func(t topics.Topic) Topic { return Topic{URN: t.TopicUrn, Name: t.Name, DisplayName: t.DisplayName} },
		func(offset int, _ string) ([]topics.Topic, int, error) {
			page, err := topics.List(c.client(ctx, opListTopics), topics.ListOpts{Offset: strconv.Itoa(offset), Limit: pageSize})
			return page, -1, c.transport.wrapError(opListTopics, err)
		})
}

// CreateTopic creates a topic and returns its URN. An existing topic of that name is returned with its display name
// unchanged. The error wraps ErrQuota at 3,000 topics (SMN api: creating_a_topic.rst).
func (c *Cloud) CreateTopic(ctx context.Context, name, displayName string) (urn string, err error) {
	reply, err := topics.Create(c.client(ctx, opCreateTopic), topics.CreateOpts{Name: name, DisplayName: displayName})
	if err != nil {
		return "", c.transport.wrapError(opCreateTopic, err)
	}
	return reply.TopicUrn, nil
}

// DeleteTopic deletes a topic and its subscriptions. A missing topic is no error.
func (c *Cloud) DeleteTopic(ctx context.Context, urn string) error {
	return c.delete(ctx, opDeleteTopic, "topics", urn)
}

// SameEndpoint reports whether two URLs are the same endpoint. It ignores the case of scheme and host, the default
// port of the scheme, and an empty path. A slash at the end of a path makes another path.
func SameEndpoint(a, b string) bool { return a == b || plainURL(a) == plainURL(b) && plainURL(a) != "" }

func plainURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	u.Host = strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}
