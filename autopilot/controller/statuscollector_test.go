// SPDX-License-Identifier: Apache-2.0

package controller

import (
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
	topic      v1alpha1.Topic
}

func (r cachedAutopilots) Topic() v1alpha1.Topic { return r.topic }

func (r cachedAutopilots) EachAutopilot(f func(*v1alpha1.RdsAutopilot)) {
	for _, a := range r.autopilots {
		f(a)
	}
}

// collected returns the gauges of a cache that are not 0, by name and label values.
func collected(t *testing.T, now time.Time, cache cachedAutopilots) map[string]float64 {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(newStatusCollector(cache, func() time.Time { return now }))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "rds_autopilot_")
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

func TestStatusCollectorCountsDatabases(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	condition := func(kind string, status metav1.ConditionStatus, reason string, age time.Duration) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-age))}
	}
	with := func(armed metav1.ConditionStatus, reason string, others ...metav1.Condition) *v1alpha1.RdsAutopilot {
		a := &v1alpha1.RdsAutopilot{}
		a.Status.Conditions = append(others, condition(v1alpha1.ConditionArmed, armed, reason, 0))
		if reason != "NotEnabled" {
			a.Status.Alarms.Rules = []v1alpha1.Rule{{}}
		}
		return a
	}
	growing := with(metav1.ConditionTrue, "AlarmsInPlace", condition(v1alpha1.ConditionLimited, metav1.ConditionTrue, "CapReached", 0))
	growing.Status.Instance, growing.Spec.Storage.MaxGB = &v1alpha1.Instance{VolumeGB: 50}, 4000
	off := with(metav1.ConditionFalse, "NotEnabled")
	off.Status.ReadOnly = &v1alpha1.ReadOnly{}
	off.Status.Instance, off.Spec.Storage.MaxGB = &v1alpha1.Instance{VolumeGB: 40}, 4000
	full := with(metav1.ConditionFalse, "ReasonOfAnotherVersion")
	full.Status.ReadOnly = &v1alpha1.ReadOnly{}
	full.Status.Instance, full.Spec.Storage.MaxGB = &v1alpha1.Instance{VolumeGB: 100}, 80
	ready := func(status metav1.ConditionStatus, reason string, age time.Duration) *v1alpha1.RdsAutopilot {
		return with(metav1.ConditionFalse, "NoData", condition(v1alpha1.ConditionReady, status, reason, age))
	}
	held := func(armed string, age time.Duration, kind v1alpha1.ChangeKind, reason string) *v1alpha1.RdsAutopilot {
		a := with(metav1.ConditionFalse, armed)
		a.Status.Held = []v1alpha1.Held{{Kind: kind, Reason: reason, SinceTime: metav1.NewTime(now.Add(-age))}}
		return a
	}
	claimed := func(id string) *v1alpha1.RdsAutopilot {
		a := held("InstanceClaimed", time.Hour, v1alpha1.KindVolume, "InstanceClaimed")
		a.Status.Instance, a.Status.ReadOnly = &v1alpha1.Instance{ID: id, VolumeGB: 50}, &v1alpha1.ReadOnly{}
		return a
	}
	owner := with(metav1.ConditionTrue, "AlarmsInPlace")
	owner.Status.Instance = &v1alpha1.Instance{ID: "in01"}
	for name, tc := range map[string]struct {
		all  []*v1alpha1.RdsAutopilot
		want map[string]float64
	}{
		"each once": {[]*v1alpha1.RdsAutopilot{growing, off, full, {}}, map[string]float64{
			"autopilots false": 3, "autopilots true": 1, "conditions Limited": 1, "read_only": 1,
			"storage_bytes cap": 4.1e12, "storage_bytes volume": 1.5e11,
		}},
		"not ready for an hour": {[]*v1alpha1.RdsAutopilot{
			ready(metav1.ConditionFalse, "ReadFailed", time.Hour), ready(metav1.ConditionFalse, "ReadFailed", time.Minute),
			ready(metav1.ConditionFalse, "Newer", 48*time.Hour), ready(metav1.ConditionTrue, "NotEnabled", 48*time.Hour),
			ready(metav1.ConditionUnknown, "NotYet", 48*time.Hour),
		}, map[string]float64{"autopilots false": 5, "not_ready ReadFailed": 1, "not_ready NotYet": 1}},
		"claimed by an object that exists, and by none": {[]*v1alpha1.RdsAutopilot{owner, claimed("in01"), claimed("in02")},
			map[string]float64{
				"autopilots false": 2, "autopilots true": 1, "held_changes Volume InstanceClaimed": 1, "read_only": 1,
				"storage_bytes cap": 2e11, "storage_bytes volume": 5e10,
			}},
		"off": {[]*v1alpha1.RdsAutopilot{off, {}}, map[string]float64{"autopilots false": 2, "subscription_confirmed": 1}},
		"held too long": {[]*v1alpha1.RdsAutopilot{
			held("AlarmsInPlace", 15*time.Minute, v1alpha1.KindVolume, "QuotaExceeded"),
			held("CloudUnreachable", time.Hour, v1alpha1.KindVolume, "QuotaExceeded"),
			held("AlarmsInPlace", time.Hour, v1alpha1.KindFlavor, "SoldOut"),
			held("AlarmsInPlace", 14*time.Minute, v1alpha1.KindVolume, "CapReached"),
			held("AlarmsInPlace", 59*time.Minute, v1alpha1.KindVolume, "ChangePending"),
			held("AlarmsInPlace", time.Hour, v1alpha1.KindVolume, "ChangePending"),
			held("AlarmsInPlace", 59*time.Minute, v1alpha1.KindVolume, "AlarmInForce"),
			held("NotEnabled", time.Hour, v1alpha1.KindVolume, "CapReached"),
		}, map[string]float64{
			"autopilots false": 8, "held_changes Volume QuotaExceeded": 2, "held_changes Flavor SoldOut": 1,
			"held_changes Volume ChangePending": 1,
		}},
	} {
		cache := cachedAutopilots{autopilots: tc.all}
		if diff := cmp.Diff(tc.want, collected(t, now, cache)); diff != "" { // the database that is on has no topic
			t.Errorf("%s:\n%s", name, diff)
		}
		cache.topic.State, tc.want["subscription_confirmed"] = v1alpha1.SubscriptionConfirmed, 1
		if diff := cmp.Diff(tc.want, collected(t, now, cache)); diff != "" {
			t.Errorf("%s, confirmed:\n%s", name, diff)
		}
	}
}
