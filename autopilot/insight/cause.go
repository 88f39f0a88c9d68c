// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// causeSpan is how far back the growth of the used space is compared with the growth of its parts. A day at 5
	// minutes is 288 values of each series, and one request returns 3,000 at most.
	causeSpan = 24 * time.Hour
	// CausePeriod is the period of the averages from which a cause is found. The audit log has one value in 5 minutes.
	CausePeriod = 5 * time.Minute
	// causeStale is how old the newest value of a series may be, as for a decision.
	causeStale = 30 * time.Minute
	// causeUsed is the share of the used space, in percent, from which a part counts as the cause.
	causeUsed = 25
	// causeLeast is the least share of the used space, in percent, of a part that is named. Growing parts below it are
	// not what fills the volume.
	causeLeast = 5
	// causeGrowth is the share of the growth, in percent, from which a part counts as the cause.
	causeGrowth = 50
	// causeGrowthGB is the smallest growth of the used space that is divided into shares. Noise would decide below it.
	causeGrowthGB = 1
	// causeGrowthShare is the smallest such growth in percent of the volume: 2 GB of 100 GB. A gigabyte of 1,800 is no
	// growth that fills a volume.
	causeGrowthShare = 2
	// slotShare is the part of the WAL, in percent, from which the lag of a slot explains it.
	slotShare = 50
	// mostLag is how many times the WAL a lag may be. A larger one is in another unit.
	mostLag = 2
	// longTransaction is how old a transaction must be that keeps PostgreSQL from reusing space.
	longTransaction = 6 * time.Hour
	// oldestTransaction is the age from which a value cannot be true.
	oldestTransaction = 365 * 24 * time.Hour
	// causeHolds is how long a cause that cannot be read again is still reported as a problem: three failed looks.
	causeHolds = 3 * time.Hour
	megabytes  = 1024.0 // in a GB, as Cloud Eye counts
)

// Cloud Eye's names of the metrics that tell the cause of a full disk (RDS umn: configuring_displayed_metrics.rst).
const (
	usedSpaceGB      = "rds048_disk_used_size"
	walMB            = "rds040_transaction_logs_usage"
	slotFilesMB      = "rds041_replication_slot_usage"
	slotLagMB        = "rds045_oldest_replication_slot_lag"
	inactiveSlots    = "inactive_logical_replication_slot"
	tempBytesPerMin  = "temporary_files_generation_size"
	oldestMilliSecs  = "oldest_transaction_duration"
	auditGB          = "pgaudit_log_size"
	tempDBMB         = "mssql_tempdb_disk_size"
	enginePostgreSQL = "PostgreSQL"
	engineMySQL      = "MySQL"
	engineSQLServer  = "SQLServer"
)

// CauseMetrics returns Cloud Eye's names of the metrics that CauseOf reads, or nothing if the engine has none.
func CauseMetrics(engine string) []string {
	switch engine {
	case enginePostgreSQL:
		return []string{usedSpaceGB, walMB, slotFilesMB, slotLagMB, inactiveSlots, tempBytesPerMin, oldestMilliSecs, auditGB}
	case engineSQLServer:
		return []string{usedSpaceGB, tempDBMB}
	}
	return nil
}

// CauseLostWithout returns a sentence that says what CauseOf cannot recognise if Cloud Eye lacks a metric of
// CauseMetrics.
func CauseLostWithout(metric string) string {
	cannot := func(name v1alpha1.CauseName) string {
		return fmt.Sprintf("the cause %s cannot be recognised", name)
	}
	switch metric {
	case walMB:
		return cannot(v1alpha1.CauseWAL)
	case slotFilesMB:
		return cannot(v1alpha1.CauseReplicationSlot) + " by the slot's files"
	case slotLagMB:
		return cannot(v1alpha1.CauseReplicationSlot) + " by its WAL, and is reported as WAL"
	case inactiveSlots:
		return fmt.Sprintf("the cause %s cannot say whether the slot is inactive", v1alpha1.CauseReplicationSlot)
	case tempBytesPerMin, tempDBMB:
		return cannot(v1alpha1.CauseTempFiles)
	case oldestMilliSecs:
		return cannot(v1alpha1.CauseLongTransaction)
	case auditGB:
		return cannot(v1alpha1.CauseAuditLog)
	}
	return "no cause can be recognised"
}

