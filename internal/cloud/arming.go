// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Arming ensures and removes the topic, subscription and alarm rules of databases. It adapts the package alarms to the
// controller.
type Arming struct {
	alarms         *alarms.Alarms
	cloud          *Cloud
	clusterID      string
	endpoint       string // the public URL
	everyNamespace bool   // whether every namespace is watched
	primaries      *primaries
}

// NewArming returns an Arming for a cluster. clusterID is the uid of its namespace kube-system. endpoint is the URL
// that SMN posts alarms to. Orphans are removed only if every namespace is watched, because the databases of an
// unwatched namespace look like orphans.
func NewArming(c *Cloud, clusterID, endpoint string, everyNamespace bool) *Arming {
	return &Arming{
		alarms: alarms.New(c.api, lister{c}, metrics(), c.now), cloud: c, clusterID: clusterID, endpoint: endpoint,
		everyNamespace: everyNamespace,
		primaries:      &primaries{points: c.points, now: c.now, byEngine: make(map[string]comparison)},
	}
}

// lister implements alarms.Lister. It reads each list once for all callers of the same time: arming 500 databases one
// by one would otherwise list 1,500 rules 500 times.
type lister struct{ cloud *Cloud }

// Rules implements alarms.Lister.
func (l lister) Rules(ctx context.Context) ([]otc.Rule, error) {
	list, err := l.cloud.rules.get(ctx, l.cloud.now())
	return list.rules, err
}

// Topics implements alarms.Lister.
func (l lister) Topics(ctx context.Context) ([]otc.Topic, error) {
	return l.cloud.topics.get(ctx, l.cloud.now())
}

// Ensure implements controller.Arming.
func (a *Arming) Ensure(ctx context.Context, w controller.DesiredAlarms, observed v1alpha1.Alarms,
	record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, []string, error) {
	desired, err := a.desired(w)
	if err != nil {
		return observed, nil, err
	}
	snapshot, err := a.cloud.snapshot.get(ctx, w.NotBefore)
	if err != nil {
		return observed, nil, err
	}
	observed, repaired, err := a.alarms.Ensure(ctx, desired, observed, snapshot, record)
	if errors.Is(err, otc.ErrQuota) {
		err = fmt.Errorf("%w: %w", controller.ErrQuota, err)
	}
	if errors.Is(err, alarms.ErrSubscriptionRefused) && !errors.Is(err, otc.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", controller.ErrSubscriptionRefused, err)
	}
	if _, limited := errors.AsType[alarms.ConfirmationLimitError](err); limited {
		err = fmt.Errorf("%w: %w", controller.ErrConfirmationLimit, err)
	}
	return observed, repaired, err
}

func (a *Arming) desired(w controller.DesiredAlarms) (alarms.Desired, error) {
	dimension := w.Dimension
	if dimension == "" {
		name, err := alarms.InstanceDimension(w.Instance.Engine)
		if err != nil {
			return alarms.Desired{}, err
		}
		dimension = name + ":" + w.Instance.ID
	}
	return alarms.Desired{
		Name:      name(w.Autopilot),
		Namespace: w.Autopilot.Namespace, ObjectName: w.Autopilot.Name, ClusterID: a.clusterID, Endpoint: a.endpoint,
		Dimension: dimension, Rules: w.Rules, Renewed: w.Renewed,
	}, nil
}

// metrics returns the autopilot's table of metrics in the types of the package alarms.
func metrics() []alarms.Metric {
	var all []alarms.Metric
	for _, row := range autopilot.MetricTable() {
		all = append(all, alarms.Metric{Name: row.Metric, CloudEye: row.CloudEye, Unit: row.Unit})
	}
	return all
}

func name(a *v1alpha1.RdsAutopilot) string {
	return v1alpha1.CloudName(a.Namespace, a.Name, string(a.UID))
}

// Remove implements controller.Arming.
func (a *Arming) Remove(ctx context.Context, rap *v1alpha1.RdsAutopilot, observed v1alpha1.Alarms) error {
	return a.alarms.Remove(ctx, name(rap), observed)
}

// Orphans implements controller.Arming. It asks for the autopilots again right before it removes anything, because
// known comes from a cache.
func (a *Arming) Orphans(ctx context.Context, notBefore time.Time, known []*v1alpha1.RdsAutopilot,
	ask func(context.Context) ([]*v1alpha1.RdsAutopilot, error)) (removed []string, foreign int, err error) {
	snapshot, err := a.cloud.snapshot.get(ctx, notBefore)
	if err != nil {
		return nil, 0, err
	}
	orphans, foreign := a.alarms.Orphans(snapshot, a.clusterID, belongsToAny(known))
	if len(orphans) == 0 || !a.everyNamespace {
		return nil, foreign, snapshot.Err()
	}
	all, err := ask(ctx)
	if err != nil {
		return nil, foreign, err
	}
	orphans, foreign = a.alarms.Orphans(snapshot, a.clusterID, belongsToAny(all))
	for _, o := range orphans {
		if err := a.alarms.RemoveOrphan(ctx, o); err != nil {
			return removed, foreign, fmt.Errorf("remove %s: %w", o.Name, err)
		}
		removed = append(removed, o.Name)
	}
	return removed, foreign, snapshot.Err()
}

// belongsToAny returns a function that reports whether a base name in the cloud belongs to one of these autopilots.
func belongsToAny(living []*v1alpha1.RdsAutopilot) func(string) bool {
	names := make(map[string]bool, len(living))
	for _, rap := range living {
		names[name(rap)] = true
	}
	return func(n string) bool { return names[n] }
}
