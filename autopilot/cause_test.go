// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// hourly returns a series that rises evenly from first to last within a day.
func hourly(first, last float64) []Point {
	var points []Point
	for i := range 25 {
		points = append(points, Point{noon().Add(time.Duration(i-24) * time.Hour), first + (last-first)*float64(i)/24})
	}
	return points
}

// grown returns the series of a PostgreSQL volume on which only data has grown, from 82 to 92 GB.
func grown(more Series) Series {
	s := Series{
		usedSpaceGB: hourly(82, 92), walMB: hourly(2048, 2048), slotFilesMB: hourly(10, 10), slotLagMB: hourly(16, 16),
		inactiveSlots: hourly(0, 0), tempBytesPerMin: hourly(1e6, 1e6), oldestMilliSecs: hourly(60e3, 60e3), auditGB: hourly(0.1, 0.1),
	}
	maps.Copy(s, more)
	return s
}

func TestCauseOf(t *testing.T) {
	postgres, none := Instance{Engine: "PostgreSQL"}, []Point(nil)
	replicated := Instance{Engine: "PostgreSQL", Replicas: []Replica{{Name: "r"}, {Name: "a"}}}
	for _, tc := range []struct {
		name    string
		inst    Instance
		series  Series
		want    v1alpha1.CauseName
		message string // a part of it
	}{
		{"data", postgres, grown(nil), v1alpha1.CauseData, "Nothing that Cloud Eye measures beside the data"},
		{"an inactive slot", postgres, grown(Series{walMB: hourly(1024, 41*1024), slotLagMB: hourly(0, 40*1024), inactiveSlots: hourly(1, 1)}),
			v1alpha1.CauseReplicationSlot, "41 GB of it are WAL. A logical replication slot is inactive (lag 40 GB): growing does not fix this"},
		{"a slot that is behind", postgres, grown(Series{walMB: hourly(1024, 41*1024), slotLagMB: hourly(0, 40*1024)}),
			v1alpha1.CauseReplicationSlot, "The farthest replica or slot lags (lag 40 GB)"},
		{"a full replica", replicated,
			grown(Series{walMB: hourly(1024, 41*1024), slotLagMB: hourly(0, 40*1024)}), v1alpha1.CauseReplicationSlot,
			"The farthest replica or slot lags (lag 40 GB): growing does not fix this. A read replica that is full or lags makes its primary keep WAL: check a, r"},
		{"WAL and a replica", replicated, grown(Series{walMB: hourly(1024, 41*1024)}), v1alpha1.CauseWAL, "growing does not fix this. A read replica that is full or lags makes its primary keep WAL: check a, r"},
		{"files of slots and a replica", replicated, grown(Series{slotFilesMB: hourly(0, 30*1024)}), v1alpha1.CauseReplicationSlot, "keep WAL: check a, r"},
		{"WAL without a slot", postgres, grown(Series{walMB: hourly(1024, 41*1024)}), v1alpha1.CauseWAL, "41 GB of it are WAL: growing"},
		{"WAL is small but all of the growth", postgres, grown(Series{walMB: hourly(1024, 10*1024)}), v1alpha1.CauseWAL, "10 GB"},
		{"WAL is large since yesterday, and data grows", postgres, grown(Series{walMB: hourly(30*1024, 30*1024)}), v1alpha1.CauseWAL, "30 GB"},
		{"files of slots", postgres, grown(Series{slotFilesMB: hourly(0, 30*1024)}), v1alpha1.CauseReplicationSlot, "30 GB of it are files of replication slots"},
		{"audit logs", postgres, grown(Series{auditGB: hourly(1, 40)}), v1alpha1.CauseAuditLog, "40 GB of it are audit logs"},
		{"an old transaction", postgres, grown(Series{oldestMilliSecs: hourly(0, 7*3600e3)}), v1alpha1.CauseLongTransaction, "open for 7 hours"},
		{"an old transaction, and nothing grows", postgres, grown(Series{usedSpaceGB: hourly(92, 92), oldestMilliSecs: hourly(0, 7*3600e3)}), v1alpha1.CauseData, ""},
		{"temporary files", postgres, grown(Series{tempBytesPerMin: hourly(0, 6e9)}), v1alpha1.CauseTempFiles, "30 GB of temporary files"},
		{"tempdb", Instance{Engine: "SQLServer"}, Series{usedSpaceGB: hourly(82, 92), tempDBMB: hourly(0, 50*1024)}, v1alpha1.CauseTempFiles, "50 GB of it are tempdb"},
		{"a small tempdb", Instance{Engine: "SQLServer"}, Series{usedSpaceGB: hourly(82, 92), tempDBMB: hourly(10, 10)}, v1alpha1.CauseData, ""},
		{"MySQL", Instance{Engine: "MySQL"}, nil, v1alpha1.CauseUnknown, "no metric of what fills a MySQL volume"},
		{"no series", postgres, nil, v1alpha1.CauseUnknown, "no used space"},
		{"no engine metrics", postgres, Series{usedSpaceGB: hourly(82, 92)}, v1alpha1.CauseUnknown, "none of the metrics"},
		{"WAL in bytes", postgres, grown(Series{walMB: hourly(1e9, 41e9)}), v1alpha1.CauseData, ""},
		{"negative WAL", postgres, grown(Series{walMB: hourly(-1, -41e3)}), v1alpha1.CauseData, ""},
		{"zero WAL", postgres, grown(Series{walMB: hourly(0, 0)}), v1alpha1.CauseData, ""},
		{"WAL is no number", postgres, grown(Series{walMB: hourly(1, math.NaN())}), v1alpha1.CauseData, ""},
		{"the first WAL is zero", postgres, grown(Series{walMB: hourly(0, 10*1024)}), v1alpha1.CauseData, ""},
		{"WAL is measured since an hour ago only", postgres, grown(Series{walMB: hourly(100, 10*1024)[20:]}), v1alpha1.CauseData, ""},
		{"a lag in bytes", postgres, grown(Series{walMB: hourly(1024, 41*1024), slotLagMB: hourly(0, 40e9)}), v1alpha1.CauseWAL, ""},
		{"a transaction of a century", postgres, grown(Series{oldestMilliSecs: hourly(0, 1e18)}), v1alpha1.CauseData, ""},
		{"no WAL", postgres, grown(Series{walMB: none}), v1alpha1.CauseData, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := CauseOf(tc.inst, tc.series, noon())
			if c.Name != tc.want || !strings.Contains(c.Message, tc.message) || !c.Time.Equal(seconds(noon())) {
				t.Errorf("%+v, want %s with %q", c, tc.want, tc.message)
			}
			if len(tc.inst.Replicas) == 0 && strings.Contains(c.Message, "read replica") {
				t.Errorf("it names a read replica: %s", c.Message)
			}
			if c.UsedPercent < 0 || c.UsedPercent > 100 || c.GrowthPercent < 0 || c.GrowthPercent > 100 {
				t.Errorf("shares %d and %d %%", c.UsedPercent, c.GrowthPercent)
			}
		})
	}
}