// CausePage returns the path of the runbook page of a cause, relative to the root of the repository.
func CausePage(name v1alpha1.CauseName) string { return "docs/runbooks/causes/" + string(name) + ".md" }

// part is a part of the used space with a metric of its own.
type part struct {
	cause    v1alpha1.CauseName
	metric   string
	perGB    float64 // how many of the metric's units are a GB
	sentence string  // what the part is
}

func parts() []part {
	return []part{
		{v1alpha1.CauseWAL, walMB, megabytes, "WAL"},
		{v1alpha1.CauseReplicationSlot, slotFilesMB, megabytes, "files of replication slots"},
		{v1alpha1.CauseAuditLog, auditGB, 1, "audit logs"},
		{v1alpha1.CauseTempFiles, tempDBMB, megabytes, "tempdb"},
	}
}

// CauseOf returns what fills the volume of an instance, from the series of CauseMetrics. A series that is missing, or
// whose value cannot be true, counts as not known. CauseOf is a pure function.
func CauseOf(inst autopilot.Instance, s autopilot.Series, now time.Time) v1alpha1.Cause {
	c := causeOf(inst, credible(s, inst, now))
	c.Time = *autopilot.Seconds(now)
	return c
}

func causeOf(inst autopilot.Instance, s autopilot.Series) v1alpha1.Cause {
	unknown := v1alpha1.Cause{Name: v1alpha1.CauseUnknown}
	if len(CauseMetrics(inst.Engine)) == 0 {
		unknown.Message = fmt.Sprintf("The cause is not known: Cloud Eye has no metric of what fills a %s volume",
			inst.Engine)
		return unknown
	}
	used, ok := s.Newest(usedSpaceGB)
	if !ok || used.Value == 0 {
		unknown.Message = "The cause is not known: Cloud Eye has no used space"
		return unknown
	}
	first := s[usedSpaceGB][0]
	growth := used.Value - first.Value
	if growth < float64(causeGrowthShare*inst.VolumeGB)/100 {
		growth = 0
	}
	best, most, known := v1alpha1.Cause{}, int32(0), false
	for _, p := range parts() {
		size, ok := sizeOf(s, p, used.Value)
		if !ok {
			continue
		}
		known = true
		of := percentOf(size, used.Value)
		ofGrowth := int32(0)
		was := s[p.metric][0]
		if growth >= causeGrowthGB && was.Value > 0 && was.Time.Equal(first.Time) {
			ofGrowth = percentOf(size-was.Value/p.perGB, growth)
		}
		if of >= causeLeast && (of >= causeUsed || ofGrowth >= causeGrowth) && of+ofGrowth > most {
			most = of + ofGrowth
			best = v1alpha1.Cause{
				Name: p.cause, UsedPercent: of,
				Message: fmt.Sprintf("%.0f GB of it are %s", size, p.sentence),
			}
		}
	}
	switch {
	case best.Name == v1alpha1.CauseWAL:
		return explainWAL(best, inst, s)
	case best.Name != "":
		best.Message += ": growing does not fix this"
		if best.Name == v1alpha1.CauseReplicationSlot {
			best.Message += keepsWAL(inst)
		}
		return best
	}
	if c, ok := otherCause(s, used.Value, growth); ok {
		return c
	}
	if !known {
		unknown.Message = "The cause is not known: Cloud Eye has none of the metrics that tell it"
		return unknown
	}
	return v1alpha1.Cause{Name: v1alpha1.CauseData,
		Message: "Nothing that Cloud Eye measures beside the data is large or grows"}
}

// sizeOf returns the size of a part in GB. ok is false if it is not known, or larger than the used space.
func sizeOf(s autopilot.Series, p part, usedGB float64) (size float64, ok bool) {
	newest, ok := s.Newest(p.metric)
	size = newest.Value / p.perGB
	return size, ok && size <= usedGB
}

