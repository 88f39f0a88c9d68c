// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestReadOnlyInstanceDoesNotWrite(t *testing.T) {
	type step struct {
		gb   int // 0 keeps the size
		used float64
	}
	for name, c := range map[string]struct {
		gb, before int
		steps      []step
		want       string // used space after each step, R if read-only
	}{
		"the limit in one step":          {40, 10, []step{{0, 39}, {0, 40}, {0, 34.9}, {0, 36}}, "35R 35R 34.9R 34.9R"},
		"97 % of a larger volume":        {500, 10, []step{{0, 500}}, "485R"},
		"30 GB free of 1,000":            {1000, 10, []step{{0, 969}, {0, 999}}, "969 970R"},
		"clean-up, and writes again":     {40, 10, []step{{0, 40}, {0, 30}, {0, 33}}, "35R 30 33"},
		"growth makes it writable":       {40, 10, []step{{0, 40}, {50, 42}, {0, 50}}, "35R 42 45R"},
		"growth that leaves 140 GB free": {1000, 10, []step{{0, 999}, {1110, 1000}, {1120, 1000}}, "970R 970R 1000"},
		"full from the start":            {40, 38, []step{{0, 39}, {0, 38}}, "38R 38R"},
		"full from the start, 50 GB":     {40, 38, []step{{50, 49}, {0, 50}}, "45R 45R"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, Options{Settings: Settings{ReadOnlyStopsWrites: true}})
			in := w.newInstance("rds.mysql.c2.medium", c.gb, Workload{UsedGB: float64(c.before)})
			got := ""
			for _, s := range c.steps {
				w.change(in, func(in *Instance) { in.VolumeGB, in.Workload.UsedGB = max(s.gb, in.VolumeGB), s.used })
				now, _ := w.Instance(in.ID)
				got += fmt.Sprint(" ", now.Workload.UsedGB) + map[bool]string{true: "R"}[now.ReadOnly]
			}
			if got = strings.TrimSpace(got); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestEnlargingMakesAReadOnlyInstanceWritableWhenTheJobEnds(t *testing.T) {
	w := start(t, Options{Settings: Settings{ReadOnlyStopsWrites: true}})
	in := w.newInstance("rds.mysql.c2.medium", 40, Workload{UsedGB: 40})
	w.clock.advance(30 * time.Second) // the job ends between two ticks
	w.act(202, in, enlarge(50))
	w.clock.advance(4 * time.Minute)
	if now, _ := w.Instance(in.ID); now.Status != StatusActive || now.ReadOnly {
		t.Errorf("80 %% used: %s, read-only %v", now.Status, now.ReadOnly)
	}
	w.change(in, func(in *Instance) { in.Workload.UsedGB = 44 })
	if now, _ := w.Instance(in.ID); now.Workload.UsedGB != 44 {
		t.Errorf("%v GB used, want 44", now.Workload.UsedGB)
	}
}
