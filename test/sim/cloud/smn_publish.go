// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// publish sends a notification to the confirmed subscriptions of a topic; all get the same message id.
func (c *Cloud) publish(urn, subject, text string, now time.Time) string {
	return c.publishTexts(urn, subject, map[string]string{defaultProtocol: text}, now)
}

// publishTexts is publish with a text for each protocol.
func (c *Cloud) publishTexts(urn, subject string, texts map[string]string, now time.Time) string {
	id := hexID(32)
	for _, s := range c.subscriptions {
		if s.TopicURN == urn && s.Status == Confirmed {
			c.send(s, Envelope{
				Type: TypeNotification, MessageID: id, Subject: subject, UnsubscribeURL: c.unsubscribeURL(s),
				Message: cmp.Or(texts[s.Protocol], texts[defaultProtocol]),
			}, now)
		}
	}
	return id
}

// Publish sends a message to the confirmed subscriptions of a topic and returns the message id.
func (c *Cloud) Publish(topicURN, subject, text string) (messageID string, err error) {
	now := c.lock()
	defer c.mu.Unlock()
	if c.topic(topicURN) == nil {
		return "", fmt.Errorf("publish to %s: %w", topicURN, errors.New("no such topic"))
	}
	return c.publish(topicURN, subject, text, now), nil
}

func (c *Cloud) publishCall(q *call, t *topic) reply {
	var in struct {
		Subject   string  `json:"subject"`
		Message   string  `json:"message"`
		Structure *string `json:"message_structure"`
	}
	err := q.decode(&in)
	if err == nil && in.Structure != nil {
		return c.publishStructure(t, in.Subject, *in.Structure, q.now)
	}
	tooLong := len(in.Message) > 256<<10 || len([]rune(in.Subject)) > 512
	if err != nil || in.Message == "" || tooLong {
		return smnError(http.StatusBadRequest, "0010", "The message is empty or too long, or the subject is too long")
	}
	return published(c.publish(t.URN, in.Subject, in.Message, q.now))
}

func published(id string) reply {
	return jsonReply(http.StatusOK, fields{"request_id": hexID(32), "message_id": id})
}

// defaultProtocol names the text for the protocols that have none of their own.
const defaultProtocol = "default"

// publishStructure: SMN api, publishing_messages_using_a_message_structure.rst and error_codes.rst.
func (c *Cloud) publishStructure(t *topic, subject, structure string, now time.Time) reply {
	texts := map[string]string{}
	err := json.Unmarshal([]byte(structure), &texts)
	if err != nil || texts[defaultProtocol] == "" || len(structure) > 256<<10 {
		return smnError(http.StatusBadRequest, "0021", "MessageStructure is invalid.")
	}
	return published(c.publishTexts(t.URN, subject, texts, now))
}
