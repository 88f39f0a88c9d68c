// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/insight"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// walSeries returns the series of a volume with 41 GB of WAL, which an inactive replication slot keeps.
func walSeries(now time.Time) autopilot.Series {
	s := autopilot.Series{}
	for metric, values := range map[string][2]float64{
		"rds048_disk_used_size": {50, 93}, "rds040_transaction_logs_usage": {1024, 41 * 1024},
		"rds045_oldest_replication_slot_lag": {0, 40 * 1024}, "inactive_logical_replication_slot": {1, 1},
	} {
		s[metric] = []autopilot.Point{{Time: now.Add(-time.Hour), Value: values[0]}, {Time: now, Value: values[1]}}
	}
	return s
}

// newGrowthToExplain returns the leader of a PostgreSQL database that has requested a growth because of its WAL.
func newGrowthToExplain(t *testing.T) (*world, *Controller) {
	t.Helper()
	w := newWorld(t)
	w.inst.Engine = "PostgreSQL"
	c := w.startAlarm(v1alpha1.MetricStorage)
	w.series = walSeries(w.now)
	addQueues(t, c)
	w.mustDecide(c)
	return w, c
}

// explain runs the looks that are enqueued, and returns how many there were.
func (w *world) explain(c *Controller) (n int) {
	w.t.Helper()
	for ; c.queues.explain.Len() > 0; n++ {
		key, _ := c.queues.explain.Get()
		_, err := c.explain(w.t.Context(), key)
		w.must(err)
		c.queues.explain.Done(key)
	}
	return n
}

func TestCauseIsReadAfterTheRequestOfTheGrowthAndReportedOnce(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := newGrowthToExplain(t)
		if len(w.patches) != 1 || len(w.seriesReads) > 0 {
			t.Fatalf("patches %v after %d reads; want one without a read", w.patches, len(w.seriesReads))
		}
		if n := w.explain(c); n != 1 || len(w.seriesReads) != 1 || w.seriesReads[0].Dimension != "rds_cluster_id:in01" {
			t.Fatalf("%d looks, read %+v", n, w.seriesReads)
		}
		s := w.rap().Status
		if s.Insight == nil || s.Insight.Cause == nil || s.Insight.Cause.Name != v1alpha1.CauseReplicationSlot {
			t.Fatalf("insight %+v, want the replication slot", s.Insight)
		}
		w.mustDecide(c)
		w.mustDecide(w.process())
		if warnings, _ := w.countEvents(string(autopilot.ReasonCauseNotData)); warnings != 1 || w.explain(c) > 0 {
			t.Errorf("%d warnings, %d reads", warnings, len(w.seriesReads))
		}
	})
}

// historyReader answers the first request, and fails at the second one and for the used space.
type historyReader struct{ requests []SeriesRequest }

func (h *historyReader) Series(_ context.Context, _ autopilot.Instance, r SeriesRequest) (autopilot.Series, error) {
	h.requests = append(h.requests, r)
	if len(h.requests) == 2 {
		panic("broken")
	}
	return autopilot.Series{r.Metrics[0]: {{Value: 1}}}, nil
}

func (h *historyReader) UsedSpace(context.Context, autopilot.Instance, string) ([]autopilot.Point, error) {
	return nil, errNoAnswer
}

func TestReadHistoryReadsThePartsThatAreDueEachWithItsOwnError(t *testing.T) {
	c := autopilot.Case{Instance: &autopilot.Instance{ID: "in01", Engine: "PostgreSQL"}, Now: time.Unix(1e9, 0)}
	r := &historyReader{}
	if ReadHistory(t.Context(), r, c, insight.Due{}); len(r.requests) > 0 {
		t.Errorf("nothing is due, requests %+v", r.requests)
	}
	h := ReadHistory(t.Context(), r, c, insight.Due{Cause: true, Load: true, Cap: true})
	if len(r.requests) != 2 || len(h.Cause) != 1 || h.CauseErr != nil || h.LoadErr == nil || h.UsedErr == nil {
		t.Errorf("read %+v with %d requests; want the cause, and two errors", h, len(r.requests))
	}
}

func TestInsightIsClearedWithItsInstanceAndWhenAutopilotIsOff(t *testing.T) {
	for name, end := range map[string]func(*world, *Controller){
		"another instance": func(w *world, c *Controller) {
			w.setInstance("in02")
			w.mustDecide(c)
		},
		"autopilot false": func(w *world, c *Controller) {
			w.setSwitch(new(false))
			w.must(w.check(c))
		},
	} {
		for when, isDuring := range map[string]bool{"after the look": false, "during the look": true} {
			inBubble(t, name+" "+when, func(t *testing.T) {
				w, c := newGrowthToExplain(t)
				if isDuring {
					w.onSeries = func(context.Context) { end(w, c) }
				}
				w.explain(c)
				if !isDuring {
					end(w, c)
				}
				if s := w.rap().Status; len(w.seriesReads) != 1 || s.Insight != nil && s.Insight.Cause != nil {
					t.Errorf("insight %+v after %d reads", s.Insight, len(w.seriesReads))
				}
			})
		}
	}
}
