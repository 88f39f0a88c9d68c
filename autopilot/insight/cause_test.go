// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// hourly returns a series that rises evenly from first to last within a day.
func hourly(first, last float64) []autopilot.Point {
	var points []autopilot.Point
	for i := range 25 {
		points = append(points, autopilot.Point{
			Time: cases.Noon().Add(time.Duration(i-24) * time.Hour), Value: first + (last-first)*float64(i)/24,
		})
	}
	return points
}

// grown returns the series of a PostgreSQL volume on which only data has grown, from 82 to 92 GB.
func grown(more autopilot.Series) autopilot.Series {
	s := autopilot.Series{
		usedSpaceGB: hourly(82, 92), walMB: hourly(2048, 2048), slotFilesMB: hourly(10, 10), slotLagMB: hourly(16, 16),
		inactiveSlots: hourly(0, 0), tempBytesPerMin: hourly(1e6, 1e6), oldestMilliSecs: hourly(60e3, 60e3), auditGB: hourly(0.1, 0.1),
	}
	maps.Copy(s, more)
	return s
}

func TestCauseIsTheLargestPartThatIsNotData(t *testing.T) {
	postgres := autopilot.Instance{Engine: "PostgreSQL"}
	large, hundred := autopilot.Instance{Engine: "PostgreSQL", VolumeGB: 1800}, autopilot.Instance{Engine: "PostgreSQL", VolumeGB: 100}
	then := func(points []autopilot.Point, age time.Duration, value float64) []autopilot.Point {
		return append(points, autopilot.Point{Time: cases.Noon().Add(-age), Value: value})
	}
	replicated := autopilot.Instance{Engine: "PostgreSQL", Replicas: []autopilot.Replica{{Name: "r"}, {Name: "a"}}}
	for _, tc := range []struct {
		name    string
		inst    autopilot.Instance
		series  autopilot.Series
		want    v1alpha1.CauseName
		message string // a part of it
	}{
		{"data", postgres, grown(nil), v1alpha1.CauseData, "Nothing that Cloud Eye measures beside the data"},
		{"an inactive slot", postgres, grown(autopilot.Series{walMB: hourly(1024, 41*1024), slotLagMB: hourly(0, 40*1024), inactiveSlots: hourly(1, 1)}),
			v1alpha1.CauseReplicationSlot, "41 GB of it are WAL. A logical replication slot is inactive (lag 40 GB): growing does not fix this"},
		{"a slot that is behind", postgres, grown(autopilot.Series{walMB: hourly(1024, 41*1024), slotLagMB: hourly(0, 40*1024)}),
			v1alpha1.CauseReplicationSlot, "The farthest replica or slot lags (lag 40 GB)"},
		{"a full replica", replicated,
			grown(autopilot.Series{walMB: hourly(1024, 41*1024), slotLagMB: hourly(0, 40*1024)}), v1alpha1.CauseReplicationSlot,
			"The farthest replica or slot lags (lag 40 GB): growing does not fix this. A read replica that is full or lags makes its primary keep WAL: check a, r"},
		{"WAL and a replica", replicated, grown(autopilot.Series{walMB: hourly(1024, 41*1024)}), v1alpha1.CauseWAL, "growing does not fix this. A read replica that is full or lags makes its primary keep WAL: check a, r"},
		{"WAL without a slot", postgres, grown(autopilot.Series{walMB: hourly(1024, 41*1024)}), v1alpha1.CauseWAL, "41 GB of it are WAL: growing"},
		{"WAL has been large for a day, and data grows", postgres, grown(autopilot.Series{walMB: hourly(30*1024, 30*1024)}), v1alpha1.CauseWAL, "30 GB"},
		{"files of slots", postgres, grown(autopilot.Series{slotFilesMB: hourly(0, 30*1024)}), v1alpha1.CauseReplicationSlot, "30 GB of it are files of replication slots"},
		{"audit logs", postgres, grown(autopilot.Series{auditGB: hourly(1, 40)}), v1alpha1.CauseAuditLog, "40 GB of it are audit logs"},
		{"an old transaction", postgres, grown(autopilot.Series{oldestMilliSecs: hourly(0, 7*3600e3)}), v1alpha1.CauseLongTransaction, "open since 2026-11-20T05:00:00Z"},
		{"an old transaction, and nothing grows", postgres, grown(autopilot.Series{usedSpaceGB: hourly(92, 92), oldestMilliSecs: hourly(0, 7*3600e3)}), v1alpha1.CauseData, ""},
		{"temporary files", postgres, grown(autopilot.Series{tempBytesPerMin: hourly(0, 6e9)}), v1alpha1.CauseTempFiles, "30 GB of temporary files were written in the hour before 2026-11-20T12:00:00Z"},
		{"tempdb", autopilot.Instance{Engine: "SQLServer"}, autopilot.Series{usedSpaceGB: hourly(82, 92), tempDBMB: hourly(0, 50*1024)}, v1alpha1.CauseTempFiles, "50 GB of it are tempdb"},
		{"MySQL", autopilot.Instance{Engine: "MySQL"}, nil, v1alpha1.CauseUnknown, "no metric of what fills a MySQL volume"},
		{"no series", postgres, nil, v1alpha1.CauseUnknown, "no used space"},
		{"no engine metrics", postgres, autopilot.Series{usedSpaceGB: hourly(82, 92)}, v1alpha1.CauseUnknown, "none of the metrics"},
		{"WAL in bytes", postgres, grown(autopilot.Series{walMB: hourly(1e9, 41e9)}), v1alpha1.CauseData, ""},
		{"the first WAL is zero", postgres, grown(autopilot.Series{walMB: hourly(0, 10*1024)}), v1alpha1.CauseData, ""},
		{"WAL is measured for an hour only", postgres, grown(autopilot.Series{walMB: hourly(100, 10*1024)[20:]}), v1alpha1.CauseData, ""},
		{"a lag in bytes", postgres, grown(autopilot.Series{walMB: hourly(1024, 41*1024), slotLagMB: hourly(0, 40e9)}), v1alpha1.CauseWAL, ""},
		{"a transaction of a century", postgres, grown(autopilot.Series{oldestMilliSecs: hourly(0, 1e18)}), v1alpha1.CauseData, ""},
		{"WAL of 2.0 to 3.2 of 1,800 GB is all of the growth", large, grown(autopilot.Series{
			usedSpaceGB: hourly(1498.8, 1500), walMB: hourly(2.0*1024, 3.2*1024),
		}), v1alpha1.CauseData, ""},
		{"WAL is all of a growth by 1.9 % of the volume", hundred, grown(autopilot.Series{
			usedSpaceGB: hourly(90, 91.9), walMB: hourly(10*1024, 11.9*1024),
		}), v1alpha1.CauseData, ""},
		{"WAL is all of a growth by 2.1 % of the volume", hundred, grown(autopilot.Series{
			usedSpaceGB: hourly(90, 92.1), walMB: hourly(10*1024, 12.1*1024),
		}), v1alpha1.CauseWAL, "12 GB"},
		{"WAL is all of the growth and less than 5 % of the used space", hundred, grown(autopilot.Series{
			usedSpaceGB: hourly(87.7, 92), walMB: hourly(0.1*1024, 4.5*1024),
		}), v1alpha1.CauseData, ""},
		{"WAL is all of the growth and more than 5 % of the used space", hundred, grown(autopilot.Series{
			usedSpaceGB: hourly(87.7, 92), walMB: hourly(0.4*1024, 4.7*1024),
		}), v1alpha1.CauseWAL, "5 GB"},
		{"the newest WAL is no number", postgres, grown(autopilot.Series{walMB: then(hourly(1024, 41*1024), 0, math.NaN())}),
			v1alpha1.CauseWAL, "41 GB"},
		{"the newest WAL is hours ahead", postgres, grown(autopilot.Series{walMB: then(hourly(2048, 2048), -3*time.Hour, 41*1024)}),
			v1alpha1.CauseData, ""},
		{"the newest used space is more than the volume", hundred, grown(autopilot.Series{
			usedSpaceGB: then(hourly(82, 92), 0, 9200), walMB: hourly(1024, 41*1024),
		}), v1alpha1.CauseWAL, "41 GB"},
		{"a huge amount of temporary files", hundred, grown(autopilot.Series{tempBytesPerMin: hourly(1e300, 1e300)}), v1alpha1.CauseData, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := CauseOf(tc.inst, tc.series, cases.Noon())
			if c.Name != tc.want || !strings.Contains(c.Message, tc.message) || !c.Time.Equal(autopilot.Seconds(cases.Noon())) {
				t.Errorf("%+v, want %s with %q", c, tc.want, tc.message)
			}
			if len(tc.inst.Replicas) == 0 && strings.Contains(c.Message, "read replica") {
				t.Errorf("it names a read replica: %s", c.Message)
			}
			if c.UsedPercent < 0 || c.UsedPercent > 100 {
				t.Errorf("a share of %d %%", c.UsedPercent)
			}
		})
	}
}

