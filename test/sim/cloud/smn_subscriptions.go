// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// States of a subscription. SMN api: querying_subscriptions.rst.
const (
	Unconfirmed = 0
	Confirmed   = 1
	Cancelled   = 3
)

// Subscription is an SMN subscription.
type Subscription struct {
	URN, TopicURN, Protocol, Endpoint, Remark string
	Status                                    int
}

type subscription struct{ Subscription }

// subscribe creates one subscription for each endpoint. It sends the confirmation again if the endpoint is not
// confirmed. E-mail and text messages are not simulated.
func (c *Cloud) subscribe(q *call, t *topic) reply {
	var in struct {
		Endpoint string `json:"endpoint"`
		Protocol string `json:"protocol"`
		Remark   string `json:"remark"`
	}
	if err := q.decode(&in); err != nil || in.Protocol != "http" && in.Protocol != "https" {
		return smnError(http.StatusBadRequest, "0011", "The protocol %q is invalid", in.Protocol)
	}
	if u, err := url.Parse(in.Endpoint); err != nil || u.Scheme != in.Protocol || u.Hostname() == "" {
		return smnError(http.StatusBadRequest, "0012", "The endpoint %q is invalid", in.Endpoint)
	}
	if c.settings.RefusePrivateEndpoints && private(in.Endpoint) {
		return smnError(http.StatusForbidden, "0069", "The endpoint must not be an internal address")
	}
	for _, s := range c.subscriptions {
		if s.TopicURN != t.URN || s.Protocol != in.Protocol || c.listedEndpoint(s.Endpoint) != c.listedEndpoint(in.Endpoint) {
			continue
		}
		if s.Status != Confirmed && !c.settings.ConfirmsOnce {
			s.Status = Unconfirmed
			c.sendConfirmation(s, q.now)
		}
		if c.settings.ExistsAsCode {
			return smnError(http.StatusOK, "0190", "The endpoint already exists")
		}
		return jsonReply(http.StatusOK, fields{"request_id": hexID(32), "subscription_urn": s.URN})
	}
	s := &subscription{Subscription{
		URN: t.URN + ":" + hexID(32), TopicURN: t.URN, Protocol: in.Protocol, Endpoint: in.Endpoint, Remark: in.Remark,
	}}
	c.subscriptions = append(c.subscriptions, s)
	c.sendConfirmation(s, q.now)
	return jsonReply(http.StatusCreated, fields{"request_id": hexID(32), "subscription_urn": s.URN})
}

// listedEndpoint returns an endpoint as the API lists it.
func (c *Cloud) listedEndpoint(endpoint string) string {
	u, err := url.Parse(endpoint)
	if !c.settings.Normalizes || err != nil {
		return endpoint
	}
	u.Host = strings.ToLower(u.Host)
	return strings.TrimSuffix(u.String(), "/")
}

// private reports whether an endpoint has an internal address or name. SMN umn: what_protocols_does_smn_support.rst.
func private(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "localhost" {
		return err == nil
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified())
}

func (c *Cloud) listSubscriptions(q *call, t *topic) reply {
	var of []*subscription
	for _, s := range c.subscriptions { // oldest first
		if s.TopicURN == t.URN {
			of = append(of, s)
		}
	}
	from, to, ok := q.page(len(of))
	if !ok {
		return smnError(http.StatusBadRequest, "0015", "The offset or limit is invalid")
	}
	rows := []fields{}
	for _, s := range of[from:to] {
		status := s.Status
		if status == Confirmed && c.settings.ConfirmedIsTwo {
			status = 2
		}
		rows = append(rows, fields{
			"topic_urn": s.TopicURN, "protocol": s.Protocol, "subscription_urn": s.URN, "owner": c.identity.projectID,
			"endpoint": c.listedEndpoint(s.Endpoint), "remark": s.Remark, "status": status,
		})
	}
	return jsonReply(http.StatusOK, fields{"request_id": hexID(32), "subscription_count": len(of), "subscriptions": rows})
}

func (c *Cloud) deleteSubscription(q *call) reply {
	urn := q.PathValue("subscription")
	if !c.removeSubscription(urn) {
		return smnError(http.StatusNotFound, "0013", "The subscription %s does not exist", urn)
	}
	return requestID()
}

func (c *Cloud) removeSubscription(urn string) bool {
	c.dropQueued(func(m *message) bool { return m.SubscriptionURN == urn })
	return remove(&c.subscriptions, func(s *subscription) bool { return s.URN == urn })
}

