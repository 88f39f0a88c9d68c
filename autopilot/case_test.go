// SPDX-License-Identifier: Apache-2.0

package autopilot

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/flavors"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noon().Add(-d)) }

// policy is what the API server makes of an empty spec.
func policy() v1alpha1.Spec {
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

func catalogue() []flavors.Flavor {
	var all []flavors.Flavor
	for _, f := range []struct {
		size          string
		vcpus, memory int
	}{{"large.4", 2, 8}, {"xlarge.4", 4, 16}, {"2xlarge.4", 8, 32}, {"4xlarge.4", 16, 64}, {"8xlarge.4", 32, 128}} {
		all = append(all, flavors.Flavor{
			Code: "rds.mysql.n1." + f.size, Engine: "MySQL", Versions: []string{"8.0"}, Mode: "single", VCPUs: f.vcpus, MemoryGB: f.memory,
			Zones: map[string]string{"eu-de-01": flavors.ZoneNormal, "eu-de-02": flavors.ZoneNormal},
		})
	}
	return all
}

// quiet is a database with nothing wrong: 100 GB, 8 vCPUs, ACTIVE for an hour.
func quiet() Case {
	since := metav1.NewTime(noon().Add(-time.Hour))
	return Case{
		Now: noon(), Mode: v1alpha1.ModeAuto, Enabled: true, Spec: policy(), Recheck: 30 * time.Second,
		Wanted: Wanted{VolumeGB: 100, Flavor: "rds.mysql.n1.2xlarge.4"},
		Instance: &Instance{
			ID: "id", Status: StatusActive, Engine: "MySQL", Version: "8.0", Mode: "single", Flavor: "rds.mysql.n1.2xlarge.4",
			VCPUs: 8, MemoryGB: 32, VolumeGB: 100, Zones: []string{"eu-de-01", "eu-de-02"},
		},
		Status: v1alpha1.Status{
			Instance: &v1alpha1.Instance{ID: "id", Status: StatusActive, ActiveSince: &since, VolumeGB: 100, Flavor: "rds.mysql.n1.2xlarge.4"},
			Baseline: &v1alpha1.Baseline{VolumeGB: 100, VCPUs: 8, MemoryGB: 32},
		},
		Catalogue: catalogue(),
	}
}

func (c Case) with(a ...Alarm) Case {
	c.Alarms = append(c.Alarms, a...)
	return c
}

func storageAt(percent float64) Alarm {
	return Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateAlarm, StateTime: noon().Add(-time.Minute), Evidence: Evidence{Time: noon().Add(-time.Minute), UsedGB: percent}}
}

func usageAt(m v1alpha1.Metric, percent float64) Alarm {
	return Alarm{Metric: m, State: v1alpha1.StateAlarm, StateTime: noon().Add(-time.Minute), Evidence: Evidence{Time: noon().Add(-time.Minute), Percent: percent}}
}

func intentTo(kind v1alpha1.ChangeKind, from, to string, age time.Duration) *v1alpha1.Intent {
	return &v1alpha1.Intent{Kind: kind, From: from, To: to, DecisionTime: ago(age), EvidenceTime: ago(age), Metrics: []v1alpha1.Metric{v1alpha1.MetricStorage}}
}

func signalled(a Alarm, state v1alpha1.State, age time.Duration, percent string) Alarm {
	at := ago(age)
	a.Signal = &v1alpha1.Signal{Metric: a.Metric, State: state, AlarmTime: at, DatapointTime: &at, ValuePercent: percent, MessageID: "m1"}
	return a
}

func (a Alarm) without(what string) Alarm {
	if what == "state" {
		a.State = ""
	} else {
		a.Evidence = Evidence{}
	}
	return a
}

func (a Alarm) measured(age time.Duration) Alarm {
	a.Evidence.Time = noon().Add(-age)
	return a
}

func completedFlavor(age time.Duration) v1alpha1.Change {
	return v1alpha1.Change{Kind: v1alpha1.KindFlavor, Outcome: v1alpha1.OutcomeCompleted, CompletionTime: ago(age), To: "rds.mysql.n1.2xlarge.4"}
}

func both(f, g func(*Case)) func(*Case) { return func(c *Case) { f(c); g(c) } }

func pendingVolume(age time.Duration) func(*Case) {
	return func(c *Case) {
		c.Wanted.VolumeGB, c.Status.Pending = 110, intentTo(v1alpha1.KindVolume, "100", "110", age)
	}
}

func pendingFlavor(age time.Duration) func(*Case) {
	return func(c *Case) {
		c.Wanted.Flavor = "rds.mysql.n1.4xlarge.4"
		c.Status.Pending = intentTo(v1alpha1.KindFlavor, "rds.mysql.n1.2xlarge.4", c.Wanted.Flavor, age)
	}
}

