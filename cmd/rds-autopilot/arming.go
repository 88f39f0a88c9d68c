package main

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

// arming is the package alarms as the controller wants it.
type arming struct {
	*alarms.Alarms
	cloud     *cloud
	clusterID string
	endpoint  string // the public URL
	everyone  bool   // all namespaces are watched: what belongs to no autopilot we see, belongs to none
}

func (a arming) Ensure(ctx context.Context, w controller.Arms, observed v1alpha1.Alarms, record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, []string, error) {
	desired, err := a.desired(w)
	if err != nil {
		return observed, nil, err
	}
	listed, err := a.cloud.listing.get(ctx, w.NotBefore)
	if err != nil {
		return observed, nil, err
	}
	observed, mended, err := a.Alarms.Ensure(ctx, desired, observed, listed, record)
	if errors.Is(err, otc.ErrQuota) {
		err = fmt.Errorf("%w: %w", controller.ErrQuota, err)
	}
	if _, waits := errors.AsType[alarms.ConfirmationLimitError](err); waits {
		err = fmt.Errorf("%w: %w", controller.ErrLater, err)
	}
	return observed, mended, err
}

func (a arming) desired(w controller.Arms) (alarms.Desired, error) {
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

func (a arming) Remove(ctx context.Context, rap *v1alpha1.RdsAutopilot, observed v1alpha1.Alarms) error {
	return a.Alarms.Remove(ctx, name(rap), observed)
}

func (a arming) Dimension(ctx context.Context, inst autopilot.Instance) (string, error) {
	dimension, value, err := a.Alarms.Dimension(ctx, inst.Engine, inst.ID, inst.Primary)
	return dimension + ":" + value, err
}

func (a arming) Orphans(ctx context.Context, notBefore time.Time, known []*v1alpha1.RdsAutopilot, ask func(context.Context) ([]*v1alpha1.RdsAutopilot, error)) (removed []string, foreign int, err error) {
	listed, err := a.cloud.listing.get(ctx, notBefore)
	if err != nil {
		return nil, 0, err
	}
	orphans, foreign := a.Alarms.Orphans(listed, a.clusterID, among(known))
	if len(orphans) == 0 || !a.everyone {
		return nil, foreign, listed.Err()
	}
	all, err := ask(ctx)
	if err != nil {
		return nil, foreign, err
	}
	orphans, foreign = a.Alarms.Orphans(listed, a.clusterID, among(all))
	for _, o := range orphans {
		if err := a.RemoveOrphan(ctx, o); err != nil {
			return removed, foreign, fmt.Errorf("remove %s: %w", o.Name, err)
		}
		removed = append(removed, o.Name)
	}
	return removed, foreign, listed.Err()
}

// among reports whether a name in the cloud belongs to one of these.
func among(living []*v1alpha1.RdsAutopilot) func(string) bool {
	names := make(map[string]bool, len(living))
	for _, rap := range living {
		names[name(rap)] = true
	}
	return func(n string) bool { return names[n] }
}