func (c *Cloud) subscription(urn string) *subscription {
	return find(c.subscriptions, func(s *subscription) bool { return s.URN == urn })
}

// Subscriptions returns all subscriptions, oldest first.
func (c *Cloud) Subscriptions() []Subscription {
	return copies(c, &c.subscriptions, func(s *subscription) Subscription { return s.Subscription })
}

// RemoveSubscription deletes a subscription as a person at the console does.
func (c *Cloud) RemoveSubscription(urn string) {
	c.lock()
	defer c.mu.Unlock()
	c.removeSubscription(urn)
}

// Confirm confirms a subscription without its link.
func (c *Cloud) Confirm(urn string) {
	c.lock()
	defer c.mu.Unlock()
	if s := c.subscription(urn); s != nil {
		s.Status = Confirmed
	}
}

// Unsubscribe cancels a subscription as its unsubscribe link does. The endpoint gets a message with a link for
// subscribing again. SMN umn: canceling_a_subscription.rst.
func (c *Cloud) Unsubscribe(urn string) {
	now := c.lock()
	defer c.mu.Unlock()
	if s := c.subscription(urn); s != nil && s.Status != Cancelled {
		s.Status = Cancelled
		c.sendLink(s, TypeUnsubscribe, "You are unsubscribed from topic: "+s.TopicURN+". To subscribe to this topic again", now)
	}
}

// sendLink sends a message with a link that confirms the subscription.
func (c *Cloud) sendLink(s *subscription, kind, text string, now time.Time) {
	text += ", please visit the subscribe_url included in this message. The subscribe_url is valid only within 48 hours."
	c.send(s, Envelope{Type: kind, SubscribeURL: c.confirmURL(s, now), Message: text}, now)
}

func (c *Cloud) sendConfirmation(s *subscription, now time.Time) {
	c.sendLink(s, TypeConfirmation, "You are invited to subscribe to topic: "+s.TopicURN+". To confirm this subscription", now)
}

// linkValidity: SMN umn, requesting_subscription_confirmation.rst.
const linkValidity = 48 * time.Hour

// Paths of confirmation links: the documented one, and another one.
const (
	confirmPath      = "/smn/subscription/confirm"
	otherConfirmPath = "/smn/v2/subscriptions/confirm"
)

type confirmLink struct {
	subscription string
	expires      time.Time
}

// confirmURL returns a new link. Older links stay valid.
func (c *Cloud) confirmURL(s *subscription, now time.Time) string {
	token := hexID(150)
	c.confirmLinks[token] = confirmLink{s.URN, now.Add(c.span(linkValidity))}
	host := c.ConfirmHost()
	switch {
	case c.settings.ConfirmOnOtherHost:
		host = "other." + host
	case c.settings.ConfirmOnOtherPath:
		return "https://" + host + otherConfirmPath + "?token=" + token
	}
	return "https://" + host + confirmPath + "?token=" + token + "&topic_urn=" + s.TopicURN + "&" + c.regionQuery()
}

func (c *Cloud) regionQuery() string {
	return "region=" + c.opts.Region + "&region_id=" + c.opts.Region
}

// unsubscribeURL returns a link that the simulation does not serve, because no program may call it.
func (c *Cloud) unsubscribeURL(s *subscription) string {
	return "https://" + c.ConfirmHost() + "/smn/subscription/unsubscribe?" + c.regionQuery() + "&subscription_urn=" + s.URN
}

// consoleOperations returns the links, which need no credentials.
func (c *Cloud) consoleOperations() []operation {
	return []operation{
		{service: "console", name: "Confirm", pattern: "GET " + confirmPath, open: true, run: c.followConfirm},
		{service: "console", name: "Confirm", pattern: "GET " + otherConfirmPath, open: true, run: c.followConfirm},
	}
}

func (c *Cloud) followConfirm(q *call) reply {
	query := q.URL.Query()
	link, ok := c.confirmLinks[query.Get("token")]
	s := c.subscription(link.subscription)
	if c.settings.ConfirmRedirects {
		return reply{status: http.StatusFound, header: http.Header{"Location": {"https://auth.example.com/login"}}}
	}
	topicNamed := s != nil && (s.TopicURN == query.Get("topic_urn") || q.URL.Path == otherConfirmPath)
	if !ok || !topicNamed || !q.now.Before(link.expires) {
		return jsonReply(http.StatusBadRequest, fields{"message": "The link is invalid or has expired."})
	}
	s.Status = Confirmed
	return jsonReply(http.StatusOK, fields{"request_id": hexID(32), "subscription_urn": s.URN, "topic_urn": s.TopicURN})
}
