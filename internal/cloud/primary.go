// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	comparePeriod  = 300 // seconds: raw values of two series may be of different seconds
	compareEvery   = time.Minute
	comparedFor    = 24 * time.Hour
	differentLoads = 10.0 // percentage points between primary and standby, from which the series can be told apart
)

// primaries knows by engine whether Cloud Eye's data of an HA instance is its primary node's. No manual says so
// (docs/cloud-facts.md#dimensions), and CPU and memory of a primary would raise no alarm where it is not.
type primaries struct {
	points *batcher
	now    func() time.Time

	mu       sync.Mutex
	byEngine map[string]comparison
}

// comparison is when an engine's series were compared last, and what they have shown.
type comparison struct {
	tried, known time.Time // known is zero as long as all nodes had the same load
	another      bool      // the instance's data is not the primary's
}

// showsAnother reports whether the data of this instance is known not to be its primary node's, by the names of both dimensions.
// As long as that is not known, one instance a minute of each engine is compared.
func (p *primaries) showsAnother(ctx context.Context, inst autopilot.Instance, ofInstance, ofNode string) (bool, error) {
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
	another, known := isAnother(found[own], found[primary], found[standby])
	if !known {
		return last.another, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byEngine[inst.Engine] = comparison{tried: now, known: now, another: another}
	return another, nil
}

// isAnother compares the newest values that all three have. An average of the nodes is not the primary's, either.
func isAnother(own, primary, standby []otc.Datapoint) (another, known bool) {
	for _, p := range slices.Backward(primary) {
		at := func(d otc.Datapoint) bool { return d.Time.Equal(p.Time) }
		i, j := slices.IndexFunc(own, at), slices.IndexFunc(standby, at)
		if i < 0 || j < 0 {
			continue
		}
		gap := math.Abs(p.Average - standby[j].Average)
		return math.Abs(own[i].Average-p.Average) > gap/4, gap >= differentLoads
	}
	return false, false
}
