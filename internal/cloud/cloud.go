// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/controller"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/internal/shared"
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
	api        *otc.Cloud
	instances  *shared.Reads[project, map[string]otc.Instance] // by id
	rules      *shared.Reads[project, ruleList]
	series     *shared.Reads[project, map[otc.Series]bool] // of seriesMetric
	catalogues *shared.Reads[release, []flavors.Flavor]
	points     *batcher
	jobs       *shared.Reads[string, autopilot.Job]
	jobRate    *rate.Limiter
	now        func() time.Time
}

// release is an engine in one version.
type release struct{ engine, version string }

// ruleList is one list of all alarm rules, and their states by rule id, which every round needs.
type ruleList struct {
	rules  []otc.Rule
	states map[string]controller.AlarmState
}

// New returns a Cloud that reads from api. now is the clock.
func New(api *otc.Cloud, now func() time.Time) *Cloud {
	c := &Cloud{api: api, now: now}
	c.instances = newList(now, func(ctx context.Context) (map[string]otc.Instance, error) {
		all, err := api.Instances(ctx)
		byID := make(map[string]otc.Instance, len(all))
		for _, i := range all {
			byID[i.ID] = i
		}
		return byID, err
	})
	c.rules = newList(now, func(ctx context.Context) (ruleList, error) {
		rules, err := api.Rules(ctx)
		states := make(map[string]controller.AlarmState, len(rules))
		for _, r := range rules {
			states[r.ID] = controller.AlarmState{State: alarms.StateOf(r), Since: r.UpdateTime}
		}
		return ruleList{rules, states}, err
	})
	c.series = newList(now, func(ctx context.Context) (map[otc.Series]bool, error) {
		return api.ListedSeries(ctx, seriesMetric())
	})
	c.catalogues = newLists(now, c.readCatalogue)
	c.points = newBatcher(c.readPoints, now)
	c.jobs = &shared.Reads[string, autopilot.Job]{Read: c.readJob, Now: now, Keep: jobKept}
	c.jobRate = rate.NewLimiter(rate.Limit(jobShare*api.Rate()), int(math.Ceil(jobShare*api.Rate())))
	return c
}

// Rules implements alarms.Lister. All callers of the same time share one list: arming 500 databases one by one would
// otherwise list 1,500 rules 500 times.
func (c *Cloud) Rules(ctx context.Context, notBefore time.Time) ([]otc.Rule, error) {
	list, err := c.rules.Get(ctx, project{}, notBefore)
	return list.rules, err
}

// ListMaxAge returns how old a list of alarm states or instances may be that a decision without news uses.
func (c *Cloud) ListMaxAge() time.Duration { return max(usableFor(c.rules), usableFor(c.instances)) }

