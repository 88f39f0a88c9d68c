// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// cachedAutopilots is a cache with only these RdsAutopilots.
type cachedAutopilots struct {
	Kubernetes
	autopilots []*v1alpha1.RdsAutopilot
}

func (r cachedAutopilots) Topic() v1alpha1.Topic { return v1alpha1.Topic{} }

func (r cachedAutopilots) EachAutopilot(f func(*v1alpha1.RdsAutopilot)) {
	for _, a := range r.autopilots {
		f(a)
	}
}

// series returns the gauges of a collector that are not 0, by name and label values.
func series(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if v := m.GetGauge().GetValue(); v != 0 {
				found[name] = v
			}
		}
	}
	return found
}

// collected returns the series of these RdsAutopilots with a name that begins with prefix, without the prefix.
func collected(t *testing.T, now time.Time, prefix string, all ...*v1alpha1.RdsAutopilot) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	c := newStatusCollector(cachedAutopilots{autopilots: all}, func() time.Time { return now })
	for name, value := range series(t, c) {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			found[rest] = value
		}
	}
	return found
}

func heldFor(now time.Time, age time.Duration, kind v1alpha1.ChangeKind, reason string) v1alpha1.Held {
	return v1alpha1.Held{Kind: kind, Reason: reason, SinceTime: metav1.NewTime(now.Add(-age))}
}

// withArmed returns an RdsAutopilot with the condition Armed.
func withArmed(status metav1.ConditionStatus, reason string) *v1alpha1.RdsAutopilot {
	a := &v1alpha1.RdsAutopilot{}
	a.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionArmed, Status: status, Reason: reason}}
	return a
}

func TestStatusCollectorCountsEveryDatabaseOnce(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	with := func(armed metav1.ConditionStatus, reason string) *v1alpha1.RdsAutopilot {
		a := withArmed(armed, reason)
		a.Status.Instance = &v1alpha1.Instance{Status: "ACTIVE"}
		return a
	}
	growing := with(metav1.ConditionTrue, "AlarmsInPlace")
	growing.Status.Conditions = append(growing.Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionLimited, Status: metav1.ConditionTrue})
	growing.Status.Instance.VolumeGB, growing.Spec.Storage.MaxGB = 50, 4000
	off := with(metav1.ConditionFalse, "NotEnabled")
	off.Status.ReadOnly = &v1alpha1.ReadOnly{}
	off.Status.Instance.VolumeGB, off.Spec.Storage.MaxGB = 40, 4000
	full := with(metav1.ConditionFalse, "ReasonOfAnotherVersion")
	full.Status.ReadOnly = &v1alpha1.ReadOnly{}
	full.Status.Instance.VolumeGB, full.Spec.Storage.MaxGB = 100, 80
	got := collected(t, now, "rds_autopilot_", growing, off, full,
		with(metav1.ConditionFalse, "SubscriptionPending"),
		with(metav1.ConditionFalse, "CloudUnreachable"), &v1alpha1.RdsAutopilot{})
	maps.DeleteFunc(got, func(name string, _ float64) bool { return strings.HasPrefix(name, "not_ready") })
	want := map[string]float64{
		"autopilots false": 5, "autopilots true": 1, "conditions Limited": 1,
		"read_only": 1, "storage_bytes cap": 4.1e12, "storage_bytes volume": 1.5e11,
		"subscription_confirmed": 1, // no topic is recorded
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStatusCollectorCountsChangesThatAreHeldTooLong(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	with := func(armed string, held ...v1alpha1.Held) *v1alpha1.RdsAutopilot {
		a := withArmed(metav1.ConditionFalse, armed)
		a.Status.Held = held
		return a
	}
	got := collected(t, now, "rds_autopilot_held_changes ",
		with("AlarmsInPlace", heldFor(now, 15*time.Minute, "Volume", "QuotaExceeded"),
			heldFor(now, time.Hour, "Flavor", "SoldOut")),
		with("CloudUnreachable", heldFor(now, time.Hour, "Volume", "QuotaExceeded")),
		with("AlarmsInPlace", heldFor(now, 14*time.Minute, "Volume", "CapReached")),
		with("AlarmsInPlace", heldFor(now, 59*time.Minute, "Volume", "ChangePending")),
		with("AlarmsInPlace", heldFor(now, time.Hour, "Volume", "ChangePending")),
		with("AlarmsInPlace", heldFor(now, 59*time.Minute, "Volume", "AlarmInForce")),
		with("NotEnabled", heldFor(now, time.Hour, "Volume", "CapReached")))
	want := map[string]float64{
		"Volume QuotaExceeded": 2, "Flavor SoldOut": 1, "Volume ChangePending": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStatusCollectorCountsDatabasesThatAreNotReadyForAnHour(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	with := func(status metav1.ConditionStatus, reason string, age time.Duration) *v1alpha1.RdsAutopilot {
		a := &v1alpha1.RdsAutopilot{}
		a.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-age)),
		}}
		return a
	}
	got := collected(t, now, "rds_autopilot_not_ready ",
		with(metav1.ConditionFalse, "ReadFailed", time.Hour), with(metav1.ConditionFalse, "ReadFailed", time.Minute),
		with(metav1.ConditionFalse, "NoData", 48*time.Hour), with(metav1.ConditionTrue, "NotEnabled", 48*time.Hour),
		with(metav1.ConditionUnknown, "NotYet", 48*time.Hour))
	if diff := cmp.Diff(map[string]float64{"ReadFailed": 1, "NoData": 1}, got); diff != "" {
		t.Error(diff)
	}
}
