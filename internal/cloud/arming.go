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

// Arming makes the alarms of databases come, and stop, by the package alarms.
type Arming struct {
	alarms         *alarms.Alarms
	cloud          *Cloud
	clusterID      string
	endpoint       string // the public URL
	everyNamespace bool   // is watched: what belongs to no autopilot we see, belongs to none
	primaries      *primaries
}

// NewArming arms on behalf of a cluster. endpoint is the URL that alarms are sent to. Orphans are removed only where every
// namespace is watched: else those of other namespaces would look like orphans.
func NewArming(c *Cloud, clusterID, endpoint string, everyNamespace bool) *Arming {
	return &Arming{
		alarms: alarms.New(c.api, lists{c}, metrics(), c.now), cloud: c, clusterID: clusterID, endpoint: endpoint,
		everyNamespace: everyNamespace, primaries: &primaries{points: c.points, now: c.now, byEngine: make(map[string]comparison)},
	}
}

// lists reads each list once for all callers of the same time: arming 500 databases one by one would otherwise list 1,500
// rules 500 times.
type lists struct{ cloud *Cloud }

// Rules implements alarms.Lists.
func (l lists) Rules(ctx context.Context) ([]otc.Rule, error) {
	listed, err := l.cloud.rules.get(ctx, l.cloud.now())
	return listed.rules, err
}

// Topics implements alarms.Lists.
func (l lists) Topics(ctx context.Context) ([]otc.Topic, error) {
	return l.cloud.topics.get(ctx, l.cloud.now())
}

// Ensure implements controller.Arming.
func (a *Arming) Ensure(ctx context.Context, w controller.Arms, observed v1alpha1.Alarms, record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, []string, error) {
	desired, err := a.desired(w)
	if err != nil {
		return observed, nil, err
	}
	listed, err := a.cloud.listing.get(ctx, w.NotBefore)
	if err != nil {
		return observed, nil, err
	}
	observed, mended, err := a.alarms.Ensure(ctx, desired, observed, listed, record)
	if errors.Is(err, otc.ErrQuota) {
		err = fmt.Errorf("%w: %w", controller.ErrQuota, err)
	}
	if _, waits := errors.AsType[alarms.ConfirmationLimitError](err); waits {
		err = fmt.Errorf("%w: %w", controller.ErrLater, err)
	}
	return observed, mended, err
}

func (a *Arming) desired(w controller.Arms) (alarms.Desired, error) {
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

// metrics are those of the autopilot's table, as the package alarms wants them.
func metrics() []alarms.Metric {
	var all []alarms.Metric
	for _, row := range autopilot.MetricTable() {
		all = append(all, alarms.Metric{Name: row.Metric, CloudEye: row.CloudEye, Unit: row.Unit})
	}
	return all
}

func name(a *v1alpha1.RdsAutopilot) string { return alarms.Name(a.Namespace, a.Name, string(a.UID)) }

// Remove implements controller.Arming.
func (a *Arming) Remove(ctx context.Context, rap *v1alpha1.RdsAutopilot, observed v1alpha1.Alarms) error {
	return a.alarms.Remove(ctx, name(rap), observed)
}

// Dimension implements controller.Arming. It is the primary node's where the instance has no data, or not the primary's.
func (a *Arming) Dimension(ctx context.Context, inst autopilot.Instance) (string, error) {
	dimension, value, err := a.alarms.Dimension(ctx, inst.Engine, inst.ID, inst.Primary)
	if err != nil || value != inst.ID {
		return dimension + ":" + value, err
	}
	ofNode, err := alarms.NodeDimension(inst.Engine)
	if err != nil {
		return "", err
	}
	if another, err := a.primaries.showsAnother(ctx, inst, dimension, ofNode); err != nil || !another {
		return dimension + ":" + value, err
	}
	return ofNode + ":" + inst.Primary, nil
}

// Orphans implements controller.Arming.
func (a *Arming) Orphans(ctx context.Context, notBefore time.Time, known []*v1alpha1.RdsAutopilot, ask func(context.Context) ([]*v1alpha1.RdsAutopilot, error)) (removed []string, foreign int, err error) {
	listed, err := a.cloud.listing.get(ctx, notBefore)
	if err != nil {
		return nil, 0, err
	}
	orphans, foreign := a.alarms.Orphans(listed, a.clusterID, belongsToAny(known))
	if len(orphans) == 0 || !a.everyNamespace {
		return nil, foreign, listed.Err()
	}
	all, err := ask(ctx)
	if err != nil {
		return nil, foreign, err
	}
	orphans, foreign = a.alarms.Orphans(listed, a.clusterID, belongsToAny(all))
	for _, o := range orphans {
		if err := a.alarms.RemoveOrphan(ctx, o); err != nil {
			return removed, foreign, fmt.Errorf("remove %s: %w", o.Name, err)
		}
		removed = append(removed, o.Name)
	}
	return removed, foreign, listed.Err()
}

// belongsToAny reports whether a name in the cloud belongs to one of these.
func belongsToAny(living []*v1alpha1.RdsAutopilot) func(string) bool {
	names := make(map[string]bool, len(living))
	for _, rap := range living {
		names[name(rap)] = true
	}
	return func(n string) bool { return names[n] }
}
