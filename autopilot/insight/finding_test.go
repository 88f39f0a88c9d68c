// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// lastHour returns a series of the last hour with the same value throughout.
func lastHour(value float64) []autopilot.Point {
	var points []autopilot.Point
	for age := time.Hour; age > 0; age -= LoadPeriod {
		points = append(points, autopilot.Point{Time: cases.Noon().Add(-age), Value: value})
	}
	return points
}

func waitsForDisk() autopilot.Series {
	return autopilot.Series{postgresIO: lastHour(98), cpuWait: lastHour(70), cpuUser: lastHour(15), cpuSystem: lastHour(8), postgresLockWaits: lastHour(2)}
}

func enoughMemory() autopilot.Series {
	return autopilot.Series{mysqlSwap: lastHour(0), mysqlHits: lastHour(99.5)}
}

func TestFindingOnAFlavorChange(t *testing.T) {
	with := func(s autopilot.Series, metric string, points []autopilot.Point) autopilot.Series {
		s[metric] = points
		return s
	}
	last := func(value float64) []autopilot.Point {
		return append(lastHour(98)[:11], autopilot.Point{Time: cases.Noon().Add(-LoadPeriod), Value: value})
	}
	for _, tc := range []struct {
		name   string
		engine string
		metric v1alpha1.Metric
		load   autopilot.Series
		want   autopilot.Reason
	}{
		{"disk", enginePostgreSQL, v1alpha1.MetricCPU, waitsForDisk(), autopilot.ReasonIOBound},
		{"disk at 94 %", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), postgresIO, lastHour(94)), ""},
		{"the CPU is used", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), cpuUser, lastHour(65)), ""},
		{"no series of the wait", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), cpuWait, nil), ""},
		{"20 minutes of data", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), postgresIO, lastHour(98)[:4]), ""},
		{"above 100 %", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), postgresIO, lastHour(9800)), ""},
		{"locks of PostgreSQL", enginePostgreSQL, v1alpha1.MetricCPU, autopilot.Series{postgresLockWaits: lastHour(9)}, autopilot.ReasonLockBound},
		{"1.1 locks for each of 8 vCPUs", enginePostgreSQL, v1alpha1.MetricCPU, autopilot.Series{postgresLockWaits: lastHour(8.8)}, ""},
		{"more than 1.1 locks for each of 8 vCPUs", engineMySQL, v1alpha1.MetricCPU, autopilot.Series{mysqlLockWaits: lastHour(8.9)}, autopilot.ReasonLockBound},
		{"a huge number of locks", engineMySQL, v1alpha1.MetricCPU, autopilot.Series{mysqlLockWaits: lastHour(1e300)}, ""},
		{"locks hours ahead", engineMySQL, v1alpha1.MetricCPU, autopilot.Series{mysqlLockWaits: minutes(cases.Noon().Add(3*time.Hour), 60, func(int) float64 { return 9 })}, ""},
		{"buffer pool", engineMySQL, v1alpha1.MetricMemory, enoughMemory(), autopilot.ReasonMemoryNotShort},
		{"swap", engineMySQL, v1alpha1.MetricMemory, with(enoughMemory(), mysqlSwap, last(1)), ""},
		{"hit ratio falls", engineMySQL, v1alpha1.MetricMemory, with(enoughMemory(), mysqlHits, last(90)), ""},
		{"old measurements", engineMySQL, v1alpha1.MetricMemory, with(enoughMemory(), mysqlHits, minutes(cases.Noon().Add(-2*time.Hour), 60, func(int) float64 { return 99 })), ""},
		{"sessions are stable", enginePostgreSQL, v1alpha1.MetricMemory, autopilot.Series{postgresSwap: lastHour(0), postgresSessions: lastHour(40)}, autopilot.ReasonMemoryNotShort},
		{"sessions rise", enginePostgreSQL, v1alpha1.MetricMemory, autopilot.Series{postgresSwap: lastHour(0), postgresSessions: last(40)}, ""},
		{"pages stay", engineSQLServer, v1alpha1.MetricMemory, autopilot.Series{sqlServerPageLife: lastHour(4000), sqlServerGrants: lastHour(0)}, autopilot.ReasonMemoryNotShort},
		{"pages do not stay", engineSQLServer, v1alpha1.MetricMemory, autopilot.Series{sqlServerPageLife: last(200), sqlServerGrants: lastHour(0)}, ""},
		{"queries wait for memory", engineSQLServer, v1alpha1.MetricMemory, autopilot.Series{sqlServerPageLife: lastHour(4000), sqlServerGrants: lastHour(1)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inst := autopilot.Instance{Engine: tc.engine, VCPUs: 8}
			f, ok := findingOn(inst, tc.load, tc.metric, cases.Noon())
			if f.Reason != string(tc.want) || ok != (tc.want != "") || ok && (f.Metric != tc.metric || f.Message == "") {
				t.Errorf("%+v, want %q", f, tc.want)
			}
		})
	}
}

// minutes returns one measurement a minute that ends at end.
func minutes(end time.Time, n int, value func(minute int) float64) []autopilot.Point {
	var points []autopilot.Point
	for i := range n {
		points = append(points, autopilot.Point{Time: end.Add(time.Duration(i-n+1) * time.Minute), Value: value(i)})
	}
	return points
}
