// SPDX-License-Identifier: Apache-2.0

package decide

import (
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