func busy(status string) func(*Case) { return func(c *Case) { c.Instance.Status = status } }

func activeFor(d time.Duration) func(*Case) {
	return func(c *Case) {
		since := metav1.NewTime(noon().Add(-d))
		c.Status.Instance.ActiveSince = &since
	}
}

func cooldown(s int32) func(*Case) { return func(c *Case) { c.Spec.Flavor.CooldownSeconds = &s } }

func soldOut(zone string) func(*Case) { return zoneState(zone, flavors.ZoneSoldOut) }

func zoneState(zone, state string) func(*Case) {
	return func(c *Case) {
		for i := range c.Catalogue {
			c.Catalogue[i].Zones = map[string]string{"eu-de-01": flavors.ZoneNormal, "eu-de-02": flavors.ZoneNormal, "eu-de-03": flavors.ZoneNormal}
			c.Catalogue[i].Zones[zone] = state
		}
	}
}

func replica(engine string) func(*Case) {
	return func(c *Case) {
		c.Instance.Engine = engine
		c.Instance.Replicas = []Replica{{Name: "reader", VCPUs: 8, MemoryGB: 32}}
		for i := range c.Catalogue {
			c.Catalogue[i].Engine = engine
		}
	}
}

// changed enters a completed change of flavor for CPU that was decided that long ago.
func changed(age time.Duration, value string) func(*Case) {
	return func(c *Case) {
		at := ago(age)
		c.Status.Changes = append(c.Status.Changes, v1alpha1.Change{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, From: "rds.mysql.n1.xlarge.4", To: "rds.mysql.n1.2xlarge.4",
			Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU}, ValuePercent: value, DecisionTime: &at, CompletionTime: at, Outcome: v1alpha1.OutcomeCompleted,
		})
	}
}

func lostOne(c *Case) { c.Status.Changes[0].Outcome = v1alpha1.OutcomeLost }

// contestedFor enters that somebody made the flavor smaller that long ago.
func contestedFor(d time.Duration) func(*Case) {
	return func(c *Case) {
		c.Status.Changes = append([]v1alpha1.Change{{
			Kind: v1alpha1.KindFlavor, By: v1alpha1.ByOther, From: "rds.mysql.n1.2xlarge.4", To: "rds.mysql.n1.xlarge.4",
			CompletionTime: ago(d), Outcome: v1alpha1.OutcomeCompleted,
		}}, c.Status.Changes...)
	}
}

// rolledBackFor enters that the cloud left our flavor that long ago although the Rds asked for it.
func rolledBackFor(d time.Duration) func(*Case) {
	return func(c *Case) {
		contestedFor(d)(c)
		c.Status.Changes[0].Outcome = v1alpha1.OutcomeRolledBack
	}
}

// wished is a wish of Wednesday whose window is open.
func wished(metrics ...v1alpha1.Metric) func(*Case) {
	return func(c *Case) {
		c.Status.Deferred = &v1alpha1.Deferred{
			Metrics: metrics, ValuePercent: "95.0",
			FirstTime: metav1.NewTime(noon().Add(-48 * time.Hour)), LastTime: metav1.NewTime(noon().Add(-47 * time.Hour)),
		}
	}
}

// undone puts the former flavor in place of ours, and the operator applies it.
func undone(c *Case) {
	c.Wanted.Flavor, c.Instance.Flavor, c.OtherWriter = "rds.mysql.n1.xlarge.4", "rds.mysql.n1.xlarge.4", "a-gitops-tool"
	c.Instance.VCPUs, c.Instance.MemoryGB = 4, 16
}

// cloudRefuses is a change that the cloud was asked for itself just now, and does not make.
func cloudRefuses(pending func(*Case), r Reason) func(*Case) {
	return func(c *Case) {
		pending(c)
		c.Spec.Apply = v1alpha1.ApplyCloud
		c.Status.Pending.AskedTime = &c.Status.Pending.DecisionTime // by a patch of the Rds
		c.Status.Pending = c.refused(c.Status.Pending, r, "in its words")
	}
}

// runningFor is a job of the cloud's that began that long ago.
func runningFor(d time.Duration) func(*Case) {
	return func(c *Case) {
		pendingVolume(d)(c)
		began := ago(d)
		c.Spec.Apply, c.Instance.Status = v1alpha1.ApplyCloud, "MODIFYING"
		c.Status.Pending.JobID, c.Status.Pending.JobTime, c.Status.Pending.AskedTime = "j1", &began, &began
	}
}
