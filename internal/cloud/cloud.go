// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/internal/otc"
)

const (
	// rawPeriod is the period, in Cloud Eye's API, of data that is not aggregated.
	rawPeriod = 1
	// newestWithin is how old the newest datapoint may be. Metrics are up to 10 minutes late
	// (docs/cloud-facts.md#metrics).
	newestWithin = 30 * time.Minute
	// catalogueUsableFor is how old a catalogue may be, because a flavor may be sold out at any time.
	catalogueUsableFor = 5 * time.Minute
)

// Cloud is Open Telekom Cloud as the controller needs it. It is safe for concurrent use. All callers share its lists,
// so that a storm of alarms costs as many requests as one alarm.
type Cloud struct {
	api       *otc.Cloud
	instances listCache[map[string]otc.Instance] // by id
	topics    listCache[[]otc.Topic]
	rules     listCache[ruleList]
	series    listCache[map[otc.Series]bool] // of seriesMetric
	snapshot  listCache[*alarms.Snapshot]
	points    *batcher
	fortnight *batcher // hourly averages of autopilot.CapSpan
	jobs      *jobTurns
	primaries *primaries
	now       func() time.Time

	mu         sync.Mutex
	catalogues map[string]*listCache[[]flavors.Flavor] // by engine and version
}

// ruleList is one list of all alarm rules, and their states by rule id, which every round needs.
type ruleList struct {
	rules  []otc.Rule
	states map[string]controller.AlarmState
}

// New returns a Cloud that reads from api. now is the clock.
func New(api *otc.Cloud, now func() time.Time) *Cloud {
	c := &Cloud{api: api, now: now, catalogues: make(map[string]*listCache[[]flavors.Flavor])}
	c.instances = listCache[map[string]otc.Instance]{now: now,
		read: func(ctx context.Context, _ time.Time) (map[string]otc.Instance, error) {
			all, err := api.Instances(ctx)
			byID := make(map[string]otc.Instance, len(all))
			for _, i := range all {
				byID[i.ID] = i
			}
			return byID, err
		}}
	c.topics = listCache[[]otc.Topic]{now: now,
		read: func(ctx context.Context, _ time.Time) ([]otc.Topic, error) { return api.Topics(ctx) }}
	c.rules = listCache[ruleList]{now: now, read: func(ctx context.Context, _ time.Time) (ruleList, error) {
		rules, err := api.Rules(ctx)
		states := make(map[string]controller.AlarmState, len(rules))
		for _, r := range rules {
			states[r.ID] = controller.AlarmState{State: alarms.StateOf(r), Since: r.UpdateTime}
		}
		return ruleList{rules, states}, err
	}}
	c.series = listCache[map[otc.Series]bool]{now: now, read: func(ctx context.Context, _ time.Time) (map[otc.Series]bool,
		error) {
		return api.ListedSeries(ctx, seriesMetric())
	}}
	c.snapshot = listCache[*alarms.Snapshot]{now: now, read: c.readSnapshot, composed: true}
	c.points = newBatcher(c.readPoints, now)
	c.fortnight = newBatcher(c.readFortnight, now)
	c.fortnight.size = seriesPerFortnight
	c.jobs = newJobTurns(api.Rate())
	c.primaries = &primaries{points: c.points, now: now, byEngine: make(map[string]comparison)}
	return c
}

// Rules implements alarms.Lister. All callers of the same time share one list: arming 500 databases one by one would
// otherwise list 1,500 rules 500 times.
func (c *Cloud) Rules(ctx context.Context) ([]otc.Rule, error) {
	list, err := c.rules.get(ctx, c.now())
	return list.rules, err
}

// Topics implements alarms.Lister. All callers of the same time share one list.
func (c *Cloud) Topics(ctx context.Context) ([]otc.Topic, error) { return c.topics.get(ctx, c.now()) }

// Snapshot implements alarms.Lister. All callers of the same time share one snapshot.
func (c *Cloud) Snapshot(ctx context.Context, notBefore time.Time) (*alarms.Snapshot, error) {
	return c.snapshot.get(ctx, notBefore)
}

