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

// Cloud is the API of the cloud that this package needs. *otc.Cloud implements it.
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
}

// Lister lists the present topics and rules of the project. An implementation may share one reading between databases.
type Lister interface {
	Topics(ctx context.Context) ([]otc.Topic, error)
	Rules(ctx context.Context) ([]otc.Rule, error)
}

// Metric is a metric that an alarm rule can watch.
type Metric struct {
	Name     v1alpha1.Metric // also the end of the rule's name
	CloudEye string          // Cloud Eye's name of the metric, such as rds039_disk_util
	Unit     string          // such as %
}

// Desired describes the topic, subscription and rules of one database.
type Desired struct {
	Name       string // see Name
	Namespace  string // of the RdsAutopilot; with the next two, see Mark
	ObjectName string
	ClusterID  string
	Endpoint   string // the public URL; its scheme is the subscription's protocol
	Dimension  string // of all rules, as name:value; see InstanceDimension and NodeDimension
	Rules      []v1alpha1.DesiredRule
	Renewed    bool // the policy has changed, so a different period, count or repeat is not reported as repaired
}

func (d Desired) rule(metric v1alpha1.Metric) (v1alpha1.DesiredRule, bool) {
	for _, r := range d.Rules {
		if r.Metric == metric {
			return r, true
		}
	}
	return v1alpha1.DesiredRule{}, false
}

// Alarms ensures and removes the topic, subscription and rules of databases. It is safe for concurrent use, but the
// caller must not handle one database twice at a time.
type Alarms struct {
	cloud   Cloud
	lister  Lister
	metrics []Metric // in the order in which their rules are recorded
	now     func() time.Time

	mu            sync.Mutex
	confirmations []confirmation         // requested in the last window, oldest first
	subscribed    map[string]subscribed  // by subscription URN
	ineffective   map[string]ineffective // by rule id or topic URN
}

// New returns Alarms. metrics are all metrics that a rule can watch; now is the clock.
func New(cloud Cloud, lister Lister, metrics []Metric, now func() time.Time) *Alarms {
	return &Alarms{
		cloud: cloud, lister: lister, metrics: metrics, now: now,
		subscribed: map[string]subscribed{}, ineffective: map[string]ineffective{},
	}
}

// metric returns a metric by its name, or an error if it is unknown.
func (a *Alarms) metric(name v1alpha1.Metric) (Metric, error) {
	for _, m := range a.metrics {
		if m.Name == name {
			return m, nil
		}
	}
	return Metric{}, fmt.Errorf("no such metric: %s", name)
}

// ruleOf returns the recorded rule of a metric. Its AlarmID is empty if no rule is recorded.
func ruleOf(a v1alpha1.Alarms, metric v1alpha1.Metric) v1alpha1.Rule {
	for _, r := range a.Rules {
		if r.Metric == metric {
			return r
		}
	}
	return v1alpha1.Rule{Metric: metric}
}

// withRule returns observed with the rule of its metric replaced, or removed if rule has no AlarmID. It does not modify
// observed.Rules.
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

// owns reports whether a topic URN has this name and our project. A record may come from a restored backup, or from
// before the credentials changed.
func (a *Alarms) owns(topicURN, name string) bool {
	return strings.HasPrefix(topicURN, "urn:smn:") && strings.HasSuffix(topicURN, ":"+a.cloud.ProjectID()+":"+name)
}
