package alarms

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
)

// Cloud is what arming needs of the cloud.
type Cloud interface {
	ProjectID() string
	Topics(ctx context.Context) ([]otc.Topic, error)
	CreateTopic(ctx context.Context, name, displayName string) (urn string, err error)
	DeleteTopic(ctx context.Context, urn string) error
	TopicSubscriptions(ctx context.Context, topicURN string) ([]otc.Subscription, error)
	Subscribe(ctx context.Context, topicURN, protocol, endpoint, remark string) (urn string, err error)
	Unsubscribe(ctx context.Context, urn string) error
	Rules(ctx context.Context) ([]otc.Rule, error)
	Rule(ctx context.Context, id string) (otc.Rule, error)
	CreateRule(ctx context.Context, r otc.Rule) (id string, err error)
	ModifyRule(ctx context.Context, id string, r otc.Rule) error
	EnableRule(ctx context.Context, id string, on bool) error
	DeleteRule(ctx context.Context, id string) error
}

// Want is what one database shall have.
type Want struct {
	Name        string // see Name
	DisplayName string // of the topic; cut to 192 bytes
	Description string // of the rules; cut to 256 bytes
	Endpoint    string // our URL; its scheme is the subscription's protocol
	Rules       []WantRule
}

// WantRule is the rule of one metric. The numbers are Cloud Eye's enumerations.
type WantRule struct {
	Metric           string // Storage, CPU or Memory
	ThresholdPercent int
	PeriodSeconds    int // 1 = raw data
	Count            int
	RepeatSeconds    int
	Dimension        string // name; see InstanceDimension
	DimensionValue   string
}

// States of a subscription.
const (
	Pending   = "Pending"   // asked for, not confirmed
	Confirmed = "Confirmed" // messages come
	Missing   = "Missing"   // not asked for yet, or canceled
)

// Have is what one database has, as far as it is recorded.
type Have struct {
	TopicURN        string
	SubscriptionURN string
	Subscription    string    // Pending, Confirmed or Missing
	SubscribedTime  time.Time // when the confirmation was last asked for
	Rules           []HaveRule
}

// HaveRule is a rule in the cloud.
type HaveRule struct {
	Metric           string
	ID               string
	ThresholdPercent int
	Dimension        string    // name:value
	State            string    // ok, alarm or insufficient_data; empty for a rule just made
	StateTime        time.Time // when State last changed, by Cloud Eye
}

func (h Have) equal(o Have) bool {
	rules := slices.EqualFunc(h.Rules, o.Rules, func(a, b HaveRule) bool {
		same := a.StateTime.Equal(b.StateTime)
		a.StateTime, b.StateTime = time.Time{}, time.Time{}
		return same && a == b
	})
	return rules && h.TopicURN == o.TopicURN && h.SubscriptionURN == o.SubscriptionURN &&
		h.Subscription == o.Subscription && h.SubscribedTime.Equal(o.SubscribedTime)
}

func (h Have) rule(metric string) HaveRule {
	for _, r := range h.Rules {
		if r.Metric == metric {
			return r
		}
	}
	return HaveRule{Metric: metric}
}

// with replaces the rule of its metric; one without an id is taken out.
func (h Have) with(rule HaveRule) Have {
	rules := slices.DeleteFunc(slices.Clone(h.Rules), func(r HaveRule) bool { return r.Metric == rule.Metric })
	if rule.ID != "" {
		rules = append(rules, rule)
	}
	order := metrics()
	slices.SortFunc(rules, func(a, b HaveRule) int { return slices.Index(order, a.Metric) - slices.Index(order, b.Metric) })
	h.Rules = rules
	return h
}

// RuleState is what Cloud Eye says of a rule.
type RuleState struct {
	Name             string
	State            string // ok, alarm or insufficient_data
	StateTime        time.Time
	Enabled          bool
	ThresholdPercent int
	Dimension        string // name:value
}

// Alarms ensures, reads and removes. It is safe for concurrent use, for one database at a time.
type Alarms struct {
	cloud Cloud
	now   func() time.Time

	mu    sync.Mutex
	asked []time.Time // confirmations asked for in the last window
}

// New makes Alarms of a cloud and a clock.
func New(cloud Cloud, now func() time.Time) *Alarms { return &Alarms{cloud: cloud, now: now} }

// States reads the states of all rules of the project, by id, in one listing.
func (a *Alarms) States(ctx context.Context) (map[string]RuleState, error) {
	rules, err := a.cloud.Rules(ctx)
	if err != nil {
		return nil, err
	}
	states := make(map[string]RuleState, len(rules))
	for _, r := range rules {
		states[r.ID] = RuleState{
			Name: r.Name, State: r.State, StateTime: r.UpdateTime, Enabled: r.Enabled && r.ActionEnabled,
			ThresholdPercent: int(r.Threshold), Dimension: r.Dimension + ":" + r.DimensionValue,
		}
	}
	return states, nil
}

const (
	confirmationsAtMost = 150 // of the 200 that SMN sends (SMN umn: traffic_control_over_subscription_confirmation.rst)
	confirmationsWindow = 10 * time.Minute
)

// mayAsk takes one of the confirmations that SMN sends in a window.
func (a *Alarms) mayAsk() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.asked = slices.DeleteFunc(a.asked, func(t time.Time) bool { return now.Sub(t) >= confirmationsWindow })
	if len(a.asked) >= confirmationsAtMost {
		return false
	}
	a.asked = append(a.asked, now)
	return true
}

// owns says whether a topic URN is that of this name in our project: a record may come from a restored backup, or from
// the time before the credentials changed.
func (a *Alarms) owns(topicURN, name string) bool {
	return strings.HasPrefix(topicURN, "urn:smn:") && strings.HasSuffix(topicURN, ":"+a.cloud.ProjectID()+":"+name)
}
