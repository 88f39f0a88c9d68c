// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// The decisions are in the order of the walk, as metric, reason and size or flavor.
func TestWalkDecidesOnSeveralAlarms(t *testing.T) {
	disk, cpu, memory := cases.StorageAt(93), busyCPU(), cases.UsageAt(v1alpha1.MetricMemory, 97)
	noEffect := cases.Both(cases.Changed(30*time.Hour, "94.0"), cases.Changed(60*time.Hour, "97.0"))
	for name, tc := range map[string]struct {
		alter  func(*autopilot.Case)
		alarms []autopilot.Alarm
		want   []string
		change []v1alpha1.Metric // that the change serves
	}{
		"storage grows before the flavor changes": {unchanged, []autopilot.Alarm{cpu, disk},
			[]string{"storage AlarmInForce 110"}, []v1alpha1.Metric{"storage"}},
		"one change for CPU and memory": {unchanged, []autopilot.Alarm{cpu, memory},
			[]string{"cpu AlarmInForce " + larger, "memory AlarmInForce " + larger}, []v1alpha1.Metric{"cpu", "memory"}},
		"two changes without effect on CPU": {noEffect, []autopilot.Alarm{cpu, memory},
			[]string{"cpu NoEffect ", "memory AlarmInForce " + larger}, []v1alpha1.Metric{"memory"}},
		"two changes without effect on CPU, and busy": {cases.Both(noEffect, cases.InStatus("MODIFYING")),
			[]autopilot.Alarm{cpu, memory}, []string{"cpu InstanceBusy ", "memory InstanceBusy "}, nil},
		"a deferred flavor waits for the volume": {cases.Deferred("cpu"), []autopilot.Alarm{disk},
			[]string{"storage AlarmInForce 110", "cpu ChangePending "}, []v1alpha1.Metric{"storage"}},
		"Recommend names the flavor after the volume": {cases.Recommend, []autopilot.Alarm{disk, cpu},
			[]string{"storage Recommend 110", "cpu Recommend " + larger}, nil},
	} {
		v := verdictOf(row{alter: tc.alter, alarms: tc.alarms}.build())
		var got []string
		for _, d := range v.Decisions {
			got = append(got, fmt.Sprintf("%s %s %s", d.Metric, d.Reason, d.To))
		}
		var change []v1alpha1.Metric
		if v.Change != nil {
			change = v.Change.Metrics
		}
		if !slices.Equal(got, tc.want) || !slices.Equal(change, tc.change) {
			t.Errorf("%s: %q, change for %v; want %q, %v", name, got, change, tc.want, tc.change)
		}
	}
}

func TestEndedAlarmIsRecordedOnce(t *testing.T) {
	c := cases.Quiet(cleared(cases.StorageAt(50)))
	for _, want := range []int{1, 0} {
		v := verdictOf(c)
		if len(v.Decisions) != want {
			t.Errorf("%+v, want %d decisions", v.Decisions, want)
		}
		record.Decisions(&c.Status, v.Decisions, c.Now)
	}
}

func TestDecisionWithoutAnAlarmCountsFromWhenItsNeedBegan(t *testing.T) {
	for name, tc := range map[string]struct {
		alter func(*autopilot.Case)
		want  time.Duration // ago
	}{
		"used space over the threshold for 15 minutes": {overdue(15 * time.Minute), 15 * time.Minute},
		"read-only for an hour":                        {cases.ReadOnly, time.Hour},
	} {
		d := verdictOf(altered(tc.alter, ended(cases.StorageAt(93)))).Decisions[0]
		if !d.Since.Equal(cases.Noon().Add(-tc.want)) {
			t.Errorf("%s: since %s, want %s ago", name, d.Since, tc.want)
		}
	}
}

