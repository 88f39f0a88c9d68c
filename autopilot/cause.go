// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

const (
	// causeSpan is how far back the growth of the used space is compared with the growth of its parts. A day at 5
	// minutes is 288 values of each series, and one request returns 3,000 at most.
	causeSpan = 24 * time.Hour
	// CausePeriod is the period of the averages from which a cause is found. The audit log has one value in 5 minutes.
	CausePeriod = 5 * time.Minute
	// causeUsed is the share of the used space, in percent, from which a part counts as the cause.
	causeUsed = 25
	// causeGrowth is the share of the growth, in percent, from which a part counts as the cause.
	causeGrowth = 50
	// causeGrowthGB is the smallest growth of the used space that is divided into shares. Noise would decide below it.
	causeGrowthGB = 1
	// slotShare is the part of the WAL, in percent, from which the lag of a slot explains it.
	slotShare = 50
	// mostLag is how many times the WAL a lag may be. A larger one is in another unit.
	mostLag = 2
	// longTransaction is how old a transaction must be that keeps PostgreSQL from reusing space.
	longTransaction = 6 * time.Hour
	// oldestTransaction is the age from which a value cannot be true.
	oldestTransaction = 365 * 24 * time.Hour
	// causeKept is how long a cause that was found explains a held growth, before the metrics are read again.
	causeKept = time.Hour
	// causeHolds is how long a cause that is not data is reported as a problem.
	causeHolds = 24 * time.Hour
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
func CauseOf(inst Instance, s Series, now time.Time) v1alpha1.Cause {
	c := causeOf(inst, s)
	c.Time = *seconds(now)
	return c
}

func causeOf(inst Instance, s Series) v1alpha1.Cause {
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
	best, known := v1alpha1.Cause{}, false
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
		if (of >= causeUsed || ofGrowth >= causeGrowth) && of+ofGrowth > best.UsedPercent+best.GrowthPercent {
			best = v1alpha1.Cause{
				Name: p.cause, GB: tenth(size), UsedPercent: of, GrowthPercent: ofGrowth,
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
			best.Message += inst.keepsWAL()
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
func sizeOf(s Series, p part, usedGB float64) (size float64, ok bool) {
	newest, ok := s.Newest(p.metric)
	size = newest.Value / p.perGB
	return size, ok && size <= usedGB
}

// explainWAL returns ReplicationSlot instead of WAL if the lag of a slot explains the WAL.
func explainWAL(c v1alpha1.Cause, inst Instance, s Series) v1alpha1.Cause {
	wal, _ := s.Newest(walMB)
	lag, ok := s.Newest(slotLagMB)
	if !ok || lag.Value < slotShare*wal.Value/100 || lag.Value > mostLag*wal.Value {
		c.Message += ": growing does not fix this" + inst.keepsWAL()
		return c
	}
	c.Name = v1alpha1.CauseReplicationSlot
	slot := "The farthest replica or slot lags"
	inactive, ok := s.Newest(inactiveSlots)
	if ok && inactive.Value >= 1 {
		slot = "A logical replication slot is inactive"
	}
	c.Message += fmt.Sprintf(". %s (lag %.0f GB): growing does not fix this", slot, lag.Value/megabytes) + inst.keepsWAL()
	return c
}

// otherCause returns a cause whose metric is no size.
func otherCause(s Series, usedGB, growthGB float64) (c v1alpha1.Cause, ok bool) {
	if growthGB < causeGrowthGB {
		return c, false
	}
	oldest, ok := s.Newest(oldestMilliSecs)
	age := time.Duration(min(oldest.Value, float64(2*oldestTransaction.Milliseconds()))) * time.Millisecond
	if ok && age >= longTransaction && age <= oldestTransaction {
		return v1alpha1.Cause{Name: v1alpha1.CauseLongTransaction, Message: fmt.Sprintf(
			"A transaction has been open for %s, so the database cannot reuse the space of old rows: growing does not fix this",
			durationText(age))}, true
	}
	written, now := 0.0, s[usedSpaceGB][len(s[usedSpaceGB])-1].Time
	for _, p := range s[tempBytesPerMin] {
		if p.Value >= 0 && now.Sub(p.Time) < FillingSpan {
			written += p.Value * CausePeriod.Minutes() / 1e9
		}
	}
	if of := percentOf(written, usedGB); of >= causeUsed {
		return v1alpha1.Cause{Name: v1alpha1.CauseTempFiles, GB: tenth(written), Message: fmt.Sprintf(
			"%.0f GB of temporary files were written in the last hour: growing does not fix this", written)}, true
	}
	return c, false
}

// percentOf returns a share from 0 to 100 percent.
func percentOf(of, all float64) int32 { return int32(max(0, min(100*of/all, 100))) }

func tenth(gb float64) string { return strconv.FormatFloat(gb, 'f', 1, 64) }

// CauseSince returns the begin of the series for CauseOf: the end of the last growth, but at most a day ago.
func (c Case) CauseSince() time.Time {
	since := c.Now.Add(-causeSpan)
	if grown, ok := lastChanged(c.Status.Changes, v1alpha1.KindVolume); ok && grown.After(since) {
		return grown
	}
	return since
}

// NeedsCause reports whether the cause of a full volume should be read: a growth is decided or held, and no cause was
// read for it. A decision does not wait for the cause unless spec.storage.causeMaxGB depends on it.
func (c Case) NeedsCause() bool {
	last := c.Status.Cause
	for _, i := range c.Status.Intents() {
		if i.Kind == v1alpha1.KindVolume && (last == nil || last.Time.Time.Before(i.DecisionTime.Truncate(time.Second))) {
			return true
		}
	}
	return slices.ContainsFunc(c.Status.Held, func(h v1alpha1.Held) bool {
		return h.Kind == v1alpha1.KindVolume && (last == nil || last.Time.Time.Before(h.SinceTime.Time) ||
			c.Now.Sub(last.Time.Time) >= causeKept)
	})
}

// GrowthDependsOnCause reports whether spec.storage.causeMaxGB may prevent the growth that would be decided now. Only
// then does the decision wait for the cause.
func (c Case) GrowthDependsOnCause() bool {
	if c.Spec.Storage.CauseMaxGB == nil {
		return false
	}
	c.Status.Cause = nil
	i := Decide(c).Intent
	return i != nil && i.Kind == v1alpha1.KindVolume && gigabytes(i.To) > int(*c.Spec.Storage.CauseMaxGB)
}

// Explain adds the cause of this round to the messages about storage, unless it is unknown. It must run before
// RecordOutcome.
func Explain(c *Case, v *Verdict) {
	found := c.Status.Cause
	if found == nil || found.Name == v1alpha1.CauseUnknown {
		return
	}
	v.Decisions = slices.Clone(v.Decisions)
	for i, d := range v.Decisions {
		if d.Metric == v1alpha1.MetricStorage && (d.Action == ActionGrowVolume || d.Reason == ReasonCapReached) {
			v.Decisions[i].Message += ". " + found.Message
		}
	}
	if p := c.Status.Pending; p != nil && p.Kind == v1alpha1.KindVolume && v.Intent != nil {
		p.Message += ". " + found.Message
	}
}

// otherThanData returns the cause that was found, if it is neither data nor unknown.
func (c Case) otherThanData() *v1alpha1.Cause {
	found := c.Status.Cause
	if found == nil || found.Name == v1alpha1.CauseData || found.Name == v1alpha1.CauseUnknown ||
		c.Now.Sub(found.Time.Time) >= causeHolds {
		return nil
	}
	return found
}

// growthLimit returns the size up to which the volume may grow: its cap, or the smaller spec.storage.causeMaxGB if
// something other than data fills the volume. That never applies to a database that is nearly read-only.
func (c Case) growthLimit(e Evidence) (most int, isCause bool) {
	most, cause := c.maxGB(), valueOr(c.Spec.Storage.CauseMaxGB, 0)
	if cause == 0 || cause >= most || c.otherThanData() == nil || nearlyReadOnly(c.Instance.VolumeGB, e.UsedGB) {
		return most, false
	}
	return cause, true
}

// causeWarning returns a warning if something other than data fills the volume.
func (c Case) causeWarning() []Warning {
	found := c.otherThanData()
	if found == nil {
		return nil
	}
	return []Warning{{ReasonCauseNotData, fmt.Sprintf(
		"Storage has %d GB, and something other than data fills it (%s). %s%s. See %s",
		c.Instance.VolumeGB, found.Name, found.Message, c.lastsUntil(), CausePage(found.Name))}}
}

// lastsUntil returns until when the volume lasts at the fast rate of the last hour, for the end of a sentence. A growth in
// progress counts. It is empty if the rate is not known, or if the volume lasts for more than a day.
func (c Case) lastsUntil() string {
	size := c.Instance.VolumeGB
	for _, i := range c.Status.Intents() {
		if i.Kind == v1alpha1.KindVolume {
			size = max(size, gigabytes(i.To))
		}
	}
	for _, a := range c.Alarms {
		e := a.Evidence
		if !metricRow(a.Metric).InGB() || !e.Present() {
			continue
		}
		if full, ok := e.Filling.ReadOnlyTime(size, e.UsedGB, e.Time); ok {
			return fmt.Sprintf(". At the rate of the last hour, %d GB last until %s", size, at(full))
		}
	}
	return ""
}
