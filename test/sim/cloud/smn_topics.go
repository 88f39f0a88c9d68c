// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// Topic is an SMN topic.
type Topic struct {
	URN, Name, DisplayName string
	Created                time.Time
}

type topic struct {
	Topic
	id string
}

var (
	topicName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,254}$`)
	topicURN  = regexp.MustCompile(`^urn:smn:[^:]+:[0-9a-f]{32}:[A-Za-z0-9][A-Za-z0-9_-]{0,254}$`)
)

func (c *Cloud) smnOperations() []operation {
	const base = "/smn/v2/{project}/notifications"
	op := func(name, method, path string, run func(*call) reply) operation {
		return operation{service: "smn", name: name, pattern: method + " " + base + path, run: run}
	}
	return []operation{
		op("CreateTopic", "POST", "/topics", c.createTopic),
		op("ListTopics", "GET", "/topics", c.listTopics),
		op("DeleteTopic", "DELETE", "/topics/{topic}", c.onTopic(c.deleteTopic)),
		op("Subscribe", "POST", "/topics/{topic}/subscriptions", c.onTopic(c.subscribe)),
		op("ListTopicSubscriptions", "GET", "/topics/{topic}/subscriptions", c.onTopic(c.listSubscriptions)),
		op("DeleteSubscription", "DELETE", "/subscriptions/{subscription}", c.deleteSubscription),
	}
}

// smnError: SMN api, exception_response.rst and error_codes.rst.
func smnError(status int, code, format string, args ...any) reply {
	return jsonReply(status, fields{"request_id": hexID(32), "code": "SMN." + code, "message": fmt.Sprintf(format, args...)})
}

func (c *Cloud) onTopic(run func(*call, *topic) reply) func(*call) reply {
	return func(q *call) reply {
		urn := q.PathValue("topic")
		if !topicURN.MatchString(urn) {
			return smnError(http.StatusBadRequest, "0005", "The topic URN %q is invalid", urn)
		}
		t := c.topic(urn)
		if t == nil {
			return smnError(http.StatusNotFound, "0006", "The topic %s does not exist", urn)
		}
		return run(q, t)
	}
}

func (c *Cloud) topic(urn string) *topic {
	return find(c.topics, func(t *topic) bool { return t.URN == urn })
}

func (c *Cloud) createTopic(q *call) reply {
	var in struct {
		Name        string `json:"name"`
		DisplayName string `json:"display_name"`
	}
	switch err := q.decode(&in); {
	case err != nil || !topicName.MatchString(in.Name):
		return smnError(http.StatusBadRequest, "0002", "The topic name %q is invalid", in.Name)
	case len(in.DisplayName) > 192:
		return smnError(http.StatusBadRequest, "0003", "The display name is longer than 192 bytes")
	}
	urn := fmt.Sprintf("urn:smn:%s:%s:%s", c.opts.Region, c.identity.projectID, in.Name)
	status := http.StatusOK
	if c.settings.TopicExistsRefused && c.topic(urn) != nil {
		return smnError(http.StatusBadRequest, "0009", "The topic %s exists", in.Name)
	}
	if c.topic(urn) == nil {
		if len(c.topics) >= c.settings.TopicQuota {
			return smnError(http.StatusForbidden, "0004", "The number of topics has reached the quota")
		}
		status = http.StatusCreated
		c.topics = append(c.topics, &topic{id: hexID(32), Topic: Topic{
			URN: urn, Name: in.Name, DisplayName: in.DisplayName, Created: q.now,
		}})
	}
	return jsonReply(status, fields{"request_id": hexID(32), "topic_urn": urn})
}

func (t *topic) fields() fields {
	return fields{
		"topic_urn": t.URN, "name": t.Name, "display_name": t.DisplayName, "push_policy": 0, "topic_id": t.id, "enterprise_project_id": "0",
		"create_time": t.Created.UTC().Format(time.RFC3339), "update_time": t.Created.UTC().Format(time.RFC3339),
	}
}

// page returns the part of n rows that offset and limit select.
func (q *call) page(n int) (from, to int, ok bool) {
	offset, ok1 := q.number("offset", 0, 0, 1<<31-1)
	limit, ok2 := q.number("limit", 100, 1, 100)
	from = min(offset, n)
	return from, min(from+limit, n), ok1 && ok2
}

func (c *Cloud) listTopics(q *call) reply {
	from, to, ok := q.page(len(c.topics))
	if !ok {
		return smnError(http.StatusBadRequest, "0015", "The offset or limit is invalid")
	}
	rows := []fields{}
	for i := from; i < to; i++ {
		rows = append(rows, c.topics[len(c.topics)-1-i].fields()) // newest first
	}
	return jsonReply(http.StatusOK, fields{"request_id": hexID(32), "topic_count": len(c.topics), "topics": rows})
}

func requestID() reply { return jsonReply(http.StatusOK, fields{"request_id": hexID(32)}) }

func (c *Cloud) deleteTopic(_ *call, t *topic) reply {
	c.removeTopic(t.URN)
	return requestID()
}

// removeTopic removes a topic with its subscriptions and queued messages. SMN umn: deleting_a_topic.rst.
func (c *Cloud) removeTopic(urn string) {
	remove(&c.subscriptions, func(s *subscription) bool { return s.TopicURN == urn })
	c.dropQueued(func(m *message) bool { return m.TopicURN == urn })
	remove(&c.topics, func(t *topic) bool { return t.URN == urn })
}

// Topics returns all topics, oldest first.
func (c *Cloud) Topics() []Topic {
	return copies(c, &c.topics, func(t *topic) Topic { return t.Topic })
}

// RemoveTopic deletes a topic as a person at the console does.
func (c *Cloud) RemoveTopic(urn string) {
	c.lock()
	defer c.mu.Unlock()
	c.removeTopic(urn)
}

// publish sends a notification with one message id to all confirmed subscriptions of a topic.
func (c *Cloud) publish(urn, subject, text string, now time.Time) {
	id := hexID(32)
	for _, s := range c.subscriptions {
		if s.TopicURN == urn && s.Status == Confirmed {
			c.send(s, Envelope{
				Type: TypeNotification, MessageID: id, Subject: subject, UnsubscribeURL: c.unsubscribeURL(s), Message: text,
			}, now)
		}
	}
}