// Instance returns the instance as of notBefore or later; nil if the cloud has no such instance. If the id is a node's,
// it returns the node's instance, which has another id. A replica that is not in the list is left out.
func (c *Cloud) Instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error) {
	byID, err := c.instances.Get(ctx, project{}, notBefore)
	if err != nil {
		return nil, err
	}
	found, ok := byID[id]
	for _, other := range byID {
		if !ok && slices.ContainsFunc(other.Nodes, func(n otc.Node) bool { return n.ID == id }) {
			found, ok = other, true
		}
	}
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
	list, err := c.rules.Get(ctx, project{}, notBefore)
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
	if credible := c.credible(points[s], w.PeriodSeconds, metric.MostPercent()); err == nil && len(credible) > 0 {
		newest := credible[len(credible)-1]
		return autopilot.Evidence{Time: newest.Time, Percent: newest.Average}, nil
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
			if e, err := c.usedSpace(ctx, metric, of, inst.VolumeGB, w); err != nil || e.Present() {
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

func (c *Cloud) usedSpace(ctx context.Context, metric autopilot.MetricRow, of func(string) otc.Series, volumeGB int,
	w controller.EvidenceRequest) (autopilot.Evidence, error) {
	points, err := c.points.get(ctx, rawPeriod, []otc.Series{of(metric.UsedGB)}, w.NotBefore)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	most := float64(volumeGB)
	if used := c.credible(points[of(metric.UsedGB)], rawPeriod, most); len(used) > 0 {
		newest := used[len(used)-1]
		return autopilot.Evidence{Time: newest.Time, UsedGB: newest.Average}, nil
	}
	points, err = c.points.get(ctx, rawPeriod, []otc.Series{of(metric.CloudEye), of(metric.TotalGB)}, w.NotBefore)
	if err != nil {
		return autopilot.Evidence{}, err
	}
	totals := c.credible(points[of(metric.TotalGB)], rawPeriod, most)
	percents := c.credible(points[of(metric.CloudEye)], rawPeriod, metric.MostPercent())
	for _, percent := range slices.Backward(percents) { // the two series may have been read at different times
		i := slices.IndexFunc(totals, func(total otc.Datapoint) bool { return total.Time.Equal(percent.Time) })
		if i >= 0 {
			return autopilot.Evidence{Time: percent.Time, UsedGB: percent.Average / 100 * totals[i].Average}, nil
		}
	}
	return autopilot.Evidence{}, nil
}

// credible returns the datapoints of a period in seconds that may be evidence, oldest first: those that are recent and
// can be true.
func (c *Cloud) credible(points []otc.Datapoint, period int, most float64) []otc.Datapoint {
	return slices.DeleteFunc(slices.Clone(points), func(p otc.Datapoint) bool {
		return c.now().Sub(p.Time) > newestWithin+2*time.Duration(period)*time.Second ||
			!autopilot.Point{Time: p.Time, Value: p.Average}.IsCredible(most, c.now())
	})
}

// pointsOf returns datapoints as the domain has them.
func pointsOf(found []otc.Datapoint) []autopilot.Point {
	points := make([]autopilot.Point, 0, len(found))
	for _, p := range found {
		points = append(points, autopilot.Point{Time: p.Time, Value: p.Average})
	}
	return points
}

// readPoints reads the datapoints of newestWithin. It reads two periods more, because the cloud returns nothing for a
// part of a period.
func (c *Cloud) readPoints(ctx context.Context, series []otc.Series,
	period int) (map[otc.Series][]otc.Datapoint, error) {
	to := c.now()
	from := to.Add(-newestWithin - 2*time.Duration(period)*time.Second)
	return c.api.Datapoints(ctx, series, period, from, to.Add(time.Minute))
}

// Catalogue returns the flavors of the instance's engine and version, at most five minutes old. While the cloud does
// not answer, it returns the last catalogue, however old. Callers must not modify the result.
func (c *Cloud) Catalogue(ctx context.Context, inst autopilot.Instance) ([]flavors.Flavor, error) {
	key := release{inst.Engine, inst.Version}
	catalogue, err := c.catalogues.Get(ctx, key, c.now().Add(-catalogueUsableFor))
	if last, ok := c.catalogues.Last(key); err != nil && ok {
		return last.Value, nil
	}
	return catalogue, err
}

func (c *Cloud) readCatalogue(ctx context.Context, of release) ([]flavors.Flavor, error) {
	all, err := c.api.Flavors(ctx, of.engine, of.version)
	catalogue := make([]flavors.Flavor, 0, len(all))
	for _, f := range all {
		catalogue = append(catalogue, flavors.Flavor{
			Code: f.Code, Engine: of.engine, Versions: f.Versions, Mode: f.Mode, VCPUs: f.VCPUs, MemoryGB: f.MemoryGB,
			Zones: f.Zones,
		})
	}
	return catalogue, err
}

// ResizeList returns the flavor codes that this instance may change to. It returns an autopilot.RefusedError if the
// cloud has no such list, does not serve this engine, or does not let the service read it.
func (c *Cloud) ResizeList(ctx context.Context, inst autopilot.Instance) (codes []string, err error) {
	codes, err = c.api.ResizeTargets(ctx, inst.ID)
	return codes, refusal(err)
}
