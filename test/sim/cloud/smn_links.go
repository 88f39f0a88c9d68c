// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"net/http"
	"net/url"
	"time"
)

// linkValidity: SMN umn, requesting_subscription_confirmation.rst.
const linkValidity = 48 * time.Hour

// Paths of confirmation links: as documented, and another one.
const (
	confirmPath      = "/smn/subscription/confirm"
	otherConfirmPath = "/smn/v2/subscriptions/confirm"
)

type confirmLink struct {
	subscription string
	expires      time.Time
}

// confirmURL is a new link; the links sent before stay valid.
func (c *Cloud) confirmURL(s *subscription, now time.Time) string {
	token := hexID(150)
	c.confirmLinks[token] = confirmLink{s.URN, now.Add(c.span(linkValidity))}
	switch {
	case c.settings.ConfirmOnOtherHost:
		return "https://other." + c.ConfirmHost() + confirmPath + "?token=" + token + "&topic_urn=" + s.TopicURN
	case c.settings.ConfirmOnOtherPath:
		return "https://" + c.ConfirmHost() + otherConfirmPath + "?token=" + token
	}
	return "https://" + c.ConfirmHost() + confirmPath + "?token=" + token + "&topic_urn=" + s.TopicURN +
		"&region=" + c.opts.Region + "&region_id=" + c.opts.Region
}

func (c *Cloud) unsubscribeURL(s *subscription) string {
	return "https://" + c.ConfirmHost() + "/smn/subscription/unsubscribe?region=" + c.opts.Region + "&region_id=" + c.opts.Region +
		"&subscription_urn=" + s.URN
}

// consoleOperations are links that need no credentials.
func (c *Cloud) consoleOperations() []operation {
	return []operation{
		{service: "console", name: "Confirm", pattern: "GET " + confirmPath, open: true, run: c.followConfirm},
		{service: "console", name: "Confirm", pattern: "GET " + otherConfirmPath, open: true, run: c.followConfirm},
		{service: "console", name: "Unsubscribe", pattern: "GET /smn/subscription/unsubscribe", open: true, run: c.followUnsubscribe},
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

func (c *Cloud) followUnsubscribe(q *call) reply {
	urn, err := url.QueryUnescape(q.URL.Query().Get("subscription_urn"))
	if err != nil || !c.unsubscribe(urn, q.now) {
		return jsonReply(http.StatusBadRequest, fields{"message": "The link is invalid."})
	}
	return jsonReply(http.StatusOK, fields{"request_id": hexID(32), "subscription_urn": urn})
}
