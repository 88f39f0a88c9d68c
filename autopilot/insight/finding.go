// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// LoadSpan is the time before a decision from which a finding is computed, and the time that a load is averaged over.
	LoadSpan = time.Hour
	// LoadPeriod is the period of the averages that a finding needs.
	LoadPeriod = 5 * time.Minute
	// loadFewest is the minimum number of averages. With fewer there is no finding.
	loadFewest = 6
	// busyDisk is the I/O in percent from which the disk limits the database.
	busyDisk = 95
	// steadyPoints is the difference in percentage points up to which a ratio counts as stable.
	steadyPoints = 2
	// lockMargin is how many waiting sessions for each vCPU count as a limit. At exactly one, rounding would decide.
	lockMargin = 1.1
	// mostWaiting is the largest value that can be true: of sessions, of queries and of seconds, which are 31 years.
	mostWaiting = 1e9
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
	usage := []string{autopilot.Row(v1alpha1.MetricCPU).CloudEye, autopilot.Row(v1alpha1.MetricMemory).CloudEye}
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

// findingOn returns why a larger flavor may not help against the alarm of a metric, from the averages of the hour
// before end. ok is false if nothing is known against it. A series that is missing, too short or impossible leads to no
// finding.
func findingOn(inst autopilot.Instance, s autopilot.Series, m v1alpha1.Metric, end time.Time) (f v1alpha1.Finding, ok bool) {
	load := func(metric string) (r reading, ok bool) { return readingOf(s[metric], metric, end) }
	found := func(r autopilot.Reason, format string, args ...any) (v1alpha1.Finding, bool) {
		return v1alpha1.Finding{Metric: m, Reason: string(r), Message: fmt.Sprintf(format, args...)}, true
	}
	lockWaits := func(metric string) (v1alpha1.Finding, bool) {
		waits, ok := load(metric)
		if !ok || inst.VCPUs <= 0 || waits.mean <= lockMargin*float64(inst.VCPUs) {
			return f, false
		}
		return found(autopilot.ReasonLockBound, "%.0f sessions wait for locks, and the instance has %d vCPUs", waits.mean,
			inst.VCPUs)
	}
	switch {
	case m == v1alpha1.MetricCPU && inst.Engine == enginePostgreSQL:
		disk, ok1 := load(postgresIO)
		wait, ok2 := load(cpuWait)
		user, ok3 := load(cpuUser)
		system, ok4 := load(cpuSystem)
		if ok1 && ok2 && ok3 && ok4 && disk.mean >= busyDisk && wait.mean > user.mean+system.mean {
			return found(autopilot.ReasonIOBound, "The I/O is at %.0f %%, and the CPU waits for it %.0f %% of the time",
				disk.mean, wait.mean)
		}
		return lockWaits(postgresLockWaits)
	case m == v1alpha1.MetricCPU && inst.Engine == engineMySQL:
		return lockWaits(mysqlLockWaits)
	case m == v1alpha1.MetricMemory && inst.Engine == enginePostgreSQL:
		swap, ok1 := load(postgresSwap)
		sessions, ok2 := load(postgresSessions)
		if ok1 && ok2 && swap.highest == 0 && sessions.isSteady() {
			return found(autopilot.ReasonMemoryNotShort, "No memory is swapped, and the connections are stable at %.0f %%",
				sessions.mean)
		}
	case m == v1alpha1.MetricMemory && inst.Engine == engineMySQL:
		swap, ok1 := load(mysqlSwap)
		hits, ok2 := load(mysqlHits)
		if ok1 && ok2 && swap.highest == 0 && hits.isSteady() {
			return found(autopilot.ReasonMemoryNotShort,
				"No memory is swapped, and the buffer pool has a stable hit ratio of %.0f %%", hits.mean)
		}
	case m == v1alpha1.MetricMemory && inst.Engine == engineSQLServer:
		life, ok1 := load(sqlServerPageLife)
		grants, ok2 := load(sqlServerGrants)
		if ok1 && ok2 && life.lowest >= shortPageLife && grants.highest == 0 {
			return found(autopilot.ReasonMemoryNotShort,
				"Pages stay in memory for %.0f seconds or longer, and no query waits for memory", life.lowest)
		}
	}
	return f, false
}

// Findings returns what is known against a larger flavor for the sake of these metrics, from the series of LoadMetrics
// in the hour before end.
func Findings(inst autopilot.Instance, s autopilot.Series, metrics []v1alpha1.Metric, end time.Time) []v1alpha1.Finding {
	var found []v1alpha1.Finding
	for _, m := range metrics {
		if f, ok := findingOn(inst, s, m, end); ok {
			found = append(found, f)
		}
	}
	return found
}

// reading sums up a series over an hour.
type reading struct{ mean, lowest, highest float64 }

func (r reading) isSteady() bool { return r.highest-r.lowest <= steadyPoints }

// readingOf sums up the averages that began in the hour before end. Later ones belong to another flavor. It returns ok
// false if there are too few, or one of them cannot be true.
func readingOf(points []autopilot.Point, metric string, end time.Time) (r reading, ok bool) {
	points = slices.DeleteFunc(slices.Clone(points), func(p autopilot.Point) bool {
		return p.Time.Before(end.Add(-LoadSpan)) || !p.Time.Before(end)
	})
	if len(points) < loadFewest {
		return r, false
	}
	isPercent := !slices.Contains([]string{postgresLockWaits, mysqlLockWaits, sqlServerPageLife, sqlServerGrants}, metric)
	r.lowest = math.Inf(1)
	for _, p := range points {
		if !(p.Value >= 0) || p.Value > mostWaiting || isPercent && p.Value > 100 {
			return reading{}, false
		}
		r.mean += p.Value / float64(len(points))
		r.lowest, r.highest = min(r.lowest, p.Value), max(r.highest, p.Value)
	}
	return r, true
}
