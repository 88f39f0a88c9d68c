// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// cloud is the world's other side: a fake, for a simulated cloud would add nothing to what is shown of the loop. Methods of
// both sides have the same names, so it is a type of its own.
type cloud struct{ *world }

func (c cloud) Instance(context.Context, string, time.Time) (*autopilot.Instance, error) {
	c.mu.Lock()
	gone, during := c.gone, c.duringCloud
	c.mu.Unlock()
	if gone {
		return nil, errors.New("no answer")
	}
	if during != nil {
		during()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inst == nil {
		return nil, nil
	}
	i := *c.inst
	return &i, nil
}

func (c cloud) AlarmStates(_ context.Context, notBefore time.Time) (map[string]AlarmState, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, errors.New("no answer")
	}
	if c.listedFor > 0 && c.listed != nil && !c.listedAt.Before(notBefore) {
		return c.listed, nil
	}
	c.listings++
	c.listed, c.listedAt = maps.Clone(c.state), c.now
	return c.listed, nil
}

func (c cloud) ListMaxAge() time.Duration { return max(c.listedFor, time.Second) }

func (c cloud) Evidence(_ context.Context, _ autopilot.Instance, w EvidenceRequest) (autopilot.Evidence, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.measured = append(c.measured, w.Metric)
	if c.unreadable[w.Metric] {
		return autopilot.Evidence{}, errors.New("no answer")
	}
	return autopilot.Evidence{Time: c.now, Percent: c.cpu, UsedGB: c.usedGB}, nil
}

func (c cloud) Series(ctx context.Context, _ autopilot.Instance, w SeriesRequest) (autopilot.Series, error) {
	c.mu.Lock()
	during := c.onSeries
	c.mu.Unlock()
	if during != nil {
		during(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seriesRead = append(c.seriesRead, w)
	if c.series == nil {
		return nil, errors.New("no answer")
	}
	return c.series, nil
}

func (c cloud) UsedSpace(context.Context, autopilot.Instance, string) ([]autopilot.Point, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.capReads++
	return c.history, nil
}

func (c cloud) Catalogue(context.Context, autopilot.Instance) (cat []flavors.Flavor, err error) {
	if c.noFlavors {
		return nil, errors.New("no flavors")
	}
	for code, n := range map[string]int{"rds.mysql.n1.large.4": 2, "rds.mysql.n1.xlarge.4": 4, "rds.mysql.n1.2xlarge.4": 8} {
		cat = append(cat, flavors.Flavor{
			Code: code, Engine: "MySQL", Versions: []string{"8.0"}, Mode: "single", VCPUs: n, MemoryGB: 4 * n,
			Zones: map[string]string{"eu-de-01": flavors.ZoneNormal},
		})
	}
	return cat, nil
}

func (c cloud) ResizeList(context.Context, autopilot.Instance) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resizeLists++
	if c.offered == nil {
		return nil, &autopilot.RefusedError{Message: "DBS.200040 not for this engine"}
	}
	return c.offered, nil
}

// Ensure arms in two steps, as the cloud makes it necessary.
func (c cloud) Ensure(_ context.Context, w v1alpha1.DesiredAlarms, record func(v1alpha1.Alarms) error) (v1alpha1.Alarms, []string, error) {
	have := w.Autopilot.Status.Alarms
	c.mu.Lock()
	gone, noRules := c.gone, c.noRules
	c.mu.Unlock()
	switch {
	case gone:
		return have, nil, errors.New("no answer")
	case noRules:
		return have, nil, v1alpha1.ErrQuota
	}
	if have.TopicURN == "" {
		c.mu.Lock()
		err := c.do("topic", func() error { c.topics = 1; return nil })
		c.mu.Unlock()
		if err != nil {
			return have, nil, err
		}
		have.TopicURN = "urn"
		if err := record(have); err != nil {
			return have, nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	have.Subscription, have.Rules = v1alpha1.SubscriptionConfirmed, nil
	for _, r := range w.Rules {
		id := "al-" + string(r.Metric)
		if _, ok := c.state[id]; !ok {
			c.state[id] = AlarmState{v1alpha1.StateOK, c.now}
		}
		have.Rules = append(have.Rules, v1alpha1.Rule{Metric: r.Metric, AlarmID: id, ThresholdPercent: int32(r.ThresholdPercent), Dimension: cmp.Or(w.Dimension, "rds_cluster_id:"+w.InstanceID)})
	}
	return have, nil, nil
}

func (c cloud) Dimension(_ context.Context, inst autopilot.Instance) (string, error) {
	if inst.Primary == "" {
		return "rds_cluster_id:" + inst.ID, nil
	}
	return "rds_instance_id:" + inst.Primary, nil
}

func (c cloud) Orphans(context.Context, time.Time, []*v1alpha1.RdsAutopilot, func(context.Context) ([]*v1alpha1.RdsAutopilot, error)) ([]string, int, error) {
	return nil, 0, nil
}

func (c cloud) Marked(context.Context, time.Time) (map[string]int, error) {
	return map[string]int{}, nil
}

func (c cloud) Remove(context.Context, *v1alpha1.RdsAutopilot) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return errors.New("no answer")
	}
	return c.do("remove", func() error { c.topics = 0; clear(c.state); return nil })
}
