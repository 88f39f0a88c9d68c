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

// Lister lists the topics and rules of the project. An implementation may share one reading between databases.
type Lister interface {
	Topics(ctx context.Context) ([]otc.Topic, error)
	Rules(ctx context.Context) ([]otc.Rule, error)
	// Snapshot returns all lists as they were at notBefore or later. Ensure accepts nil: nothing is known then.
	Snapshot(ctx context.Context, notBefore time.Time) (*Snapshot, error)
}

// Metric is a metric that an alarm rule can watch.
type Metric struct {
	Name     v1alpha1.Metric // also the end of the rule's name
	CloudEye string          // Cloud Eye's name of the metric, such as rds039_disk_util
	Unit     string          // such as %
}

// Options configure Alarms.
type Options struct {
	Cloud     Cloud
	Lister    Lister
	Metrics   []Metric // all metrics that a rule can watch, in the order in which their rules are recorded
	ClusterID string   // uid of the namespace kube-system; it marks the objects of this cluster
	Endpoint  string   // the public URL; its scheme is the subscription's protocol
	// EveryNamespace allows the removal of orphans. The databases of a namespace that is not watched look like orphans.
	EveryNamespace bool
	Now            func() time.Time
}

// Alarms ensures and removes the topic, subscription and rules of databases. It is safe for concurrent use, but the
// caller must not handle one database twice at a time.
type Alarms struct {
	options Options

	mu            sync.Mutex
	confirmations []time.Time            // requested in the last window, oldest first
	subscribed    map[string]subscribed  // by subscription URN
	ineffective   map[string]ineffective // by rule id or topic URN
}

// New returns Alarms that remember nothing.
func New(o Options) *Alarms {
	return &Alarms{options: o, subscribed: map[string]subscribed{}, ineffective: map[string]ineffective{}}
}

// cloudName returns the name of a database's topic, with which the names of its rules begin.
func cloudName(a *v1alpha1.RdsAutopilot) string {
	return v1alpha1.CloudName(a.Namespace, a.Name, string(a.UID))
}

// metric returns a metric by its name, or an error if it is unknown.
func (a *Alarms) metric(name v1alpha1.Metric) (Metric, error) {
	for _, m := range a.options.Metrics {
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
		return slices.IndexFunc(a.options.Metrics, func(m Metric) bool { return m.Name == r.Metric })
	}
	slices.SortFunc(rules, func(x, y v1alpha1.Rule) int { return position(x) - position(y) })
	observed.Rules = rules
	return observed
}

// owns reports whether a topic URN has this name and our project. A record may come from a restored backup, or from
// before the credentials changed.
func (a *Alarms) owns(topicURN, name string) bool {
	return strings.HasPrefix(topicURN, "urn:smn:") && strings.HasSuffix(topicURN, ":"+a.options.Cloud.ProjectID()+":"+name)
}
