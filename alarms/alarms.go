// SPDX-License-Identifier: Apache-2.0

package alarms

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Cloud is the API of the cloud that this package needs. *otc.Cloud implements it.
type Cloud interface {
	ProjectID() string
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

// Lister lists the rules of the project as they were at notBefore or later. An implementation may share one reading
// between databases. Callers must not modify the list.
type Lister interface {
	Rules(ctx context.Context, notBefore time.Time) ([]otc.Rule, error)
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
	ClusterID string   // uid of the namespace kube-system; it is part of every mark
	Namespace string   // of the service
	Endpoint  string   // the public URL; its scheme is the subscription's protocol
	Now       func() time.Time
}

// Alarms ensures and removes the topic of the installation and the rules of databases. It is safe for concurrent use,
// but the caller must not handle one database, or the topic, twice at a time.
type Alarms struct {
	options       Options
	confirmations *rate.Limiter // requests for a confirmation

	mu          sync.Mutex
	ineffective map[string]ineffective // by rule id
}

// New returns Alarms that remember nothing.
func New(o Options) *Alarms {
	return &Alarms{options: o, ineffective: map[string]ineffective{},
		confirmations: rate.NewLimiter(confirmationRate, confirmationBurst)}
}

// mark returns the mark of an object of this cluster.
func (a *Alarms) mark(namespace, name string, recommends bool) Mark {
	return Mark{Namespace: namespace, Name: name, Cluster: a.options.ClusterID, Recommends: recommends}
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

// metricOf returns the metric that the owner's rule has by its name; false if the name is not that of a rule of this
// owner. The mark alone is no proof, because a person may have copied the rule under another name.
func (a *Alarms) metricOf(owner Mark, ruleName string) (v1alpha1.Metric, bool) {
	i := slices.IndexFunc(a.options.Metrics, func(m Metric) bool { return owner.RuleName(m.Name) == ruleName })
	if i < 0 {
		return "", false
	}
	return a.options.Metrics[i].Name, true
}

// Remove deletes the rules that bear the mark of an object of this cluster, and returns how many they were. It lists
// the rules as of notBefore or later. Before it deletes the first one it calls confirm, and stops at its error.
func (a *Alarms) Remove(ctx context.Context, namespace, name string, notBefore time.Time,
	confirm func(context.Context) error) (removed int, err error) {
	listed, err := a.options.Lister.Rules(ctx, notBefore)
	if err != nil {
		return 0, fmt.Errorf("list rules: %w", err)
	}
	owner := a.mark(namespace, name, false)
	for _, r := range listed {
		mark, ok := ParseMark(r.Description)
		if _, named := a.metricOf(owner, r.Name); !ok || !named || !mark.isOwner(owner) {
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
	listed, err := a.options.Lister.Rules(ctx, notBefore)
	if err != nil {
		return fmt.Errorf("list rules: %w", err)
	}
	seen := map[Mark]bool{}
	for _, r := range listed {
		mark, ok := ParseMark(r.Description)
		mark.Recommends = false
		if _, named := a.metricOf(mark, r.Name); ok && named && mark.Cluster == a.options.ClusterID && !seen[mark] {
			seen[mark] = true
			f(mark.Namespace, mark.Name)
		}
	}
	return nil
}

// Claim reports who manages an instance, by the rules in the cloud that watch it or one of its nodes. ids are the
// instance's id and those of its nodes. A rule that only recommends claims nothing, and neither does one without a
// readable mark. If several objects claim the instance, the one with the smallest mark manages it, except that an object
// without a rule of its own never takes an instance over.
func (a *Alarms) Claim(ctx context.Context, namespace, name string, ids []string,
	notBefore time.Time) (claim v1alpha1.Claim, err error) {
	listed, err := a.options.Lister.Rules(ctx, notBefore)
	if err != nil {
		return claim, fmt.Errorf("list rules: %w", err)
	}
	own := a.mark(namespace, name, false)
	other := Mark{}
	for _, r := range listed {
		mark, ok := ParseMark(r.Description)
		switch {
		case !ok || mark.Recommends || r.Namespace != otc.MetricNamespace || !slices.Contains(ids, r.DimensionValue):
		case mark == own:
			claim.Holds = true
		case claim.By == "" || mark.String() < other.String():
			other = mark
			claim.By = fmt.Sprintf("%s/%s", mark.Namespace, mark.Name)
			claim.Rule, claim.Cluster = r.Name, ""
			if mark.Cluster != own.Cluster {
				claim.Cluster = mark.Cluster
			}
		}
	}
	if claim.Holds && claim.By != "" {
		if own.String() < other.String() {
			return v1alpha1.Claim{Holds: true}, nil
		}
		claim.Holds = false
	}
	return claim, nil
}

// deleteRule deletes a rule. A missing one is no error.
func (a *Alarms) deleteRule(ctx context.Context, r otc.Rule) error {
	if err := a.options.Cloud.DeleteRule(ctx, r.ID); err != nil {
		return fmt.Errorf("the rule %s cannot be deleted: %w", r.Name, err)
	}
	a.noteRepair(r.ID, "")
	return nil
}