// readSnapshot reads topics, subscriptions and rules, as far as the cloud answers. It returns no error, because the
// snapshot holds the error of each list. It reads the lists concurrently, so that one that hangs delays no other.
func (c *Cloud) readSnapshot(ctx context.Context, notBefore time.Time) (*alarms.Snapshot, error) {
	var topics alarms.Result[otc.Topic]
	var subscriptions alarms.Result[otc.Subscription]
	var rules alarms.Result[otc.Rule]
	var reading sync.WaitGroup
	reading.Go(func() { topics = alarms.NewResult(c.topics.get(ctx, notBefore)) })
	reading.Go(func() {
		subscriptions = alarms.NewResult(safely(func() ([]otc.Subscription, error) { return c.api.Subscriptions(ctx) }))
	})
	reading.Go(func() {
		list, err := c.rules.get(ctx, notBefore)
		rules = alarms.NewResult(list.rules, err)
	})
	reading.Wait()
	return alarms.NewSnapshot(topics, subscriptions, rules), nil
}

// ListMaxAge returns how old a list of alarm states or instances may be that a decision without news uses.
func (c *Cloud) ListMaxAge() time.Duration { return max(c.rules.usableFor(), c.instances.usableFor()) }

// Instance returns the instance as of notBefore or later; nil if the cloud has no such instance. A replica that is
// not in the list is left out.
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
	// The cloud lists nodes in any order. Without sorting, the status would change with it.
	slices.Sort(inst.NodeIDs)
	slices.Sort(inst.Zones)
	for _, id := range found.Replicas {
		if r, ok := byID[id]; ok {
			inst.Replicas = append(inst.Replicas, autopilot.Replica{ID: r.ID, Name: r.Name, VCPUs: r.VCPUs, MemoryGB: r.MemoryGB,
				VolumeGB: r.VolumeGB})
		}
	}
	return inst, nil
}

// AlarmStates returns the state of every rule of the project by rule id, as of notBefore or later. Callers share the
// map and must not modify it.
func (c *Cloud) AlarmStates(ctx context.Context, notBefore time.Time) (map[string]controller.AlarmState, error) {
	list, err := c.rules.get(ctx, notBefore)
	return list.states, err
}

// Evidence returns the newest datapoint of a metric; the zero value if there is none. The evidence for storage is the
// used space in GB, from raw data. If Cloud Eye has no used space, it is the percentage of the size at that datapoint.
func (c *Cloud) Evidence(ctx context.Context, inst autopilot.Instance,
	w controller.EvidenceRequest) (autopilot.Evidence, error) {
	metric, err := autopilot.LookupMetric(w.Metric)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	of, err := series(inst, w)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	if metric.InGB() {
		return c.usedSpaceOfAny(ctx, metric, inst, w)
	}
	s := of(metric.CloudEye)
	points, err := c.points.get(ctx, w.PeriodSeconds, []otc.Series{s}, w.NotBefore)
	if p := last(points[s]); err == nil && c.isRecent(p.Time, w.PeriodSeconds) {
		return autopilot.Evidence{Time: p.Time, Percent: p.Average}, nil
	}
	return autopilot.Evidence{}, err
}

// usedSpaceOfAny returns the used space on the first dimension that has data: the rule's, the instance's, or the
// primary node's. All have the same volume. The rule's dimension may have none, or there may be no rule.
func (c *Cloud) usedSpaceOfAny(ctx context.Context, metric autopilot.MetricRow, inst autopilot.Instance,
	w controller.EvidenceRequest) (autopilot.Evidence, error) {
	ofNode, err := alarms.NodeDimension(inst.Engine)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	tried := map[otc.Series]bool{}
	for _, dimension := range []string{w.Dimension, "", ofNode + ":" + inst.Primary} {
		w.Dimension = dimension
		of, err := series(inst, w)
		if err != nil {
			return autopilot.Evidence{}, err
		}
		if s := of(metric.UsedGB); !tried[s] && s.Value != "" {
			tried[s] = true
			if e, err := c.usedSpace(ctx, metric, of, w); err != nil || e.Present() {
				return e, err
			}
		}
	}
	return autopilot.Evidence{}, nil
}