func TestCauseWarningNamesThePageOfItsCause(t *testing.T) {
	for name, page := range map[v1alpha1.CauseName]string{
		v1alpha1.CauseWAL: "docs/runbooks/causes/WAL.md", v1alpha1.CauseAuditLog: "docs/runbooks/causes/AuditLog.md",
		v1alpha1.CauseData: "", v1alpha1.CauseUnknown: "",
	} {
		c := quiet()
		c.Status.Cause = &v1alpha1.Cause{Name: name, Message: "41 GB of it are other", Time: *seconds(noon())}
		var message string
		for _, w := range c.causeWarning() {
			message = w.Message
		}
		if !strings.HasSuffix(message, page) || (message == "") != (page == "") {
			t.Errorf("%s: %q, want %q at its end", name, message, page)
		}
	}
}

// The warning says how much time remains, with the growth that is in progress.
func TestCauseWarningSaysHowLongTheVolumeLasts(t *testing.T) {
	const until = "At the rate of the last hour, %d GB last until %s"
	for _, tc := range []struct {
		name  string
		alter func(*Case)
		fast  float64 // GB per hour
		want  string
	}{
		{"3 GB remain", func(*Case) {}, 6, fmt.Sprintf(until, 100, "2026-11-20T12:29:00Z")},
		{"growing", pendingVolume(time.Minute), 6, fmt.Sprintf(until, 110, "2026-11-20T14:09:00Z")},
		{"full", func(c *Case) { c.Alarms[0].Evidence.UsedGB = 96 }, 6, fmt.Sprintf(until, 100, "2026-11-20T11:59:00Z")},
		{"more than a day", func(*Case) {}, 0.1, ""},
		{"not rising", func(*Case) {}, 0, ""},
		{"no evidence", func(c *Case) { c.Alarms = nil }, 6, ""},
	} {
		c := quiet().with(storageAt(92).measured(time.Minute))
		c.Alarms[0].Evidence.Filling = Filling{Known: true, Middle: tc.fast, Fast: tc.fast}
		c.Status.Cause = &v1alpha1.Cause{Name: v1alpha1.CauseWAL, Message: "41 GB of it are WAL", Time: *seconds(noon())}
		tc.alter(&c)
		got := c.causeWarning()[0].Message
		if !strings.Contains(got, tc.want) || tc.want == "" && strings.Contains(got, "last until") {
			t.Errorf("%s: %q, want %q in it", tc.name, got, tc.want)
		}
	}
}