// Each read costs a call and time. Facts of a flavor cost most, and a reserved place is not free for other databases.
// Nothing is read for a flavor before storage is decided.
func TestWalkReadsOnlyTheFactsThatDecide(t *testing.T) {
	type facts = []autopilot.Fact
	disk, cpu := cases.StorageAt(92), busyCPU()
	idle := cases.StorageAt(50)
	idle.State = v1alpha1.StateOK
	closed := cases.InWindow("Sat", "01:00", "05:00")
	for name, tc := range map[string]struct {
		alter  func(*autopilot.Case)
		alarms []autopilot.Alarm
		want   facts
	}{
		"no alarm":                           {unchanged, nil, nil},
		"an alarm that is not in force":      {unchanged, []autopilot.Alarm{idle}, facts{alarmState}},
		"an ended alarm in a sweep":          {sweep, []autopilot.Alarm{idle}, facts{alarmState, usedSpace}},
		"an ended alarm while read-only":     {cases.ReadOnly, []autopilot.Alarm{idle}, facts{alarmState, usedSpace}},
		"storage grows":                      {unchanged, []autopilot.Alarm{disk}, facts{alarmState, usedSpace}},
		"storage grows, and a CPU alarm":     {unchanged, []autopilot.Alarm{cpu, disk}, facts{alarmState, usedSpace}},
		"autopilot is off":                   {off(autopilot.ReasonNotEnabled, "The mode is Off"), []autopilot.Alarm{disk, cpu}, facts{alarmState, usedSpace}},
		"storage cannot grow, and CPU":       {cases.Steps(10, 100), []autopilot.Alarm{cpu, disk}, facts{alarmState, usedSpace, usage, catalogue, place, resizeList}},
		"a flavor changes":                   {unchanged, []autopilot.Alarm{cpu}, facts{alarmState, usage, catalogue, place, resizeList}},
		"a CPU alarm below the threshold":    {unchanged, []autopilot.Alarm{cases.UsageAt(v1alpha1.MetricCPU, 89)}, facts{alarmState, usage}},
		"a CPU alarm in a closed window":     {closed, []autopilot.Alarm{cpu}, facts{alarmState, usage, catalogue}},
		"a CPU alarm in mode Recommend":      {cases.Recommend, []autopilot.Alarm{cpu}, facts{alarmState, usage, catalogue}},
		"a CPU alarm while a change is made": {cases.PendingVolume(time.Minute), []autopilot.Alarm{cpu}, facts{alarmState, usage}},
		"a deferred change":                  {cases.Deferred("cpu"), nil, facts{catalogue, place, resizeList}},
		"a size that was reverted":           {cases.LostVolume, []autopilot.Alarm{disk}, facts{alarmState, usedSpace, sizeWriter}},
		"a flavor that was made smaller": {all(cases.Changed(2*time.Hour, "99.0"), cases.Restored), []autopilot.Alarm{cpu},
			facts{alarmState, usage, catalogue, flavorWriter}},
		"a flavor that was restored, and no alarm": {all(cases.Changed(2*time.Hour, "99.0"), cases.Restored), nil,
			facts{flavorWriter}},
	} {
		t.Run(name, func(t *testing.T) {
			c := cases.Quiet(tc.alarms...)
			tc.alter(&c)
			c, read := cases.Unread(c)
			var got facts
			Walk(t.Context(), &c, func(ctx context.Context, c *autopilot.Case, f autopilot.Fact) error {
				got = append(got, f)
				return read(ctx, c, f)
			})
			if !slices.Equal(got, tc.want) {
				t.Errorf("reads %v, want %v", got, tc.want)
			}
		})
	}
}

// decisionBy returns the first decision by these guards on a case with one alarm.
func decisionBy(t *testing.T, guards []Guard, c autopilot.Case) autopilot.Decision {
	t.Helper()
	c, read := cases.Unread(c)
	v := walkBy(context.Background(), guards, &c, read)
	if len(v.Decisions) == 0 {
		t.Fatal("no decision")
	}
	return v.Decisions[0]
}