func TestCauseWarningNamesThePageOfItsCause(t *testing.T) {
	for name, page := range map[v1alpha1.CauseName]string{
		v1alpha1.CauseWAL: "docs/runbooks/causes/WAL.md", v1alpha1.CauseAuditLog: "docs/runbooks/causes/AuditLog.md",
		v1alpha1.CauseData: "", v1alpha1.CauseUnknown: "",
	} {
		c := cases.Quiet()
		c.Status.Insight = &v1alpha1.Insight{Cause: &v1alpha1.Cause{
			Name: name, Message: "41 GB of it are other", Time: *autopilot.Seconds(cases.Noon()),
		}}
		var message string
		for _, w := range Warnings(c) {
			message = w.Message
		}
		if !strings.HasSuffix(message, page) || (message == "") != (page == "") {
			t.Errorf("%s: %q, want %q at its end", name, message, page)
		}
	}
}

// A cause has the time of the look, so it must not come from values of hours ago.
func TestCauseIsNotNamedFromOldData(t *testing.T) {
	inst := autopilot.Instance{Engine: "PostgreSQL", VolumeGB: 100}
	full := grown(autopilot.Series{walMB: hourly(1024, 41*1024)})
	for age, want := range map[time.Duration]v1alpha1.CauseName{
		causeStale: v1alpha1.CauseWAL, causeStale + time.Minute: v1alpha1.CauseUnknown,
	} {
		if c := CauseOf(inst, full, cases.Noon().Add(age)); c.Name != want {
			t.Errorf("%s old: %+v, want %s", age, c, want)
		}
	}
	full[walMB] = full[walMB][:20]
	if c := CauseOf(inst, full, cases.Noon()); c.Name != v1alpha1.CauseData {
		t.Errorf("old WAL: %+v, want Data", c)
	}
}
