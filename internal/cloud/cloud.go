// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Cloud is Open Telekom Cloud as the controller needs it. Lists are shared: however many databases wait, one listing
// serves them.
type Cloud struct {
	api       *otc.Cloud
	instances shared[map[string]otc.Instance]
	topics    shared[[]otc.Topic]
	rules     shared[ruleList]
	listing   shared[*alarms.Listing]
	points    *batcher
	now       func() time.Time
}

// ruleList is one listing of the alarm rules, and their states by id: every round asks for those.
type ruleList struct {
	rules  []otc.Rule
	states map[string]controller.AlarmState
}

// New returns a Cloud that reads by an API and a clock.
func New(api *otc.Cloud, now func() time.Time) *Cloud {
	c := &Cloud{api: api, now: now}
	c.instances = shared[map[string]otc.Instance]{now: now, read: func(ctx context.Context, _ time.Time) (map[string]otc.Instance, error) {
		all, err := api.Instances(ctx)
		byID := make(map[string]otc.Instance, len(all))
		for _, i := range all {
			byID[i.ID] = i
		}
		return byID, err
	}}
	c.topics = shared[[]otc.Topic]{now: now, read: func(ctx context.Context, _ time.Time) ([]otc.Topic, error) { return api.Topics(ctx) }}
	c.rules = shared[ruleList]{now: now, read: func(ctx context.Context, _ time.Time) (ruleList, error) {
		rules, err := api.Rules(ctx)
		states := make(map[string]controller.AlarmState, len(rules))
		for _, r := range rules {
			states[r.ID] = controller.AlarmState{State: alarms.StateOf(r), Since: r.UpdateTime}
		}
		return ruleList{rules, states}, err
	}}
	c.points = newBatcher(c.readPoints, now)
	c.listing = shared[*alarms.Listing]{now: now, read: c.list, composed: true}
	return c
}

// list reads all that exists for alarms, as far as the cloud answers: the listing says what could not be read. The lists are
// read side by side, so that one that hangs takes no time from another. Rules are listed once for this and for the states of
// alarms.
func (c *Cloud) list(ctx context.Context, notBefore time.Time) (*alarms.Listing, error) {
	var topics alarms.List[otc.Topic]
	var subscriptions alarms.List[otc.Subscription]
	var rules alarms.List[otc.Rule]
	var reading sync.WaitGroup
	reading.Go(func() { topics = alarms.ListOf(c.topics.get(ctx, notBefore)) })
	reading.Go(func() { subscriptions = alarms.ListOf(c.api.Subscriptions(ctx)) })
	reading.Go(func() {
		listed, err := c.rules.get(ctx, notBefore)
		rules = alarms.ListOf(listed.rules, err)
	})
	reading.Wait()
	return alarms.NewListing(topics, subscriptions, rules), nil
}

// ListedFor is how long a listing serves decisions.
func (c *Cloud) ListedFor() time.Duration { return c.rules.usableFor() }

// Instance returns nil where the cloud has no such instance.
func (c *Cloud) Instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error) {
	byID, err := c.instances.get(ctx, notBefore)
	if err != nil {
		return nil, err
	}
	found, ok := byID[id]
	if !ok {
		return nil, nil
	}
	inst := &autopilot.Instance{
		ID: found.ID, Name: found.Name, Status: found.Status, Engine: found.Engine, Version: found.Version,
		Mode: found.Mode, Flavor: found.Flavor, VCPUs: found.VCPUs, MemoryGB: found.MemoryGB, VolumeGB: found.VolumeGB,
	}
	for _, n := range found.Nodes {
		inst.NodeIDs = append(inst.NodeIDs, n.ID)
		if !slices.Contains(inst.Zones, n.Zone) {
			inst.Zones = append(inst.Zones, n.Zone)
		}
		if n.Role == "master" {
			inst.Primary = n.ID
		}
	}
	// The cloud lists nodes in any order; the status must not change with it.
	slices.Sort(inst.NodeIDs)
	slices.Sort(inst.Zones)
	for _, id := range found.Replicas {
		if r, ok := byID[id]; ok {
			inst.Replicas = append(inst.Replicas, autopilot.Replica{ID: r.ID, Name: r.Name, VCPUs: r.VCPUs, MemoryGB: r.MemoryGB})
		}
	}
	return inst, nil
}

// AlarmStates returns the state of every rule of the project. Callers share it and do not alter it.
func (c *Cloud) AlarmStates(ctx context.Context, notBefore time.Time) (map[string]controller.AlarmState, error) {
	listed, err := c.rules.get(ctx, notBefore)
	return listed.states, err
}

const rawPeriod = 1 // Cloud Eye's word for raw data

