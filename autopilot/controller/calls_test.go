// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// counting counts what a cloud is asked for, by names. An instance whose list is new enough costs nothing, as in the
// adapter.
type counting struct {
	cloud
	calls  map[string]int
	listed *time.Time
}

func (c counting) count(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[name]++
}

func (c counting) Instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error) {
	if notBefore.After(*c.listed) {
		c.count("instances")
		*c.listed = c.clock()
	}
	return c.cloud.Instance(ctx, id, notBefore)
}

func (c counting) AlarmStates(ctx context.Context, notBefore time.Time) (map[string]AlarmState, error) {
	c.count("rules")
	return c.cloud.AlarmStates(ctx, notBefore)
}

func (c counting) Evidence(ctx context.Context, inst autopilot.Instance, w EvidenceRequest) (autopilot.Evidence, error) {
	c.count("measurement of " + string(w.Metric))
	return c.cloud.Evidence(ctx, inst, w)
}

func (c counting) Dimension(ctx context.Context, inst autopilot.Instance) (string, error) {
	c.count("dimension")
	return c.cloud.Dimension(ctx, inst)
}

func (c counting) Catalogue(ctx context.Context, inst autopilot.Instance) ([]flavors.Flavor, error) {
	c.count("catalogue")
	return c.cloud.Catalogue(ctx, inst)
}

func (c counting) ResizeList(ctx context.Context, inst autopilot.Instance) ([]string, error) {
	c.count("resize list")
	return c.cloud.ResizeList(ctx, inst)
}

func (c counting) Series(ctx context.Context, inst autopilot.Instance, w SeriesRequest) (autopilot.Series, error) {
	c.count("series")
	return c.cloud.Series(ctx, inst, w)
}

func (c counting) UsedSpace(ctx context.Context, inst autopilot.Instance, dimension string) ([]autopilot.Point, error) {
	c.count("used space of 14 days")
	return c.cloud.UsedSpace(ctx, inst, dimension)
}

func (c counting) Change(ctx context.Context, id string, i v1alpha1.Intent) (string, error) {
	c.count("change")
	return c.cloud.Change(ctx, id, i)
}

func (c counting) Job(ctx context.Context, id string) (autopilot.Job, error) {
	c.count("job")
	return c.cloud.Job(ctx, id)
}

// A round asks only for the facts that the first guard which holds needs. The numbers include the look of the explain
// queue, and the check of the rules.
func TestRoundAsksTheCloudOnlyForWhatItNeeds(t *testing.T) {
	alarm := func(m v1alpha1.Metric) func(*world) {
		return func(w *world) {
			w.usedGB, w.cpu = 92, 95
			w.alarm(m, true)
		}
	}
	for name, tc := range map[string]struct {
		isSweep       bool
		spec          func(*v1alpha1.Spec)
		change        func(*world)
		first, second map[string]int // the round of the news, and the one a minute later
	}{
		"steady sweep": {
			isSweep: true,
			first:   map[string]int{"instances": 1, "rules": 1, "measurement of storage": 1, "dimension": 1},
			second:  map[string]int{"instances": 1, "rules": 1},
		},
		"storage alarm": {
			change: alarm(v1alpha1.MetricStorage),
			first:  map[string]int{"instances": 1, "rules": 1, "measurement of storage": 1, "series": 1},
			second: map[string]int{"instances": 1, "rules": 1, "measurement of storage": 1},
		},
		"CPU alarm": {
			change: alarm(v1alpha1.MetricCPU),
			first:  map[string]int{"instances": 1, "rules": 1, "measurement of cpu": 1, "catalogue": 1, "resize list": 1, "series": 1},
			second: map[string]int{"instances": 1, "rules": 1, "measurement of cpu": 1},
		},
		"CPU alarm in a closed window": {
			spec: func(s *v1alpha1.Spec) {
				s.Flavor.Window = &v1alpha1.Window{Start: "02:00", End: "03:00", TimeZone: "UTC"}
			},
			change: alarm(v1alpha1.MetricCPU),
			first:  map[string]int{"instances": 1, "rules": 1, "measurement of cpu": 1, "catalogue": 1},
			second: map[string]int{"instances": 1, "rules": 1, "measurement of cpu": 1, "catalogue": 1},
		},
		"CPU alarm in mode Recommend": {
			spec:   func(s *v1alpha1.Spec) { s.Mode = v1alpha1.ModeRecommend },
			change: alarm(v1alpha1.MetricCPU),
			first:  map[string]int{"instances": 1, "rules": 1, "measurement of cpu": 1, "catalogue": 1},
			second: map[string]int{"instances": 1, "rules": 1, "measurement of cpu": 1, "catalogue": 1},
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			if name == "storage alarm" {
				w.inst.Engine = "PostgreSQL" // MySQL has no metric of what fills the volume
			}
			c := w.process()
			for range 3 { // ACTIVE for more than 15 minutes
				w.settle(t, c)
			}
			lead(t, c)
			if tc.spec != nil {
				w.changeRap(func(rap *v1alpha1.RdsAutopilot) { tc.spec(&rap.Spec) })
			}
			round := func(isSweep bool) {
				if isSweep {
					c.decideMarks.setSweep(database, w.now)
					c.armMarks.setSweep(database, w.now)
				}
				if _, err := w.look(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				w.looks(t, c)
			}
			round(true) // with the date of the cap, which is read once a day
			w.now = w.now.Add(time.Hour)
			n := counting{cloud{w}, make(map[string]int), new(w.now)}
			c.options.Cloud = n
			if tc.change != nil {
				tc.change(w)
			}
			w.now = w.now.Add(time.Minute)
			round(tc.isSweep)
			if !maps.Equal(n.calls, tc.first) {
				t.Errorf("the round asks for %v, want %v", n.calls, tc.first)
			}
			clear(n.calls)
			w.now = w.now.Add(time.Minute)
			round(false)
			if !maps.Equal(n.calls, tc.second) {
				t.Errorf("the next round asks for %v, want %v", n.calls, tc.second)
			}
		})
	}
}
