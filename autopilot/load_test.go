// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestLoadOf(t *testing.T) {
	s := Series{"rds001_cpu_util": lastHour(95.25), "rds072_conn_usage": lastHour(40), "rds002_mem_util": lastHour(-1)}
	if got := LoadOf(s, noon()); got == nil || *got != (v1alpha1.Load{CPUPercent: "95.2", ConnectionsPercent: "40.0"}) {
		t.Errorf("%+v", got)
	}
	if got := LoadOf(nil, noon()); got != nil {
		t.Errorf("%+v without a series", got)
	}
	for _, engine := range []string{enginePostgreSQL, engineMySQL, engineSQLServer} {
		if n := len(LoadMetrics(engine)); n > 10 {
			t.Errorf("%d metrics of %s do not fit in one request", n, engine)
		}
	}
}

func TestLoadAfterAFlavorIsRecordedOnce(t *testing.T) {
	for _, tc := range []struct {
		name   string
		age    time.Duration
		change func(*v1alpha1.Change)
		want   bool
	}{
		{"69 minutes", 69 * time.Minute, nil, false},
		{"70 minutes", 70 * time.Minute, nil, true},
		{"2 hours", 2 * time.Hour, nil, false},
		{"recorded", 75 * time.Minute, func(ch *v1alpha1.Change) { ch.After = &v1alpha1.Load{CPUPercent: "50.0"} }, false},
		{"not known before", 75 * time.Minute, func(ch *v1alpha1.Change) { ch.Before = nil }, false},
		{"lost", 75 * time.Minute, func(ch *v1alpha1.Change) { ch.Outcome = v1alpha1.OutcomeLost }, false},
		{"by others", 75 * time.Minute, func(ch *v1alpha1.Change) { ch.By = v1alpha1.ByOther }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ch := completedFlavor(tc.age)
			ch.By, ch.Before = v1alpha1.ByAutopilot, &v1alpha1.Load{CPUPercent: "95.0"}
			if tc.change != nil {
				tc.change(&ch)
			}
			c := quiet()
			c.Status.Changes = []v1alpha1.Change{ch}
			if c.NeedsLoadAfter() != tc.want {
				t.Fatalf("needed %t, want %t", !tc.want, tc.want)
			}
			if !tc.want {
				return
			}
			before := c.Status.Changes
			c.RecordLoadAfter(Series{"rds001_cpu_util": lastHour(45)})
			if got := c.Status.Changes[0].After; got == nil || got.CPUPercent != "45.0" || before[0].After != nil || c.NeedsLoadAfter() {
				t.Errorf("%+v, former %+v", got, before[0].After)
			}
		})
	}
}

// A flavor that lowered the load for an hour has helped, even if the alarm came back at the former value.
func TestLoadAfterAFlavorCountsAsItsEffect(t *testing.T) {
	for name, tc := range map[string]struct {
		after *v1alpha1.Load
		want  Reason
	}{
		"not known":      {nil, ReasonNoEffect},
		"as before":      {&v1alpha1.Load{CPUPercent: "93.0"}, ReasonNoEffect},
		"lower":          {&v1alpha1.Load{CPUPercent: "60.0"}, ReasonAlarmInForce},
		"memory only":    {&v1alpha1.Load{MemoryPercent: "60.0"}, ReasonNoEffect},
		"cannot be read": {&v1alpha1.Load{CPUPercent: "?"}, ReasonNoEffect},
	} {
		t.Run(name, func(t *testing.T) {
			c := quiet().with(usageAt(v1alpha1.MetricCPU, 95))
			both(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "97.0"))(&c)
			c.Status.Changes[0].After = tc.after
			if d := Decide(c).Decisions[0]; d.Reason != tc.want {
				t.Errorf("%s (%s), want %s", d.Reason, d.Message, tc.want)
			}
		})
	}
}
