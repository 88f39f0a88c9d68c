// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// Noon returns the time of every case, a Friday.
func Noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// Ago returns the time that long before Noon.
func Ago(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(Noon().Add(-d)) }

// Policy returns the default policy with spec.storage.maxGB: 4000.
func Policy() v1alpha1.Spec {
	return v1alpha1.Spec{
		Mode: v1alpha1.ModeAuto,
		Storage: v1alpha1.Storage{
			StepGB: 10, MaxGB: 4000, ThresholdPercent: 90, Alarm: v1alpha1.StorageAlarm{PeriodSeconds: 1, Count: 5},
		},
		Flavor: v1alpha1.Flavor{
			CPU: v1alpha1.Trigger{ThresholdPercent: 90}, Memory: v1alpha1.Trigger{ThresholdPercent: 90},
			Alarm: v1alpha1.FlavorAlarm{PeriodSeconds: 300, Count: 3}, MaxChangesPerDay: 2,
		},
	}
}

// Catalogue returns five flavors of one family with 2 to 32 vCPUs, sold in two zones.
func Catalogue() []flavors.Flavor {
	var all []flavors.Flavor
	for _, f := range []struct {
		size          string
		vcpus, memory int
	}{{"large.4", 2, 8}, {"xlarge.4", 4, 16}, {"2xlarge.4", 8, 32}, {"4xlarge.4", 16, 64}, {"8xlarge.4", 32, 128}} {
		all = append(all, flavors.Flavor{
			Code: "rds.mysql.n1." + f.size, Engine: "MySQL", Versions: []string{"8.0"}, Mode: "single",
			VCPUs: f.vcpus, MemoryGB: f.memory,
			Zones: map[string]string{"eu-de-01": flavors.ZoneNormal, "eu-de-02": flavors.ZoneNormal},
		})
	}
	return all
}

// Quiet returns a database that only these alarms can change: 100 GB, 8 vCPUs, ACTIVE for an hour, with a place for a
// change of flavor.
func Quiet(alarms ...autopilot.Alarm) autopilot.Case {
	since := metav1.NewTime(Noon().Add(-time.Hour))
	const code = "rds.mysql.n1.2xlarge.4"
	return autopilot.Case{
		Now: Noon(), Mode: v1alpha1.ModeAuto, Spec: Policy(), Recheck: 30 * time.Second,
		Wanted: autopilot.Wanted{VolumeGB: 100, Flavor: code}, IsSpecLive: true,
		Instance: &autopilot.Instance{
			ID: "id", Status: autopilot.StatusActive, Engine: "MySQL", Version: "8.0", Mode: "single", Flavor: code,
			VCPUs: 8, MemoryGB: 32, VolumeGB: 100, Zones: []string{"eu-de-01", "eu-de-02"},
		},
		Claim:  v1alpha1.Claim{Holds: true},
		Alarms: alarms,
		Status: v1alpha1.Status{
			Instance: &v1alpha1.Instance{
				ID: "id", Status: autopilot.StatusActive, ActiveSince: &since, VolumeGB: 100, Flavor: code,
			},
			Baseline: &v1alpha1.Baseline{VolumeGB: 100, VCPUs: 8, MemoryGB: 32},
		},
		Catalogue: Catalogue(),
		HasPlace:  true,
	}
}

// With returns the case with these alarms as well.
func With(c autopilot.Case, alarms ...autopilot.Alarm) autopilot.Case {
	c.Alarms = slices.Concat(c.Alarms, alarms)
	return c
}

// Later returns the case after that time, with evidence of the same age.
func Later(c autopilot.Case, d time.Duration) autopilot.Case {
	c.Now = c.Now.Add(d)
	c.Alarms = slices.Clone(c.Alarms)
	for i := range c.Alarms {
		c.Alarms[i].Evidence.Time = c.Alarms[i].Evidence.Time.Add(d)
	}
	return c
}

// StorageAt returns a storage alarm that is in force with that much used space in GB.
func StorageAt(usedGB float64) autopilot.Alarm {
	a := inForce(v1alpha1.MetricStorage)
	a.Evidence.UsedGB = usedGB
	return a
}

// UsageAt returns an alarm for CPU or memory that is in force at that percentage.
func UsageAt(m v1alpha1.Metric, percent float64) autopilot.Alarm {
	a := inForce(m)
	a.Evidence.Percent = percent
	return a
}

func inForce(m v1alpha1.Metric) autopilot.Alarm {
	since := Noon().Add(-time.Minute)
	return autopilot.Alarm{
		Metric: m, State: v1alpha1.StateAlarm, StateTime: since, Evidence: autopilot.Evidence{Time: since},
	}
}

// Signalled returns the alarm with a stored signal of that age.
func Signalled(a autopilot.Alarm, state v1alpha1.State, age time.Duration, percent string) autopilot.Alarm {
	at := Ago(age)
	a.Signal = &v1alpha1.Signal{
		Metric: a.Metric, State: state, AlarmTime: at, DatapointTime: &at, ValuePercent: percent, MessageID: "m1",
	}
	return a
}

// WithoutState returns the alarm as it is if Cloud Eye does not report the state of its rule.
func WithoutState(a autopilot.Alarm) autopilot.Alarm {
	a.State = ""
	return a
}

// WithoutEvidence returns the alarm as it is if Cloud Eye has no measurement.
func WithoutEvidence(a autopilot.Alarm) autopilot.Alarm {
	a.Evidence = autopilot.Evidence{}
	return a
}

// MeasuredAgo returns the alarm with a measurement of that age.
func MeasuredAgo(a autopilot.Alarm, age time.Duration) autopilot.Alarm {
	a.Evidence.Time = Noon().Add(-age)
	return a
}

// PendingTo returns a pending change of ours that was decided that long ago for storage.
func PendingTo(kind v1alpha1.ChangeKind, from, to string, age time.Duration) *v1alpha1.Change {
	return &v1alpha1.Change{
		Kind: kind, By: v1alpha1.ByAutopilot, From: from, To: to, RequestTime: new(Ago(age)), EvidenceTime: new(Ago(age)),
		State:   v1alpha1.StateRequested,
		Metrics: []v1alpha1.Metric{v1alpha1.MetricStorage},
	}
}

// AddPending enters a pending change into a status, as the newest.
func AddPending(s *v1alpha1.Status, ch *v1alpha1.Change) {
	s.Changes = append([]v1alpha1.Change{*ch}, s.Changes...)
}

// CompletedFlavor returns a change of flavor that was completed that long ago.
func CompletedFlavor(age time.Duration) v1alpha1.Change {
	return v1alpha1.Change{
		Kind: v1alpha1.KindFlavor, State: v1alpha1.StateCompleted, EndTime: Ago(age),
		To: "rds.mysql.n1.2xlarge.4",
	}
}

// GrownVolume returns a growth of ours that was completed that long ago.
func GrownVolume(from, to string, age time.Duration) v1alpha1.Change {
	return v1alpha1.Change{
		Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: from, To: to, State: v1alpha1.StateCompleted,
		RequestTime: new(Ago(age)), EndTime: Ago(age),
	}
}