func TestNoCauseChangesTheSizeWithoutCauseMaxGB(t *testing.T) {
	names := []v1alpha1.CauseName{v1alpha1.CauseData, v1alpha1.CauseWAL, v1alpha1.CauseReplicationSlot, v1alpha1.CauseUnknown}
	rapid.Check(t, func(t *rapid.T) {
		c := quiet().with(storageAt(rapid.Float64Range(80, 100).Draw(t, "used")))
		plain := Decide(c).Decisions[0]
		c.Status.Cause = &v1alpha1.Cause{Name: rapid.SampledFrom(names).Draw(t, "cause"), Time: *seconds(noon())}
		if d := Decide(c).Decisions[0]; d != plain {
			t.Fatalf("%+v, without a cause %+v", d, plain)
		}
		limit := 10 * rapid.Int32Range(4, 12).Draw(t, "limit/10")
		c.Spec.Storage.CauseMaxGB = &limit
		d, full := Decide(c).Decisions[0], c.Alarms[0].Evidence.UsedGB
		if nearlyReadOnly(100, full) && d != plain {
			t.Fatalf("%+v for a database that is nearly read-only", d)
		}
		if d.Acts() && !nearlyReadOnly(100, full) && c.otherThanData() != nil && gigabytes(d.To) > max(100, int(limit)) {
			t.Fatalf("grows to %s GB, past %d GB", d.To, limit)
		}
	})
}

func TestCauseMaxGBHoldsGrowthThatDoesNotHelp(t *testing.T) {
	for _, tc := range []struct {
		name   string
		used   float64
		limit  int32
		cause  v1alpha1.CauseName
		reason Reason
		to     string
	}{
		{"held", 92, 100, v1alpha1.CauseWAL, ReasonCauseNotData, ""},
		{"nearly read-only", 94, 100, v1alpha1.CauseWAL, ReasonAlarmInForce, "110"},
		{"the limit is larger", 92, 200, v1alpha1.CauseWAL, ReasonAlarmInForce, "110"},
		{"data", 92, 100, v1alpha1.CauseData, ReasonAlarmInForce, "110"},
		{"unknown", 92, 100, v1alpha1.CauseUnknown, ReasonAlarmInForce, "110"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quiet().with(storageAt(tc.used))
			c.Spec.Storage.CauseMaxGB = &tc.limit
			c.Status.Cause = &v1alpha1.Cause{Name: tc.cause, Message: "41 GB of it are WAL", Time: *seconds(noon())}
			d := Decide(c).Decisions[0]
			if d.Reason != tc.reason || d.To != tc.to {
				t.Errorf("%s to %q GB: %s", d.Reason, d.To, d.Message)
			}
		})
	}
}
