// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Cloud is what is needed of the cloud; *otc.Cloud has it.
type Cloud interface {
	ProjectID() string
	Topic(ctx context.Context, urn string) (otc.Topic, error)
	CreateTopic(ctx context.Context, name, displayName string) (urn string, err error)
	UpdateTopic(ctx context.Context, urn, displayName string) error
	DeleteTopic(ctx context.Context, urn string) error
	TopicSubscriptions(ctx context.Context, topicURN string) ([]otc.Subscription, error)
	Subscribe(ctx context.Context, topicURN, protocol, endpoint, remark string) (urn string, err error)
	Unsubscribe(ctx context.Context, urn string) error
	Rule(ctx context.Context, id string) (otc.Rule, error)
	CreateRule(ctx context.Context, r otc.Rule) (id string, err error)
	ModifyRule(ctx context.Context, id string, r otc.Rule) error
	EnableRule(ctx context.Context, id string, on bool) error
	DeleteRule(ctx context.Context, id string) error
	RuleQuota(ctx context.Context) (used, quota int, err error)
	ListedSeries(ctx context.Context, metric string) (map[otc.Series]bool, error)
}

// Lists lists what there is now. Many databases are armed at a time, and a list may be read once for all of them.
type Lists interface {
	Topics(ctx context.Context) ([]otc.Topic, error)
	Rules(ctx context.Context) ([]otc.Rule, error)
}

// Metric is a metric that there may be an alarm rule of.
type Metric struct {
	Name     v1alpha1.Metric // the end of the rule's name
	CloudEye string          // Cloud Eye's name of what the rule watches, such as rds039_disk_util
	Unit     string          // such as %
}

// Desired is what should exist in the cloud for one database.
type Desired struct {
	Name       string // see Name
	Namespace  string // of the object that Name is made of; with the next two, see Mark
	ObjectName string
	ClusterID  string
	Endpoint   string // our URL; its scheme is the subscription's protocol
	Dimension  string // what the rules watch, as name:value; see Dimension
	Rules      []v1alpha1.DesiredRule
	Renewed    bool // the policy has changed: period, count and repeat that differ are not reported as mended
}

func (d Desired) rule(metric v1alpha1.Metric) (v1alpha1.DesiredRule, bool) {
	for _, r := range d.Rules {
		if r.Metric == metric {
			return r, true
		}
	}
	return v1alpha1.DesiredRule{}, false
}

// Alarms ensures and removes. It is safe for concurrent use, for one database at a time.
type Alarms struct {
	cloud   Cloud
	lists   Lists
	metrics []Metric // in the order in which their rules are recorded
	now     func() time.Time

	mu            sync.Mutex
	confirmations []time.Time                  // when they were asked for, in the last window
	subscribed    map[string]subscribed        // by subscription URN
	ineffective   map[string]ineffectiveRepair // by rule id or topic URN
	lookups       map[string]lookup            // by instance id
	series        seriesList
	seriesTurn    chan struct{} // held while lookups and series are read or changed
}

// New makes Alarms of a cloud, its lists, all metrics that there are rules of, and a clock. The first metric is the one whose series
// say which dimension an instance has.
func New(cloud Cloud, lists Lists, metrics []Metric, now func() time.Time) *Alarms {
	return &Alarms{
		cloud: cloud, lists: lists, metrics: metrics, now: now, subscribed: map[string]subscribed{}, ineffective: map[string]ineffectiveRepair{},
		lookups: map[string]lookup{}, seriesTurn: make(chan struct{}, 1),
	}
}

// metric returns a metric by its name. It is an error where there are no rules of such a one.
func (a *Alarms) metric(name v1alpha1.Metric) (Metric, error) {
	for _, m := range a.metrics {
		if m.Name == name {
			return m, nil
		}
	}
	return Metric{}, fmt.Errorf("no such metric: %s", name)
}

// ruleOf is the recorded rule of a metric; one without an id where there is none.
func ruleOf(a v1alpha1.Alarms, metric v1alpha1.Metric) v1alpha1.Rule {
	for _, r := range a.Rules {
		if r.Metric == metric {
			return r
		}
	}
	return v1alpha1.Rule{Metric: metric}
}

// withRule replaces the rule of its metric; one without an id is taken out. What is passed is not altered.
func (a *Alarms) withRule(observed v1alpha1.Alarms, rule v1alpha1.Rule) v1alpha1.Alarms {
	rules := slices.DeleteFunc(slices.Clone(observed.Rules), func(r v1alpha1.Rule) bool { return r.Metric == rule.Metric })
	if rule.AlarmID != "" {
		rules = append(rules, rule)
	}
	position := func(r v1alpha1.Rule) int {
		return slices.IndexFunc(a.metrics, func(m Metric) bool { return m.Name == r.Metric })
	}
	slices.SortFunc(rules, func(x, y v1alpha1.Rule) int { return position(x) - position(y) })
	observed.Rules = rules
	return observed
}

// owns reports whether a topic URN is that of this name in our project: a record may come from a restored backup, or from
// the time before the credentials changed.
func (a *Alarms) owns(topicURN, name string) bool {
	return strings.HasPrefix(topicURN, "urn:smn:") && strings.HasSuffix(topicURN, ":"+a.cloud.ProjectID()+":"+name)
}
