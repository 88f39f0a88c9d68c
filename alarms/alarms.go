// SPDX-License-Identifier: Apache-2.0

// Package alarms manages the source of alarms in the cloud: one SMN topic with a subscription of our URL for the
// installation, and Cloud Eye rules for each database. Each of them bears a mark that says whose it is. The package
// compares what is desired with what the cloud lists, creates what is missing, repairs changes by others, and removes
// what nobody wants any more. It touches nothing without our mark.
//
// Desired and recorded state are plain data of the API types. The package imports no Kubernetes client and does not
// know how an alarm is handled.
package alarms

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Cloud is the API of the cloud that this package needs. *otc.Cloud implements it.
type Cloud interface {
	ProjectID() string
	// Rules lists the rules of the project as they were at notBefore or later. Callers must not modify the list.
	Rules(ctx context.Context, notBefore time.Time) ([]otc.Rule, error)
	Topics(ctx context.Context) ([]otc.Topic, error)
	CreateTopic(ctx context.Context, name, displayName string) (urn string, err error)
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

// Metric is a metric that an alarm rule can watch.
type Metric struct {
	Name     v1alpha1.Metric // also the end of the rule's name
	CloudEye string          // Cloud Eye's name of the metric, such as rds039_disk_util
	Unit     string          // such as %
}

// Options configure Alarms.
type Options struct {
	Cloud     Cloud
	Metrics   []Metric // all metrics that a rule can watch, in the order in which their rules are recorded
	ClusterID string   // uid of the namespace kube-system; it is part of every mark
	Namespace string   // of the service
	Endpoint  string   // the public URL; its scheme is the subscription's protocol
	// IsGone reports whether a watched namespace has no such RdsAutopilot. One that may not be read is not gone.
	IsGone func(ctx context.Context, namespace, name string) bool
	Now    func() time.Time
}

// Alarms ensures and removes the topic of the installation and the rules of databases. It is safe for concurrent use,
// but the caller must not handle one database, or the topic, twice at a time.
type Alarms struct {
	options   Options
	requested []time.Time // when confirmations were requested in the last confirmationPeriod

	mu          sync.Mutex
	ineffective map[string]ineffective // by rule id
}

// New returns Alarms that remember nothing.
func New(o Options) *Alarms {
	return &Alarms{options: o, ineffective: map[string]ineffective{}}
}

func (a *Alarms) mark(namespace, name string, recommends bool) Mark {
	return Mark{Namespace: namespace, Name: name, Cluster: a.options.ClusterID, Recommends: recommends}
}

// Remove deletes the rules that bear the mark and a name of an object of this cluster, and returns how many they were.
// It lists the rules as of notBefore or later. Before it deletes the first one it calls confirm, and stops at its error.
func (a *Alarms) Remove(ctx context.Context, namespace, name string, notBefore time.Time,
	confirm func(context.Context) error) (removed int, err error) {
	listed, err := a.options.Cloud.Rules(ctx, notBefore)
	if err != nil {
		return 0, fmt.Errorf("list rules: %w", err)
	}
	for _, r := range listed {
		if owner, ok := markOf(r); !ok || owner != a.mark(namespace, name, false) {
			continue
		}
		if removed == 0 {
			if err := confirm(ctx); err != nil {
				return 0, err
			}
		}
		if err := a.deleteRule(ctx, r); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// Marked calls f for each object of this cluster that has a rule in the cloud, as of notBefore or later.
func (a *Alarms) Marked(ctx context.Context, notBefore time.Time, f func(namespace, name string)) error {
	listed, err := a.options.Cloud.Rules(ctx, notBefore)
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	seen := map[Mark]bool{}
	for _, r := range listed {
		if owner, ok := markOf(r); ok && owner.Cluster == a.options.ClusterID && !seen[owner] {
			seen[owner] = true
			f(owner.Namespace, owner.Name)
		}
	}
	return nil
}

// Claim reports whether this object or another one manages an instance, by the names of the rules in the cloud as of
// notBefore or later. ids are the instance's id and those of its nodes. If several objects have rules, the one with the
// smallest mark manages it. A rule of an object of this cluster that is gone is no claim, and a sweep removes it.
func (a *Alarms) Claim(ctx context.Context, namespace, name string, ids []string,
	notBefore time.Time) (claim v1alpha1.Claim, err error) {
	listed, err := a.options.Cloud.Rules(ctx, notBefore)
	if err != nil {
		return claim, fmt.Errorf("list rules: %w", err)
	}
	own := a.mark(namespace, name, false)
	owner, rule, claimed := manager(listed, ids, own, func(other Mark) bool {
		return other != own && other.Cluster == own.Cluster && a.options.IsGone(ctx, other.Namespace, other.Name)
	})
	switch {
	case !claimed:
		return claim, nil
	case owner == own:
		return v1alpha1.Claim{Holds: true}, nil
	case owner.Cluster != own.Cluster:
		claim.Cluster = owner.Cluster
	}
	claim.By, claim.Rule = owner.Namespace+"/"+owner.Name, fmt.Sprintf("%s (%s)", rule.Name, rule.ID)
	return claim, nil
}

// Manager returns the RdsAutopilot that manages an instance, by the names of the rules that watch one of the ids. ok is
// false if there is none.
func Manager(listed []otc.Rule, ids []string) (owner Mark, ok bool) {
	owner, _, ok = manager(listed, ids, Mark{}, func(Mark) bool { return false })
	return owner, ok
}

// manager returns the smallest mark of the rules that claim an instance, as own sees it, and the oldest rule with it.
func manager(listed []otc.Rule, ids []string, own Mark, isGone func(Mark) bool) (owner Mark, rule otc.Rule, ok bool) {
	for _, r := range listed {
		if r.Namespace != otc.MetricNamespace || !slices.Contains(ids, r.DimensionValue) {
			continue
		}
		by, claims := ownerOf(r, own)
		isSmaller := !ok || by.String() < owner.String() || by == owner && r.ID < rule.ID
		if claims && isSmaller && !isGone(by) {
			owner, rule, ok = by, r, true
		}
	}
	return owner, rule, ok
}

func (a *Alarms) deleteRule(ctx context.Context, r otc.Rule) error {
	if err := a.options.Cloud.DeleteRule(ctx, r.ID); err != nil {
		return fmt.Errorf("the rule %s cannot be deleted: %w", r.Name, err)
	}
	a.noteRepair(r.ID, "")
	return nil
}
