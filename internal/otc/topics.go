// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"strconv"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/smn/v2/topics"
)

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
