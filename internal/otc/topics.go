// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"strconv"

	"github.com/opentelekomcloud/gophertelekomcloud/openstack/smn/v2/topics"
)

// Topic is what alarms are published to (SMN api: creating_a_topic.rst).
type Topic struct {
	URN         string
	Name        string // unique in the project
	DisplayName string // at most 192 bytes
}

// Topics lists all of the project. There is no filter by name.
func (c *Cloud) Topics(ctx context.Context) ([]Topic, error) {
	return everyPage(
		func(t topics.Topic) string { return t.TopicUrn },
		func(t topics.Topic) Topic { return Topic{URN: t.TopicUrn, Name: t.Name, DisplayName: t.DisplayName} },
		func(offset int, _ string) ([]topics.Topic, int, error) {
			page, err := topics.List(c.client(ctx, opListTopics), topics.ListOpts{Offset: strconv.Itoa(offset), Limit: PageSize})
			return page, -1, c.transport.wrapError(opListTopics, err)
		})
}

// Topic reads one by its URN (SMN api: querying_details_of_a_topic.rst); ErrNotFound if there is none.
func (c *Cloud) Topic(ctx context.Context, urn string) (Topic, error) {
	if err := checkID("topic URN", urn); err != nil {
		return Topic{}, err
	}
	t, err := topics.Get(c.client(ctx, opGetTopic), urn)
	if err != nil {
		return Topic{}, c.transport.wrapError(opGetTopic, err)
	}
	return Topic{URN: t.TopicUrn, Name: t.Name, DisplayName: t.DisplayName}, nil
}

// CreateTopic makes a topic, or finds the one of that name; that one keeps its display name. ErrQuota at 3,000 topics.
func (c *Cloud) CreateTopic(ctx context.Context, name, displayName string) (urn string, err error) {
	reply, err := topics.Create(c.client(ctx, opCreateTopic), topics.CreateOpts{Name: name, DisplayName: displayName})
	if err != nil {
		return "", c.transport.wrapError(opCreateTopic, err)
	}
	return reply.TopicUrn, nil
}

// UpdateTopic changes the display name.
func (c *Cloud) UpdateTopic(ctx context.Context, urn, displayName string) error {
	if err := checkID("topic URN", urn); err != nil {
		return err
	}
	_, err := topics.Update(c.client(ctx, opUpdateTopic), topics.UpdateOpts{Id: urn, DisplayName: displayName})
	return c.transport.wrapError(opUpdateTopic, err)
}

// DeleteTopic removes a topic with its subscriptions; one that is gone already is no error.
func (c *Cloud) DeleteTopic(ctx context.Context, urn string) error {
	return c.delete(ctx, opDeleteTopic, "topic URN", urn, "topics")
}
