// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"errors"
	"fmt"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// Result is a complete list of the cloud, or the reason why it could not be read.
type Result[T any] struct {
	Rows []T
	Err  error
}

// NewResult returns the Result of a list call.
func NewResult[T any](rows []T, err error) Result[T] { return Result[T]{rows, err} }

// Snapshot holds all topics, subscriptions and rules of the project at one time, as far as they could be read. It is
// never modified, so that all databases of a sweep can use it at the same time.
type Snapshot struct {
	topics        map[string]otc.Topic          // by URN
	subscriptions map[string][]otc.Subscription // by topic URN
	rules         map[string]otc.Rule           // by id
	rulesNamed    map[string]int                // number of rules by name

	topicsErr, subscriptionsErr, rulesErr error
}

// NewSnapshot returns a Snapshot of the three lists.
func NewSnapshot(topics Result[otc.Topic], subscriptions Result[otc.Subscription], rules Result[otc.Rule]) *Snapshot {
	s := &Snapshot{
		topics:        make(map[string]otc.Topic, len(topics.Rows)),
		subscriptions: make(map[string][]otc.Subscription, len(topics.Rows)),
		rules:         make(map[string]otc.Rule, len(rules.Rows)), rulesNamed: make(map[string]int, len(rules.Rows)),
		topicsErr: topics.Err, subscriptionsErr: subscriptions.Err, rulesErr: rules.Err,
	}
	for _, t := range topics.Rows {
		s.topics[t.URN] = t
	}
	for _, row := range subscriptions.Rows {
		s.subscriptions[row.TopicURN] = append(s.subscriptions[row.TopicURN], row)
	}
	for _, r := range rules.Rows {
		s.rules[r.ID] = r
		s.rulesNamed[r.Name]++
	}
	return s
}

// Err returns which lists could not be read, and why; nil if all could.
func (s *Snapshot) Err() error { return errors.Join(s.smnErr(), s.cloudEyeErr()) }

// smnErr returns why topics or subscriptions are unknown. A nil Snapshot has no error.
func (s *Snapshot) smnErr() error {
	switch {
	case s == nil:
		return nil
	case s.topicsErr != nil:
		return fmt.Errorf("the topics cannot be listed: %w", s.topicsErr)
	case s.subscriptionsErr != nil:
		return fmt.Errorf("the subscriptions cannot be listed: %w", s.subscriptionsErr)
	}
	return nil
}

// cloudEyeErr returns why the rules are unknown. A nil Snapshot has no error.
func (s *Snapshot) cloudEyeErr() error {
	if s == nil || s.rulesErr == nil {
		return nil
	}
	return fmt.Errorf("the alarm rules cannot be listed: %w", s.rulesErr)
}

// onlyRule returns the rule of that id; false if it is missing or another rule has the name.
func (s *Snapshot) onlyRule(name, id string) (otc.Rule, bool) {
	r, ok := s.rules[id]
	others := s.rulesNamed[name]
	if r.Name == name {
		others--
	}
	return r, ok && others == 0
}