// Evidence reads the newest datapoints. Storage is the used space itself, in raw data; where Cloud Eye has none of it, the
// percentage of the size at that datapoint.
func (c *Cloud) Evidence(ctx context.Context, inst autopilot.Instance, wanted []controller.EvidenceOf) (map[v1alpha1.Metric]autopilot.Evidence, error) {
	found := make(map[v1alpha1.Metric]autopilot.Evidence)
	busy := make(map[v1alpha1.Metric]otc.Series) // CPU and memory: they have one period
	var period int
	var notBefore time.Time
	for _, w := range wanted {
		of, err := series(inst, w)
		if err != nil {
			return nil, err
		}
		metric, err := autopilot.LookupMetric(w.Metric)
		if err != nil {
			return nil, err
		}
		if !metric.InGB() {
			busy[w.Metric], period = of(metric.CloudEye), w.PeriodSeconds
			if w.NotBefore.After(notBefore) {
				notBefore = w.NotBefore
			}
			continue
		}
		e, err := c.usedSpace(ctx, metric, of, w)
		if err != nil {
			return nil, err
		}
		if e.Present() {
			found[w.Metric] = e
		}
	}
	if len(busy) == 0 {
		return found, nil
	}
	points, err := c.points.get(ctx, period, slices.Collect(maps.Values(busy)), notBefore)
	if err != nil {
		return nil, err
	}
	for metric, s := range busy {
		if p := last(points[s]); !p.Time.IsZero() {
			found[metric] = autopilot.Evidence{Time: p.Time, Percent: p.Average}
		}
	}
	return found, nil
}

// series names a metric of the instance on the dimension that its rule has.
func series(inst autopilot.Instance, w controller.EvidenceOf) (func(metric string) otc.Series, error) {
	name, value, ok := strings.Cut(w.Dimension, ":")
	if !ok {
		var err error
		if name, err = alarms.InstanceDimension(inst.Engine); err != nil {
			return nil, err
		}
		value = inst.ID
	}
	return func(metric string) otc.Series { return otc.Series{Metric: metric, Dimension: name, Value: value} }, nil
}

func (c *Cloud) usedSpace(ctx context.Context, metric autopilot.MetricRow, of func(string) otc.Series, w controller.EvidenceOf) (autopilot.Evidence, error) {
	wanted := []otc.Series{of(metric.UsedGB)}
	if w.WithPercent {
		wanted = append(wanted, of(metric.CloudEye))
	}
	points, err := c.points.get(ctx, rawPeriod, wanted, w.NotBefore)
	if used := last(points[of(metric.UsedGB)]); err != nil || !used.Time.IsZero() {
		return autopilot.Evidence{Time: used.Time, UsedGB: used.Average, Percent: last(points[of(metric.CloudEye)]).Average}, err
	}
	points, err = c.points.get(ctx, rawPeriod, []otc.Series{of(metric.CloudEye), of(metric.TotalGB)}, w.NotBefore)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	totals := points[of(metric.TotalGB)]
	for _, percent := range slices.Backward(points[of(metric.CloudEye)]) { // one of both may have been read a minute before
		i := slices.IndexFunc(totals, func(total otc.Datapoint) bool { return total.Time.Equal(percent.Time) })
		if i >= 0 {
			return autopilot.Evidence{Time: percent.Time, UsedGB: percent.Average / 100 * totals[i].Average}, nil
		}
	}
	return autopilot.Evidence{}, nil
}

func last(points []otc.Datapoint) otc.Datapoint {
	if len(points) == 0 {
		return otc.Datapoint{}
	}
	return points[len(points)-1]
}

// readPoints reaches over the delay of metrics, up to 10 minutes (docs/cloud-facts.md#metrics), and over two periods more,
// since the cloud gives nothing for a part of one.
func (c *Cloud) readPoints(ctx context.Context, series []otc.Series, period int) (map[otc.Series][]otc.Datapoint, error) {
	to := c.now()
	from := to.Add(-30*time.Minute - 2*time.Duration(period)*time.Second)
	return c.api.Datapoints(ctx, series, period, from, to.Add(time.Minute))
}

// Catalogue returns the flavors of the instance's engine and version.
func (c *Cloud) Catalogue(ctx context.Context, inst autopilot.Instance) ([]flavors.Flavor, error) {
	all, err := c.api.Flavors(ctx, inst.Engine, inst.Version)
	if err != nil {
		return nil, err
	}
	catalogue := make([]flavors.Flavor, 0, len(all))
	for _, f := range all {
		catalogue = append(catalogue, flavors.Flavor{
			Code: f.Code, Engine: inst.Engine, Versions: f.Versions, Mode: f.Mode, VCPUs: f.VCPUs, MemoryGB: f.MemoryGB, Zones: f.Zones,
		})
	}
	return catalogue, nil
}

// ResizeList reads the codes that this very instance may change to. It is not known where the cloud has no such list.
func (c *Cloud) ResizeList(ctx context.Context, inst autopilot.Instance) (codes []string, known bool, err error) {
	codes, err = c.api.ResizeTargets(ctx, inst.ID)
	if errors.Is(err, otc.ErrNotFound) {
		return nil, false, nil
	}
	return codes, err == nil, err
}
