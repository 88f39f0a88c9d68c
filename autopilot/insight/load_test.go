// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

func TestLoadOfAveragesAnHour(t *testing.T) {
	s := autopilot.Series{"rds001_cpu_util": lastHour(95.25), "rds002_mem_util": lastHour(-1)}
	if got := LoadOf(s, cases.Noon()); got == nil || *got != (v1alpha1.Load{CPUPercent: "95.2"}) {
		t.Errorf("%+v", got)
	}
	if got := LoadOf(nil, cases.Noon()); got != nil {
		t.Errorf("%+v without a series", got)
	}
	for _, engine := range []string{enginePostgreSQL, engineMySQL, engineSQLServer} {
		if n := len(LoadMetrics(engine)); n > 10 {
			t.Errorf("%d metrics of %s do not fit in one request", n, engine)
		}
	}
}

// A look may come up to three hours after the change, so its series holds more than one hour.
func TestLoadOfCountsOnlyTheHourBeforeItsEnd(t *testing.T) {
	end := cases.Noon().Add(-2 * time.Hour)
	s := autopilot.Series{"rds001_cpu_util": minutes(cases.Noon(), 240, func(minute int) float64 {
		at := cases.Noon().Add(time.Duration(minute-239) * time.Minute)
		if at.Before(end.Add(-LoadSpan)) || !at.Before(end) {
			return 10
		}
		return 95
	})}
	if got := LoadOf(s, end); got == nil || got.CPUPercent != "95.0" {
		t.Errorf("%+v, want 95.0 %% CPU", got)
	}
}
