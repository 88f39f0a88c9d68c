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
			page, err := topics.List(c.client(ctx, opListTopics), topics.ListOpts{Offset: strconv.Itoa(offset), Limit: PageSize})
			return page, -1, c.transport.wrapError(opListTopics, err)
		})
}

// Topic reads a topic by its URN (SMN api: querying_details_of_a_topic.rst). The error wraps ErrNotFound if there is
// none.
func (c *Cloud) Topic(ctx context.Context, urn string) (Topic, error) {
	t, err := topics.Get(c.client(ctx, opGetTopic, urn), urn)
	if err != nil {
		return Topic{}, c.transport.wrapError(opGetTopic, err)
	}
	return Topic{URN: t.TopicUrn, Name: t.Name, DisplayName: t.DisplayName}, nil
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

// UpdateTopic changes the display name of a topic.
func (c *Cloud) UpdateTopic(ctx context.Context, urn, displayName string) error {
	_, err := topics.Update(c.client(ctx, opUpdateTopic, urn), topics.UpdateOpts{Id: urn, DisplayName: displayName})
	return c.transport.wrapError(opUpdateTopic, err)
}

// DeleteTopic deletes a topic and its subscriptions. A missing topic is no error.
func (c *Cloud) DeleteTopic(ctx context.Context, urn string) error {
	return c.delete(ctx, opDeleteTopic, "topics", urn)
}
