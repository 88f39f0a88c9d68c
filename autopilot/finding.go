// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// LoadSpan is the time before a decision from which a finding is computed.
	LoadSpan = time.Hour
	// LoadPeriod is the period of the averages that a finding needs.
	LoadPeriod = 5 * time.Minute
	// loadFewest is the minimum number of averages. With fewer there is no finding.
	loadFewest = 6
	// busyDisk is the I/O in percent from which the disk limits the database.
	busyDisk = 95
	// steadyPoints is the difference in percentage points up to which a ratio counts as stable.
	steadyPoints = 2
	// shortPageLife is the page life expectancy in seconds below which SQL Server lacks memory.
	shortPageLife = 300
)

// Cloud Eye's names of the metrics that show whether a larger flavor can help (RDS umn:
// configuring_displayed_metrics.rst).
const (
	cpuUser           = "cpu_user_usage"
	cpuSystem         = "cpu_sys_usage"
	cpuWait           = "cpu_wait_usage"
	postgresIO        = "disk_io_usage"
	postgresLockWaits = "lock_waiting_sessions"
	postgresSwap      = "swap_usage"
	postgresSessions  = "rds083_conn_usage"
	mysqlSessions     = "rds072_conn_usage"
	mysqlLockWaits    = "rds_innodb_row_lock_current_waits"
	mysqlSwap         = "sys_swap_usage"
	mysqlHits         = "rds011_innodb_buf_hit"
	sqlServerPageLife = "mssql_page_life_expectancy"
	sqlServerGrants   = "mssql_mem_grant_pending"
)

// LoadMetrics returns Cloud Eye's names of the metrics from which findings and loads are computed. There are at most
// ten.
func LoadMetrics(engine string) []string {
	usage := []string{metricRow(v1alpha1.MetricCPU).CloudEye, metricRow(v1alpha1.MetricMemory).CloudEye}
	switch engine {
	case enginePostgreSQL:
		return append(usage, cpuUser, cpuSystem, cpuWait, postgresIO, postgresLockWaits, postgresSwap, postgresSessions)
	case engineMySQL:
		return append(usage, mysqlLockWaits, mysqlSwap, mysqlHits, mysqlSessions)
	case engineSQLServer:
		return append(usage, sqlServerPageLife, sqlServerGrants)
	}
	return usage
}

// finding says why a larger flavor may not help. The zero value means that nothing is known against it.
type finding struct {
	reason Reason
	text   string
}

// findingOn returns the finding for one metric, from the averages of the last hour. A series that is missing, too short
// or impossible leads to none.
func (c Case) findingOn(m v1alpha1.Metric) finding {
	load := func(metric string) (r reading, ok bool) { return readingOf(c.Load[metric], metric, c.Now) }
	lockWaits := func(metric string) finding {
		if waits, ok := load(metric); ok && c.Instance.VCPUs > 0 && waits.mean > float64(c.Instance.VCPUs) {
			return finding{ReasonLockBound, fmt.Sprintf("%.0f sessions wait for locks, and the instance has %d vCPUs",
				waits.mean, c.Instance.VCPUs)}
		}
		return finding{}
	}
	switch {
	case c.Instance == nil:
	case m == v1alpha1.MetricCPU && c.Instance.Engine == enginePostgreSQL:
		disk, ok1 := load(postgresIO)
		wait, ok2 := load(cpuWait)
		user, ok3 := load(cpuUser)
		system, ok4 := load(cpuSystem)
		if ok1 && ok2 && ok3 && ok4 && disk.mean >= busyDisk && wait.mean > user.mean+system.mean {
			return finding{ReasonIOBound, fmt.Sprintf("The I/O is at %.0f %%, and the CPU waits for it %.0f %% of the time",
				disk.mean, wait.mean)}
		}
		return lockWaits(postgresLockWaits)
	case m == v1alpha1.MetricCPU && c.Instance.Engine == engineMySQL:
		return lockWaits(mysqlLockWaits)
	case m == v1alpha1.MetricMemory && c.Instance.Engine == enginePostgreSQL:
		swap, ok1 := load(postgresSwap)
		sessions, ok2 := load(postgresSessions)
		if ok1 && ok2 && swap.highest == 0 && sessions.isSteady() {
			return finding{ReasonMemoryNotShort, fmt.Sprintf("No memory is swapped, and the connections are stable at %.0f %%",
				sessions.mean)}
		}
	case m == v1alpha1.MetricMemory && c.Instance.Engine == engineMySQL:
		swap, ok1 := load(mysqlSwap)
		hits, ok2 := load(mysqlHits)
		if ok1 && ok2 && swap.highest == 0 && hits.isSteady() {
			return finding{ReasonMemoryNotShort, fmt.Sprintf("No memory is swapped, and the buffer pool has a stable hit ratio of %.0f %%", hits.mean)}
		}
	case m == v1alpha1.MetricMemory && c.Instance.Engine == engineSQLServer:
		life, ok1 := load(sqlServerPageLife)
		grants, ok2 := load(sqlServerGrants)
		if ok1 && ok2 && life.lowest >= shortPageLife && grants.highest == 0 {
			return finding{ReasonMemoryNotShort, fmt.Sprintf("Pages stay in memory for %.0f seconds or longer, and no query waits for memory", life.lowest)}
		}
	}
	return finding{}
}

// findingsOn returns what is known against a larger flavor for these alarms. helpsNone means that this holds for each
// of them.
func (c Case) findingsOn(alarms []Alarm) (found []finding, helpsNone bool) {
	for _, a := range alarms {
		if f := c.findingOn(a.Metric); f.reason != "" {
			found = append(found, f)
		}
	}
	return found, len(found) == len(alarms)
}

// checkFinding prevents a change that does not help, if spec.flavor.onlyIfItHelps demands that.
func (c Case) checkFinding(d Decision, alarms []Alarm) (Decision, bool) {
	found, helpsNone := c.findingsOn(alarms)
	if !helpsNone || !c.Spec.Flavor.OnlyIfItHelps {
		return d, false
	}
	return d.decline(found[0].reason, findingRequeue,
		"The flavor stays %s: %s. %s, so a larger flavor does not help (spec.flavor.onlyIfItHelps)",
		c.Instance.Flavor, c.usage(alarms), textOf(found)), true
}

// textOf returns the findings as sentences without the last full stop.
func textOf(found []finding) string {
	var texts []string
	for _, f := range found {
		texts = append(texts, f.text)
	}
	return strings.Join(texts, ". ")
}

// reading sums up a series of the last hour.
type reading struct{ mean, lowest, highest float64 }

func (r reading) isSteady() bool { return r.highest-r.lowest <= steadyPoints }

// readingOf returns ok false if the series is too short, too old or holds a value that cannot be true.
func readingOf(points []Point, metric string, now time.Time) (r reading, ok bool) {
	points = slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return now.Sub(p.Time) > LoadSpan+staleGrace })
	if len(points) < loadFewest {
		return r, false
	}
	isPercent := !slices.Contains([]string{postgresLockWaits, mysqlLockWaits, sqlServerPageLife, sqlServerGrants}, metric)
	r.lowest = math.Inf(1)
	for _, p := range points {
		if !(p.Value >= 0) || math.IsInf(p.Value, 0) || isPercent && p.Value > 100 {
			return reading{}, false
		}
		r.mean += p.Value / float64(len(points))
		r.lowest, r.highest = min(r.lowest, p.Value), max(r.highest, p.Value)
	}
	return r, true
}