// series returns a function that names the series of a metric on the dimension of the instance's rule.
func series(inst autopilot.Instance, w controller.EvidenceRequest) (func(metric string) otc.Series, error) {
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

func (c *Cloud) usedSpace(ctx context.Context, metric autopilot.MetricRow, of func(string) otc.Series,
	w controller.EvidenceRequest) (autopilot.Evidence, error) {
	points, err := c.points.get(ctx, rawPeriod, []otc.Series{of(metric.UsedGB)}, w.NotBefore)
	hour := pointsOf(points[of(metric.UsedGB)])
	if err != nil {
		return autopilot.Evidence{}, err
	}
	if n := len(hour); n > 0 && c.isRecent(hour[n-1].Time, rawPeriod) {
		used := hour[n-1]
		return autopilot.Evidence{Time: used.Time, UsedGB: used.Value, Filling: autopilot.FillingAt(hour, used.Time)}, nil
	}
	points, err = c.points.get(ctx, rawPeriod, []otc.Series{of(metric.CloudEye), of(metric.TotalGB)}, w.NotBefore)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	totals := points[of(metric.TotalGB)]
	for _, percent := range slices.Backward(
		points[of(metric.CloudEye)]) { // the two series may have been read at different times
		i := slices.IndexFunc(totals, func(total otc.Datapoint) bool { return total.Time.Equal(percent.Time) })
		if i >= 0 && c.isRecent(percent.Time, rawPeriod) {
			return autopilot.Evidence{Time: percent.Time, UsedGB: percent.Average / 100 * totals[i].Average}, nil
		}
	}
	return autopilot.Evidence{}, nil
}

// isRecent reports whether a datapoint of a period in seconds may be evidence.
func (c *Cloud) isRecent(t time.Time, period int) bool {
	return c.now().Sub(t) <= newestWithin+2*time.Duration(period)*time.Second
}

func last(points []otc.Datapoint) otc.Datapoint {
	if len(points) == 0 {
		return otc.Datapoint{}
	}
	return points[len(points)-1]
}

// pointsOf returns datapoints as the domain has them.
func pointsOf(found []otc.Datapoint) []autopilot.Point {
	points := make([]autopilot.Point, 0, len(found))
	for _, p := range found {
		points = append(points, autopilot.Point{Time: p.Time, Value: p.Average})
	}
	return points
}

// readPoints reads the datapoints of newestWithin, and raw data of the hour before that, from which autopilot.Filling
// is computed. It reads two periods more, because the cloud returns nothing for a part of a period.
func (c *Cloud) readPoints(ctx context.Context, series []otc.Series,
	period int) (map[otc.Series][]otc.Datapoint, error) {
	to := c.now()
	from := to.Add(-newestWithin - 2*time.Duration(period)*time.Second)
	if period == rawPeriod {
		from = from.Add(-autopilot.FillingSpan)
	}
	return c.api.Datapoints(ctx, series, period, from, to.Add(time.Minute))
}

// Catalogue returns the flavors of the instance's engine and version, at most five minutes old. While the cloud does
// not answer, it returns the last catalogue, however old. Callers must not modify the result.
func (c *Cloud) Catalogue(ctx context.Context, inst autopilot.Instance) ([]flavors.Flavor, error) {
	cache := c.catalogue(inst.Engine, inst.Version)
	catalogue, err := cache.get(ctx, c.now().Add(-catalogueUsableFor))
	if err == nil {
		return catalogue, nil
	}
	last, ok := cache.newest()
	if ok {
		return last, nil
	}
	return nil, err
}

// catalogue returns the cache of the flavors of an engine and version.
func (c *Cloud) catalogue(engine, version string) *listCache[[]flavors.Flavor] {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := engine + " " + version
	if c.catalogues[key] == nil {
		c.catalogues[key] = &listCache[[]flavors.Flavor]{now: c.now,
			read: func(ctx context.Context, _ time.Time) ([]flavors.Flavor, error) {
				all, err := c.api.Flavors(ctx, engine, version)
				catalogue := make([]flavors.Flavor, 0, len(all))
				for _, f := range all {
					catalogue = append(catalogue, flavors.Flavor{
						Code: f.Code, Engine: engine, Versions: f.Versions, Mode: f.Mode, VCPUs: f.VCPUs, MemoryGB: f.MemoryGB,
						Zones: f.Zones,
					})
				}
				return catalogue, err
			}}
	}
	return c.catalogues[key]
}

// ResizeList returns the flavor codes that this instance may change to. known is false if the cloud has no such API.
func (c *Cloud) ResizeList(ctx context.Context, inst autopilot.Instance) (codes []string, known bool, err error) {
	codes, err = c.api.ResizeTargets(ctx, inst.ID)
	if errors.Is(err, otc.ErrNotFound) {
		return nil, false, nil
	}
	return codes, err == nil, err
}
