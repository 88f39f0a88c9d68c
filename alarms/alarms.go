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
	Topic(ctx context.Context, urn string) (otc.Topic, error)
	CreateTopic(ctx context.Context, name, displayName string) (urn string, err error)
	UpdateTopic(ctx context.Context, urn, displayName string) error
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
	RuleQuota(ctx context.Context) (used, quota int, err error)
	ListedSeries(ctx context.Context, metric string) (map[otc.Series]bool, error)
}

// Want is what one database shall have.
type Want struct {
	Name       string // see Name
	Namespace  string // of the object that Name is made of; with the next two, see Mark
	ObjectName string
	ClusterID  string
	Endpoint   string // our URL; its scheme is the subscription's protocol
	Rules      []WantRule
	Renewed    bool // the policy has changed: period, count and repeat that differ are not told as mended
}

func (w Want) rule(metric string) (WantRule, bool) {
	for _, r := range w.Rules {
		if r.Metric == metric {
			return r, true
		}
	}
	return WantRule{}, false
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

// Alarms ensures and removes. It is safe for concurrent use, for one database at a time.
type Alarms struct {
	cloud Cloud
	now   func() time.Time

	mu         sync.Mutex
	asked      []time.Time           // confirmations asked for in the last window
	subscribed map[string]subscribed // by subscription URN
	vain       map[string]vain       // by rule id or topic URN
	looked     map[string]lookedUp   // by instance id
	series     seriesList
	turn       chan struct{} // held while looked and series are read or changed
}

// New makes Alarms of a cloud and a clock.
func New(cloud Cloud, now func() time.Time) *Alarms {
	return &Alarms{
		cloud: cloud, now: now, subscribed: map[string]subscribed{}, vain: map[string]vain{}, looked: map[string]lookedUp{},
		turn: make(chan struct{}, 1),
	}
}

// owns says whether a topic URN is that of this name in our project: a record may come from a restored backup, or from
// the time before the credentials changed.
func (a *Alarms) owns(topicURN, name string) bool {
	return strings.HasPrefix(topicURN, "urn:smn:") && strings.HasSuffix(topicURN, ":"+a.cloud.ProjectID()+":"+name)
}
