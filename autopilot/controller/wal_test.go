// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// growPostgres lets a volume of PostgreSQL grow, and returns the message of the record.
func growPostgres(t *testing.T, prepare func(*world)) (w *world, message string) {
	t.Helper()
	w = newWorld(t)
	w.now, w.inst.Engine = time.Now(), "PostgreSQL"
	c := w.startAlarm(v1alpha1.MetricStorage)
	w.wal = autopilot.WAL{GB: 41, InactiveSlots: 1}
	prepare(w)
	time.Sleep(time.Until(w.now)) // startAlarm has advanced only the world's clock
	w.run(c)
	w.advance(time.Minute)
	if len(w.patches) != 1 {
		t.Fatalf("patches %v, want one", w.patches)
	}
	records := w.rap().Status.Decisions
	i := slices.IndexFunc(records, func(d v1alpha1.DecisionRecord) bool { return d.Action == string(autopilot.ActionGrowVolume) })
	if i < 0 {
		t.Fatalf("no record of a growth: %+v", records)
	}
	return w, records[i].Message
}

func TestRecordNamesWALOnceAfterAGrowth(t *testing.T) {
	const sentence = "of the 92 GB in use are WAL"
	for name, tc := range map[string]struct {
		prepare  func(*world)
		reads    int
		warnings int
	}{
		"much WAL":       {func(*world) {}, 1, 1},
		"a panic":        {func(w *world) { w.onWAL = func(context.Context) { panic("broken") } }, 1, 0},
		"another engine": {func(w *world) { w.inst.Engine = "MySQL" }, 0, 0},
		"a slow Cloud Eye": {func(w *world) {
			w.onWAL = func(context.Context) {
				time.Sleep(20 * time.Second)
				patches := 0
				w.withLock(func() { patches = len(w.patches) })
				if records := w.rap().Status.Decisions; patches != 1 || len(records) == 0 {
					w.t.Errorf("%d patches and %d records while WAL is read", patches, len(records))
				}
			}
		}, 1, 1},
		"a Cloud Eye that hangs": {func(w *world) {
			w.walErr, w.onWAL = errNoAnswer, func(ctx context.Context) { <-ctx.Done() }
		}, 1, 0},
	} {
		inBubble(t, name, func(t *testing.T) {
			w, message := growPostgres(t, tc.prepare)
			warnings, _ := w.countEvents(string(autopilot.ReasonCauseNotData))
			if len(w.walFrom) != tc.reads || warnings != tc.warnings || strings.Count(message, sentence) != tc.warnings {
				t.Errorf("%d reads, %d warnings, %q; want %d and %d", len(w.walFrom), warnings, message, tc.reads, tc.warnings)
			}
			if tc.reads > 0 && w.walFrom[0] != "rds_cluster_id:in01" {
				t.Errorf("read from %v, want the dimension of the rule", w.walFrom)
			}
		})
	}
}
