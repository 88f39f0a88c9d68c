package alarms

import "github.com/mcsps/rds-autopilot/internal/otc"

// Listing is one reading of all topics, subscriptions and rules of the project. It is not changed after it was made, so
// that all databases of a sweep can use it at the same time.
type Listing struct {
	topics        map[string]otc.Topic          // by URN
	subscriptions map[string][]otc.Subscription // by topic URN
	rules         map[string]otc.Rule           // by id
	rulesNamed    map[string]int                // how many
}

// NewListing makes a Listing of the three lists, each with all pages.
func NewListing(topics []otc.Topic, subscriptions []otc.Subscription, rules []otc.Rule) *Listing {
	l := &Listing{
		topics:        make(map[string]otc.Topic, len(topics)),
		subscriptions: make(map[string][]otc.Subscription, len(topics)),
		rules:         make(map[string]otc.Rule, len(rules)), rulesNamed: make(map[string]int, len(rules)),
	}
	for _, t := range topics {
		l.topics[t.URN] = t
	}
	for _, s := range subscriptions {
		l.subscriptions[s.TopicURN] = append(l.subscriptions[s.TopicURN], s)
	}
	for _, r := range rules {
		l.rules[r.ID] = r
		l.rulesNamed[r.Name]++
	}
	return l
}

// topic says whether there is that topic, with that display name. There is never another one of its name.
func (l *Listing) topic(urn, displayName string) bool {
	t, ok := l.topics[urn]
	return ok && t.DisplayName == displayName
}

// onlyRule is the rule of that id, if there is one rule of the name.
func (l *Listing) onlyRule(name, id string) (otc.Rule, bool) {
	r, ok := l.rules[id]
	return r, ok && l.rulesNamed[name] == 1
}