// explainWAL returns ReplicationSlot instead of WAL if the lag of a slot explains the WAL.
func explainWAL(c v1alpha1.Cause, inst autopilot.Instance, s autopilot.Series) v1alpha1.Cause {
	wal, _ := s.Newest(walMB)
	lag, ok := s.Newest(slotLagMB)
	if !ok || lag.Value < slotShare*wal.Value/100 || lag.Value > mostLag*wal.Value {
		c.Message += ": growing does not fix this" + keepsWAL(inst)
		return c
	}
	c.Name = v1alpha1.CauseReplicationSlot
	slot := "The farthest replica or slot lags"
	inactive, ok := s.Newest(inactiveSlots)
	if ok && inactive.Value >= 1 {
		slot = "A logical replication slot is inactive"
	}
	c.Message += fmt.Sprintf(". %s (lag %.0f GB): growing does not fix this", slot, lag.Value/megabytes) + keepsWAL(inst)
	return c
}

// otherCause returns a cause whose metric is no size.
func otherCause(s autopilot.Series, usedGB, growthGB float64) (c v1alpha1.Cause, ok bool) {
	if growthGB < causeGrowthGB {
		return c, false
	}
	oldest, ok := s.Newest(oldestMilliSecs)
	age := time.Duration(min(oldest.Value, float64(2*oldestTransaction.Milliseconds()))) * time.Millisecond
	if ok && age >= longTransaction && age <= oldestTransaction {
		return v1alpha1.Cause{Name: v1alpha1.CauseLongTransaction, Message: fmt.Sprintf(
			"A transaction has been open since %s, so the database cannot reuse the space of old rows: growing does not fix this",
			autopilot.TimeText(oldest.Time.Add(-age)))}, true
	}
	written, now := 0.0, s[usedSpaceGB][len(s[usedSpaceGB])-1].Time
	for _, p := range s[tempBytesPerMin] {
		if p.Value >= 0 && now.Sub(p.Time) < time.Hour {
			written += p.Value * CausePeriod.Minutes() / 1e9
		}
	}
	if of := percentOf(written, usedGB); of >= causeUsed {
		return v1alpha1.Cause{Name: v1alpha1.CauseTempFiles, UsedPercent: of, Message: fmt.Sprintf(
			"%.0f GB of temporary files were written in the hour before %s: growing does not fix this", written,
			autopilot.TimeText(now))}, true
	}
	return c, false
}

// percentOf returns a share from 0 to 100 percent.
func percentOf(of, all float64) int32 { return int32(max(0, min(100*of/all, 100))) }

// CauseSince returns the begin of the series for CauseOf: the end of the last growth, but at most a day ago.
func CauseSince(c autopilot.Case) time.Time {
	since := c.Now.Add(-causeSpan)
	if grown, ok := autopilot.LastChanged(c.Status.Changes, v1alpha1.KindVolume); ok && grown.After(since) {
		return grown
	}
	return since
}

// causeWarning returns a warning if something other than data fills the volume.
func causeWarning(c autopilot.Case) []autopilot.Warning {
	if c.Status.Insight == nil || c.Status.Insight.Cause == nil {
		return nil
	}
	found := c.Status.Insight.Cause
	if !isCulprit(found) || c.Now.Sub(found.Time.Time) >= causeHolds {
		return nil
	}
	return []autopilot.Warning{{Reason: autopilot.ReasonCauseNotData, Message: fmt.Sprintf(
		"Storage has %d GB, and something other than data fills it (%s). %s. See %s",
		c.Instance.VolumeGB, found.Name, found.Message, CausePage(found.Name))}}
}

// isCulprit reports whether something other than data fills the volume.
func isCulprit(found *v1alpha1.Cause) bool {
	return found != nil && found.Name != v1alpha1.CauseData && found.Name != v1alpha1.CauseUnknown
}

// keepsWAL returns the sentence that a read replica of PostgreSQL may keep WAL on its primary; empty without a replica.
func keepsWAL(inst autopilot.Instance) string {
	if inst.Engine != "PostgreSQL" || len(inst.Replicas) == 0 {
		return ""
	}
	var names []string
	for _, r := range inst.Replicas {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return ". A read replica that is full or lags makes its primary keep WAL: check " + strings.Join(names, ", ")
}