// Each case is prevented by two neighbors of the table. Every other order of the table reverses at least one of these pairs.
func TestOrderOfTheTableDecidesWhichReasonWins(t *testing.T) {
	disk, cpu := cases.StorageAt(92), busyCPU()
	closed := cases.InWindow("Sat", "01:00", "05:00")
	contested := cases.Both(cases.Changed(2*time.Hour, "99.0"), cases.Restored)
	rolledBack := all(cases.Changed(3*time.Hour, "99.0"), cases.RolledBack(2*time.Hour))
	backup := cases.InStatus("BACKING UP")
	for _, tc := range []struct {
		alter         func(*autopilot.Case)
		alarm         autopilot.Alarm
		first, second autopilot.Reason
	}{
		{metricOff, cleared(cpu), autopilot.ReasonAlarmCleared, autopilot.ReasonNotEnabled},
		{all(metricOff, claimed), cpu, autopilot.ReasonNotEnabled, autopilot.ReasonInstanceClaimed},
		{claimed, cases.StorageAt(84), autopilot.ReasonInstanceClaimed, autopilot.ReasonBelowThreshold},
		{cases.PendingVolume(time.Minute), cases.StorageAt(84), autopilot.ReasonBelowThreshold, autopilot.ReasonChangePending},
		{all(cases.PendingVolume(time.Minute), rolledBack), cpu, autopilot.ReasonChangePending, autopilot.ReasonRolledBack},
		{all(rolledBack, backup), cpu, autopilot.ReasonRolledBack, autopilot.ReasonInstanceBusy},
		{all(otherFlavor, backup), cpu, autopilot.ReasonChangePending, autopilot.ReasonInstanceBusy},
		{all(backup, func(c *autopilot.Case) { c.Catalogue = nil }), cpu, autopilot.ReasonInstanceBusy, autopilot.ReasonNoData},
		{all(oldFlavor, flavorCap(1)), cpu, autopilot.ReasonNoData, autopilot.ReasonCapReached},
		{flavorCap(8), cpu, autopilot.ReasonCapReached, autopilot.ReasonCapReached}, // the second row must not say so
		{all(cases.SoldOut("eu-de-02"), cases.Changed(23*time.Minute, "99.0")), cpu,
			autopilot.ReasonSoldOut, autopilot.ReasonCooldown},
		{all(cases.Changed(23*time.Minute, "94.0"), cases.Changed(60*time.Hour, "97.0")), cpu,
			autopilot.ReasonCooldown, autopilot.ReasonNoEffect},
		{all(cases.Changed(2*time.Hour, "94.0"), cases.Changed(60*time.Hour, "97.0"), cases.Restored), cpu, autopilot.ReasonNoEffect, autopilot.ReasonContested},
		{all(contested, closed), cpu, autopilot.ReasonContested, autopilot.ReasonOutsideWindow},
		{all(closed, cases.Recommend), cpu, autopilot.ReasonOutsideWindow, autopilot.ReasonRecommend},
		{all(cases.Recommend, cases.RefusedPatch), disk, autopilot.ReasonRecommend, autopilot.ReasonRefused},
		{all(cases.CloudRefuses(cases.PendingFlavor(time.Minute), autopilot.ReasonQuotaExceeded), noPlace), cpu,
			autopilot.ReasonQuotaExceeded, autopilot.ReasonFleetBrake},
		{all(noPlace, offered()), cpu, autopilot.ReasonFleetBrake, autopilot.ReasonNoLargerFlavor},
	} {
		t.Run(string(tc.first)+" before "+string(tc.second), func(t *testing.T) {
			c := altered(tc.alter, tc.alarm)
			first := decisionBy(t, Table(), c)
			isFirst := func(g Guard) bool { return g.Name == first.Guard }
			second := decisionBy(t, slices.DeleteFunc(Table(), isFirst), c)
			if first.Reason != tc.first || second.Reason != tc.second {
				t.Errorf("%s, then %s", first.Reason, second.Reason)
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, alarm := range map[string]autopilot.Alarm{"storage": cases.StorageAt(93), "cpu": cases.UsageAt(v1alpha1.MetricCPU, 97)} {
		b.Run(name, func(b *testing.B) {
			c := cases.Quiet(alarm)
			b.ReportAllocs()
			for b.Loop() {
				verdictOf(c)
			}
		})
	}
}
