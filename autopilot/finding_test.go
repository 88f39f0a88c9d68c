// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// lastHour is a series of the last hour with one value.
func lastHour(value float64) []Point {
	var points []Point
	for age := time.Hour; age > 0; age -= LoadPeriod {
		points = append(points, Point{noon().Add(-age), value})
	}
	return points
}

func waitsForDisk() Series {
	return Series{postgresIO: lastHour(98), cpuWait: lastHour(70), cpuUser: lastHour(15), cpuSystem: lastHour(8), postgresLockWaits: lastHour(2)}
}

func enoughMemory() Series { return Series{mysqlSwap: lastHour(0), mysqlHits: lastHour(99.5)} }

func TestFindingOnAFlavorChange(t *testing.T) {
	with := func(s Series, metric string, points []Point) Series { s[metric] = points; return s }
	last := func(value float64) []Point { return append(lastHour(98)[:11], Point{noon(), value}) }
	for _, tc := range []struct {
		name   string
		engine string
		metric v1alpha1.Metric
		load   Series
		want   Reason
	}{
		{"disk", enginePostgreSQL, v1alpha1.MetricCPU, waitsForDisk(), ReasonIOBound},
		{"disk at 94 %", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), postgresIO, lastHour(94)), ""},
		{"the CPU works", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), cpuUser, lastHour(65)), ""},
		{"no series of the wait", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), cpuWait, nil), ""},
		{"20 minutes of data", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), postgresIO, lastHour(98)[:4]), ""},
		{"negative", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), postgresIO, last(-1)), ""},
		{"not a number", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), postgresIO, last(math.NaN())), ""},
		{"above 100 %", enginePostgreSQL, v1alpha1.MetricCPU, with(waitsForDisk(), postgresIO, lastHour(9800)), ""},
		{"disk, but memory is short", enginePostgreSQL, v1alpha1.MetricMemory, waitsForDisk(), ""},
		{"locks of PostgreSQL", enginePostgreSQL, v1alpha1.MetricCPU, Series{postgresLockWaits: lastHour(9)}, ReasonLockBound},
		{"8 locks with 8 vCPUs", enginePostgreSQL, v1alpha1.MetricCPU, Series{postgresLockWaits: lastHour(8)}, ""},
		{"locks of MySQL", engineMySQL, v1alpha1.MetricCPU, Series{mysqlLockWaits: lastHour(9)}, ReasonLockBound},
		{"buffer pool", engineMySQL, v1alpha1.MetricMemory, enoughMemory(), ReasonMemoryNotShort},
		{"swap", engineMySQL, v1alpha1.MetricMemory, with(enoughMemory(), mysqlSwap, last(1)), ""},
		{"no swap known", engineMySQL, v1alpha1.MetricMemory, with(enoughMemory(), mysqlSwap, nil), ""},
		{"hit ratio falls", engineMySQL, v1alpha1.MetricMemory, with(enoughMemory(), mysqlHits, last(90)), ""},
		{"old measurements", engineMySQL, v1alpha1.MetricMemory, with(enoughMemory(), mysqlHits, minutes(noon().Add(-2*time.Hour), 60, func(int) float64 { return 99 })), ""},
		{"sessions are stable", enginePostgreSQL, v1alpha1.MetricMemory, Series{postgresSwap: lastHour(0), postgresSessions: lastHour(40)}, ReasonMemoryNotShort},
		{"sessions rise", enginePostgreSQL, v1alpha1.MetricMemory, Series{postgresSwap: lastHour(0), postgresSessions: last(40)}, ""},
		{"pages stay", engineSQLServer, v1alpha1.MetricMemory, Series{sqlServerPageLife: lastHour(4000), sqlServerGrants: lastHour(0)}, ReasonMemoryNotShort},
		{"pages leave", engineSQLServer, v1alpha1.MetricMemory, Series{sqlServerPageLife: last(200), sqlServerGrants: lastHour(0)}, ""},
		{"queries wait for memory", engineSQLServer, v1alpha1.MetricMemory, Series{sqlServerPageLife: lastHour(4000), sqlServerGrants: lastHour(1)}, ""},
		{"nothing read", engineMySQL, v1alpha1.MetricMemory, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quiet()
			c.Instance.Engine, c.Load = tc.engine, tc.load
			if got := c.findingOn(tc.metric); got.reason != tc.want {
				t.Errorf("%+v, want %q", got, tc.want)
			}
		})
	}
}

func TestFindingIsReportedOrHoldsTheChange(t *testing.T) {
	cpu, memory := usageAt(v1alpha1.MetricCPU, 95), usageAt(v1alpha1.MetricMemory, 95)
	locked := Series{mysqlLockWaits: lastHour(40)}
	for _, tc := range []struct {
		name          string
		onlyIfItHelps bool
		load          Series
		alarms        []Alarm
		reason        Reason
		words         string
	}{
		{"reported", false, locked, []Alarm{cpu}, ReasonAlarmInForce, ". 40 sessions wait for locks, and the instance has 8 vCPUs, so this may not help (LockBound)"},
		{"held", true, locked, []Alarm{cpu}, ReasonLockBound, "The flavor stays rds.mysql.n1.2xlarge.4: 95.0 % CPU used, alarm at 90 %. 40 sessions wait for locks"},
		{"helps", true, Series{mysqlLockWaits: lastHour(1)}, []Alarm{cpu}, ReasonAlarmInForce, "% CPU used, alarm at 90 %"},
		{"not known", true, nil, []Alarm{cpu}, ReasonAlarmInForce, "% CPU used, alarm at 90 %"},
		{"helps the memory", true, locked, []Alarm{cpu, memory}, ReasonAlarmInForce, "so this may not help (LockBound)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quiet().with(tc.alarms...)
			c.Load, c.Spec.Flavor.OnlyIfItHelps = tc.load, tc.onlyIfItHelps
			v := Decide(c)
			d := v.Decisions[0]
			if d.Reason != tc.reason || !strings.Contains(d.Message, tc.words) || (v.Intent != nil) != (tc.reason == ReasonAlarmInForce) {
				t.Errorf("%s: %q, want %s: %q", d.Reason, d.Message, tc.reason, tc.words)
			}
		})
	}
}

func onlyIfItHelps(engine string, load Series) func(*Case) {
	return func(c *Case) {
		c.Instance.Engine, c.Load, c.Spec.Flavor.OnlyIfItHelps = engine, load, true
		for i := range c.Catalogue {
			c.Catalogue[i].Engine = engine
		}
	}
}
