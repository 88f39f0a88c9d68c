// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"errors"
	"fmt"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// List is what was read of one list, with all pages, or why it could not be read.
type List[T any] struct {
	Rows []T
	Err  error
}

// ListOf makes a List of what a list call returns.
func ListOf[T any](rows []T, err error) List[T] { return List[T]{rows, err} }

// Listing is one reading of all topics, subscriptions and rules of the project, as far as they could be read. It is not
// changed after it was made, so that all databases of a sweep can use it at the same time.
type Listing struct {
	topics        map[string]otc.Topic          // by URN
	subscriptions map[string][]otc.Subscription // by topic URN
	rules         map[string]otc.Rule           // by id
	rulesNamed    map[string]int                // how many

	topicsErr, subscriptionsErr, rulesErr error
}

// NewListing makes a Listing of the three lists.
func NewListing(topics List[otc.Topic], subscriptions List[otc.Subscription], rules List[otc.Rule]) *Listing {
	l := &Listing{
		topics:        make(map[string]otc.Topic, len(topics.Rows)),
		subscriptions: make(map[string][]otc.Subscription, len(topics.Rows)),
		rules:         make(map[string]otc.Rule, len(rules.Rows)), rulesNamed: make(map[string]int, len(rules.Rows)),
		topicsErr: topics.Err, subscriptionsErr: subscriptions.Err, rulesErr: rules.Err,
	}
	for _, t := range topics.Rows {
		l.topics[t.URN] = t
	}
	for _, s := range subscriptions.Rows {
		l.subscriptions[s.TopicURN] = append(l.subscriptions[s.TopicURN], s)
	}
	for _, r := range rules.Rows {
		l.rules[r.ID] = r
		l.rulesNamed[r.Name]++
	}
	return l
}

// Err says what could not be read, and why; nil if all was.
func (l *Listing) Err() error { return errors.Join(l.smnErr(), l.cloudEyeErr()) }

// smnErr says why topics or subscriptions are not known.
func (l *Listing) smnErr() error {
	switch {
	case l == nil:
		return nil
	case l.topicsErr != nil:
		return fmt.Errorf("the topics cannot be listed: %w", l.topicsErr)
	case l.subscriptionsErr != nil:
		return fmt.Errorf("the subscriptions cannot be listed: %w", l.subscriptionsErr)
	}
	return nil
}

// cloudEyeErr says why the rules are not known.
func (l *Listing) cloudEyeErr() error {
	if l == nil || l.rulesErr == nil {
		return nil
	}
	return fmt.Errorf("the alarm rules cannot be listed: %w", l.rulesErr)
}

// onlyRule is the rule of that id, if no other one has the name.
func (l *Listing) onlyRule(name, id string) (otc.Rule, bool) {
	r, ok := l.rules[id]
	others := l.rulesNamed[name]
	if r.Name == name {
		others--
	}
	return r, ok && others == 0
}
