// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"
)

// maxRetries is the number of attempts after the first one. SMN umn:
// does_smn_ensure_that_messages_are_received_by_subscription_endpoints.rst.
const maxRetries = 6

// timeToLive is the time for which SMN keeps a message. SMN api: publishing_messages_in_the_text_format.rst.
const timeToLive = time.Hour

// deliveryTimeout is the time for an endpoint to answer, in real time. HWC: smn_faq_0014.
const deliveryTimeout = 5 * time.Second

// DeliveryState is the state of a message.
type DeliveryState string

// States of a Delivery.
const (
	Pending   DeliveryState = "pending"
	Delivered DeliveryState = "delivered" // answered with a status below 300
	Refused   DeliveryState = "refused"   // answered with another status below 500: not sent again
	Dropped   DeliveryState = "dropped"   // not sent any more: retries ended, a fault lost it, or its topic or subscription is gone
)

// Delivery is one message to one endpoint.
type Delivery struct {
	MessageID, Type, TopicURN, SubscriptionURN, Endpoint string
	Body                                                 []byte // nil before the first attempt
	Created                                              time.Time
	State                                                DeliveryState
	Attempts                                             []Attempt
}

// Attempt is one try to deliver a message.
type Attempt struct {
	Status int    // 0 without a reply
	Err    string // why there was none
}

type message struct {
	Delivery
	due              time.Time
	inFlight         bool
	delayed, repeats bool // by a fault
	envelope         Envelope
	key              *rsa.PrivateKey
}

func (m *message) snapshot() Delivery {
	d := m.Delivery
	d.Attempts = slices.Clone(m.Attempts)
	return d
}

// Deliveries returns all messages, sent or queued, oldest first.
func (c *Cloud) Deliveries() []Delivery { return copies(c, &c.messages, (*message).snapshot) }

// send queues a message. It is signed before the first attempt, with the present key.
func (c *Cloud) send(s *subscription, e Envelope, now time.Time) {
	e.TopicURN = s.TopicURN
	e = c.complete(e, now)
	c.enqueue(&message{due: now, envelope: e, key: c.signingKey, Delivery: Delivery{
		MessageID: e.MessageID, Type: e.Type, TopicURN: s.TopicURN, SubscriptionURN: s.URN, Endpoint: s.Endpoint,
		Created: now, State: Pending,
	}})
}

func (c *Cloud) enqueue(m *message) {
	c.queue = append(c.queue, m)
	c.messages = append(c.messages, m)
	c.wakeUp()
}

// dropQueued drops the queued messages that match.
func (c *Cloud) dropQueued(match func(*message) bool) {
	for _, m := range c.queue {
		if match(m) {
			m.State = Dropped
		}
	}
	remove(&c.queue, match)
}

func deliveryTransport() http.RoundTripper {
	return &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see Options.Transport
		MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second,
	}
}

// attempt tries once to deliver a message and records the result. Huawei Cloud's documents have the rule for retries:
// after a status of 500 and more, time-outs and connection errors, and nothing else.
func (c *Cloud) attempt(ctx context.Context, m *message) {
	snapshot, headers := c.prepare(m)
	var fault DeliveryFault
	if c.opts.DeliveryFault != nil {
		fault = c.opts.DeliveryFault(snapshot)
	}
	if c.isPrevented(m, fault) {
		return
	}
	status, err := c.post(ctx, snapshot, headers)
	if err == nil && fault.LoseReply {
		status, err = 0, errors.New("reply lost")
	}
	if ctx.Err() != nil && err != nil { // not the endpoint's fault
		c.mu.Lock()
		defer c.mu.Unlock()
		m.inFlight = false
		return
	}
	made := Attempt{Status: status}
	if err != nil {
		made.Err = err.Error()
	}
	c.record(m, fault, made)
}

// prepare signs a message that has no signature yet.
func (c *Cloud) prepare(m *message) (d Delivery, headers bool) {
	c.mu.Lock()
	body, odd := m.Body, c.settings.Odd
	c.mu.Unlock()
	if body == nil { // no other attempt of this message is in flight
		body = m.envelope.signed(m.key, odd).JSON()
		if odd.NullFields {
			body = nullFields(body)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m.Body = body
	return m.snapshot(), !odd.NoHeaders
}

// isPrevented reports whether a fault prevents the attempt, or the topic is gone. It drops or delays the message then.
func (c *Cloud) isPrevented(m *message, fault DeliveryFault) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.State != Pending: // its topic was deleted meanwhile
		return true
	case fault.Drop:
		c.dropQueued(func(q *message) bool { return q == m })
		return true
	case fault.Delay > 0 && !m.delayed:
		m.delayed, m.inFlight = true, false
		m.due = m.due.Add(c.span(fault.Delay))
		c.wakeUp()
		return true
	}
	return false
}

func (c *Cloud) post(ctx context.Context, d Delivery, headers bool) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Endpoint, bytes.NewReader(d.Body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "text/plain; charset=UTF-8")
	if headers {
		r.Header.Set("X-Smn-Message-Type", d.Type)
		r.Header.Set("X-Smn-Message-Id", d.MessageID)
		r.Header.Set("X-Smn-Topic-Urn", d.TopicURN)
	}
	res, err := c.transport.RoundTrip(r) // follows no redirect
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
	return res.StatusCode, errors.Join(err, res.Body.Close())
}

func (c *Cloud) record(m *message, fault DeliveryFault, a Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.opts.Now()
	m.Attempts = append(m.Attempts, a)
	m.inFlight = false
	retry := !c.settings.NeverSendsAgain && (a.Err != "" || a.Status >= 500)
	switch {
	case m.State != Pending:
	case retry && len(m.Attempts) <= maxRetries && now.Sub(m.Created) < c.span(timeToLive):
		if c.settings.NewIDWhenSentAgain {
			m.Body, m.envelope.MessageID, m.MessageID = nil, "", ""
			m.envelope = c.complete(m.envelope, now)
			m.MessageID = m.envelope.MessageID
		}
		m.due = now.Add(c.span(c.settings.RetryInterval))
	case retry, a.Err != "":
		m.State = Dropped
	case a.Status < 300:
		m.State = Delivered
	default:
		m.State = Refused
	}
	if m.State != Pending {
		remove(&c.queue, func(q *message) bool { return q == m })
	}
	if fault.Duplicate && !m.repeats {
		again := m.snapshot()
		again.Attempts, again.State = nil, Pending
		c.enqueue(&message{Delivery: again, due: now, repeats: true})
	}
	c.wakeUp()
}
