// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/alarms"
	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// seriesKnownFor is how long a list of series is proof that an instance in it has data of its own.
	seriesKnownFor = 24 * time.Hour
	// seriesMissingFor is how old a list may be that says that an instance has no data of its own. Such an instance is
	// looked up in each sweep.
	seriesMissingFor = 5 * time.Minute
	// comparePeriod is the period in seconds in which loads are compared, because raw values of two series may be of
	// different seconds.
	comparePeriod = 300
	// compareEvery is how often the nodes of an engine are compared while their loads are too similar.
	compareEvery = time.Minute
	// comparedFor is how long the result of a comparison counts for all instances of the engine.
	comparedFor = 24 * time.Hour
	// minLoadGap is the difference in load between primary and standby, in percentage points, from which the two series
	// can be distinguished.
	minLoadGap = 10.0
)

// Dimension returns the dimension of the primary node, as name:value, if Cloud Eye has data of that node, and either none
// of the instance, or data of the instance that is not the primary's. Otherwise it returns the dimension of the
// instance.
func (c *Cloud) Dimension(ctx context.Context, inst autopilot.Instance, primarySince time.Time) (string, error) {
	ofInstance, err1 := alarms.InstanceDimension(inst.Engine)
	ofNode, err2 := alarms.NodeDimension(inst.Engine)
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	onInstance, onNode := ofInstance+":"+inst.ID, ofNode+":"+inst.Primary
	if inst.Primary == "" {
		return onInstance, nil
	}
	own := otc.Series{Metric: seriesMetric(), Dimension: ofInstance, Value: inst.ID}
	node := otc.Series{Metric: own.Metric, Dimension: ofNode, Value: inst.Primary}
	listed, err := c.listedSeries(ctx, own)
	if err != nil {
		return "", err
	}
	if !listed[own] && listed[node] {
		return onNode, nil
	}
	another, err := c.primaries.showsAnother(ctx, inst, ofInstance, ofNode, primarySince)
	if !another || err != nil {
		return onInstance, err
	}
	// A rule on a node without data would never raise an alarm.
	if listed, err = c.listedSeries(ctx, node); err != nil || !listed[node] {
		return onInstance, err
	}
	return onNode, nil
}

// listedSeries returns the series that Cloud Eye lists. A list without the wanted series is read again soon.
func (c *Cloud) listedSeries(ctx context.Context, wanted otc.Series) (map[otc.Series]bool, error) {
	listed, err := c.series.get(ctx, c.now().Add(-seriesKnownFor))
	if err == nil && !listed[wanted] {
		listed, err = c.series.get(ctx, c.now().Add(-seriesMissingFor))
	}
	if err != nil {
		return nil, fmt.Errorf("list the series of %s: %w", wanted.Metric, err)
	}
	return listed, nil
}

// seriesMetric returns Cloud Eye's name of the metric whose series show which dimension of an instance has data.
func seriesMetric() string { return autopilot.MetricTable()[0].CloudEye }

// primaries remembers for each engine whether Cloud Eye's data of an HA instance is the data of its primary node. No
// manual says so (docs/cloud-facts.md#dimensions). If it is another node's, a busy primary would raise no alarm.
type primaries struct {
	points *batcher
	now    func() time.Time

	mu       sync.Mutex
	byEngine map[string]comparison
}

// comparison is the last comparison of an engine's series.
type comparison struct {
	tried   time.Time
	known   time.Time // when the result was found; zero while all nodes have had similar loads
	another bool      // the data of the instance is not its primary's
}

// showsAnother reports whether the data of this instance is known not to be its primary node's. Until that is known, it
// compares one instance of each engine per minute. ofInstance and ofNode are the names of the engine's dimensions.
// Measurements from before primarySince are not compared, because another node may have been the primary.
func (p *primaries) showsAnother(ctx context.Context, inst autopilot.Instance, ofInstance, ofNode string,
	primarySince time.Time) (bool, error) {
	i := slices.IndexFunc(inst.NodeIDs, func(id string) bool { return id != inst.Primary })
	if inst.Primary == "" || i < 0 {
		return false, nil
	}
	now := p.now()
	p.mu.Lock()
	last := p.byEngine[inst.Engine]
	if now.Sub(last.known) < comparedFor || now.Sub(last.tried) < compareEvery {
		p.mu.Unlock()
		return last.another, nil
	}
	last.tried = now
	p.byEngine[inst.Engine] = last
	p.mu.Unlock()

	cpu, err := autopilot.LookupMetric(v1alpha1.MetricCPU)
	if err != nil {
		return false, err
	}
	own := otc.Series{Metric: cpu.CloudEye, Dimension: ofInstance, Value: inst.ID}
	primary := otc.Series{Metric: cpu.CloudEye, Dimension: ofNode, Value: inst.Primary}
	standby := otc.Series{Metric: cpu.CloudEye, Dimension: ofNode, Value: inst.NodeIDs[i]}
	found, err := p.points.get(ctx, comparePeriod, []otc.Series{own, primary, standby}, time.Time{})
	if err != nil {
		return false, fmt.Errorf("compare the instance's data with its nodes': %w", err)
	}
	sinceFailover := slices.DeleteFunc(slices.Clone(found[primary]),
		func(d otc.Datapoint) bool { return d.Time.Before(primarySince) })
	another, known := isAnother(found[own], sinceFailover, found[standby])
	if !known {
		return last.another, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byEngine[inst.Engine] = comparison{tried: now, known: now, another: another}
	return another, nil
}

// isAnother compares the newest values that all three series have. The average of both nodes is not the primary's load
// either. known is false if the loads are too similar.
func isAnother(own, primary, standby []otc.Datapoint) (another, known bool) {
	for _, p := range slices.Backward(primary) {
		at := func(d otc.Datapoint) bool { return d.Time.Equal(p.Time) }
		i, j := slices.IndexFunc(own, at), slices.IndexFunc(standby, at)
		if i < 0 || j < 0 {
			continue
		}
		gap := math.Abs(p.Average - standby[j].Average)
		return math.Abs(own[i].Average-p.Average) > gap/4, gap >= minLoadGap
	}
	return false, false
}
