// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// fullOfWAL has 41 GB of WAL that an inactive slot keeps.
func fullOfWAL(now time.Time) autopilot.Series {
	s := autopilot.Series{}
	for metric, values := range map[string][2]float64{
		"rds048_disk_used_size": {50, 93}, "rds040_transaction_logs_usage": {1024, 41 * 1024},
		"rds045_oldest_replication_slot_lag": {0, 40 * 1024}, "inactive_logical_replication_slot": {1, 1},
	} {
		s[metric] = []autopilot.Point{{Time: now.Add(-time.Hour), Value: values[0]}, {Time: now, Value: values[1]}}
	}
	return s
}

// The cause is in the record, the event and the status. It is read after the change was requested, so that Cloud Eye
// cannot delay it, and only once. In a storm it is read later, unless it costs no request.
func TestCauseOfAFullVolumeIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		engine  string
		answer  bool
		waiting int // other databases
		reads   int
		words   string
		cause   v1alpha1.CauseName
	}{
		"PostgreSQL":        {"PostgreSQL", true, causeQueue, 1, "alarm at 90 %. 41 GB of it are WAL. A logical replication slot is inactive (lag 40 GB)", v1alpha1.CauseReplicationSlot},
		"MySQL":             {"MySQL", true, 0, 0, "alarm at 90 %", v1alpha1.CauseUnknown},
		"no answer":         {"PostgreSQL", false, 0, 2, "alarm at 90 %", ""},
		"storm, PostgreSQL": {"PostgreSQL", true, causeQueue + 1, 0, "alarm at 90 %", ""},
		"storm, MySQL":      {"MySQL", true, causeQueue + 1, 0, "alarm at 90 %", v1alpha1.CauseUnknown},
	} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t)
			c := w.startStorageAlarm(t)
			w.inst.Engine = tc.engine
			if tc.answer {
				w.series = fullOfWAL(w.now)
			}
			c.queues = newQueues(c.decideMarks)
			defer c.queues.shutDown()
			for i := range tc.waiting {
				c.queues.decide.Add(Key{Namespace: "others", Name: strconv.Itoa(i)})
			}
			for range 2 { // the second round finds the change in progress
				if _, err := w.decide(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			s := w.rap().Status
			if len(w.patches) != 1 || len(w.seriesRead) != tc.reads {
				t.Errorf("%d patches, %d reads; want 1 and %d", len(w.patches), len(w.seriesRead), tc.reads)
			}
			record := s.Decisions[len(s.Decisions)-1]
			if !strings.HasSuffix(strings.TrimSuffix(record.Message, ": growing does not fix this"), tc.words) {
				t.Errorf("%q, want %q", record.Message, tc.words)
			}
			if tc.cause == "" && s.Cause != nil || tc.cause != "" && (s.Cause == nil || s.Cause.Name != tc.cause) {
				t.Errorf("cause %+v, want %q", s.Cause, tc.cause)
			}
			warned := slices.ContainsFunc(w.events, func(e autopilot.Event) bool { return e.Reason == string(autopilot.ReasonCauseNotData) })
			if warned != (tc.cause == v1alpha1.CauseReplicationSlot) {
				t.Errorf("warned %t: %v", warned, w.events)
			}
		})
	}
}

// With causeMaxGB the decision depends on the cause. If Cloud Eye does not answer, the volume grows.
func TestCauseMaxGBIsDecidedOnTheCauseOfNow(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  bool
		patches int
	}{"WAL": {true, 0}, "no answer": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				w := newWorld(t)
				c := w.startStorageAlarm(t)
				w.inst.Engine = "PostgreSQL"
				w.usedGB = 92
				w.changeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Spec.Storage.CauseMaxGB = new(int32(100)) })
				if tc.answer {
					w.series = fullOfWAL(w.now)
				}
				if _, err := w.decide(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if len(w.patches) != tc.patches {
					t.Errorf("patches %v: %+v", w.patches, w.rap().Status.Decisions[0])
				}
			})
		})
	}
}
