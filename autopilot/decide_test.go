package autopilot

import (
	"strings"
	"testing"
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
			Baseline: &v1alpha1.Baseline{VolumeGB: 100, Flavor: "rds.mysql.n1.2xlarge.4", VCPUs: 8, MemoryGB: 32},
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

func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		name   string
		alter  func(*Case)
		alarms []Alarm
		action Action
		reason Reason
		to     string
		says   string // part of the sentence
	}{
		{"a full volume grows", nil, []Alarm{storageAt(93.1)}, ActionGrowVolume, ReasonAlarmInForce, "110", "Storage 100 → 110 GB: 93.1 % used, alarm at 90 %"},
		{"a busy CPU gets the next flavor", nil, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", "8 vCPUs, 32 GB) → rds.mysql.n1.4xlarge.4 (16 vCPUs, 64 GB)"},
		{"full memory gets the next flavor", nil, []Alarm{usageAt(v1alpha1.MetricMemory, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},

		{"mode Off", func(c *Case) { c.Mode = v1alpha1.ModeOff }, []Alarm{storageAt(93)}, ActionNone, ReasonNotEnabled, "", ""},
		{"spec.autopilot false", func(c *Case) { c.Enabled = false }, []Alarm{storageAt(93)}, ActionNone, ReasonNotEnabled, "", ""},
		{"a policy the schema could not catch", func(c *Case) { c.Spec.Flavor.Window = &v1alpha1.Window{TimeZone: "Nowhere/Here"} }, []Alarm{storageAt(93)}, ActionNone, ReasonPolicyInvalid, "", "spec.flavor.window.timeZone"},
		{"no such instance", func(c *Case) { c.Instance = nil }, []Alarm{storageAt(93)}, ActionNone, ReasonInstanceUnknown, "", ""},
		{"two Rds with one instance", func(c *Case) { c.Shared = true }, []Alarm{storageAt(93)}, ActionNone, ReasonInstanceUnknown, "", "Another Rds"},

		{"a message said alarm, Cloud Eye says ok", nil, []Alarm{signalled(Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}, v1alpha1.StateAlarm, 3*time.Minute, "93")}, ActionNone, ReasonAlarmCleared, "", ""},
		{"Cloud Eye does not answer, a fresh message does", nil, []Alarm{signalled(storageAt(93).without("state"), v1alpha1.StateAlarm, 29*time.Minute, "93")}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"Cloud Eye does not answer, the message is old", nil, []Alarm{signalled(storageAt(93).without("state"), v1alpha1.StateAlarm, 31*time.Minute, "93")}, ActionNone, ReasonNoData, "", ""},
		{"no data is neither zero nor high", nil, []Alarm{storageAt(93).without("evidence")}, ActionNone, ReasonNoData, "", ""},
		{"data of half an hour ago decides nothing", nil, []Alarm{storageAt(93).measured(31 * time.Minute)}, ActionNone, ReasonStaleEvidence, "", ""},
		{"in force, but below the threshold by now", nil, []Alarm{storageAt(89)}, ActionNone, ReasonBelowThreshold, "", ""},
		{"CPU below the threshold by now", nil, []Alarm{usageAt(v1alpha1.MetricCPU, 89.9)}, ActionNone, ReasonBelowThreshold, "", ""},
		{"CPU measured before the last change of flavor", func(c *Case) { c.Status.Changes = []v1alpha1.Change{completedFlavor(30 * time.Second)} }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonStaleEvidence, "", ""},
		{"CPU measured after the last change of flavor", func(c *Case) { c.Status.Changes = []v1alpha1.Change{completedFlavor(2 * time.Minute)} }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},

		{"a volume change is under way", pendingVolume(time.Minute), []Alarm{storageAt(93)}, ActionNone, ReasonChangePending, "", ""},
		{"a volume change holds flavors back", pendingVolume(time.Minute), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonChangePending, "", ""},
		{"a volume change is stalled", pendingVolume(15 * time.Minute), []Alarm{storageAt(93)}, ActionNone, ReasonStalled, "", "look at the operator"},
		{"not stalled while the instance is busy", both(pendingVolume(15*time.Minute), busy("MODIFYING")), []Alarm{storageAt(93)}, ActionNone, ReasonChangePending, "", ""},
		{"a flavor change holds storage back at first", pendingFlavor(9 * time.Minute), []Alarm{storageAt(93)}, ActionNone, ReasonChangePending, "", ""},
		{"but not for ever", pendingFlavor(10 * time.Minute), []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"the Rds asks for more than the cloud has", func(c *Case) { c.Wanted.VolumeGB = 120 }, []Alarm{storageAt(93)}, ActionNone, ReasonChangePending, "", "120 GB"},
		{"the cloud grew by itself", func(c *Case) { c.Wanted.VolumeGB = 40 }, []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"the Rds asks for another flavor than the cloud has", func(c *Case) { c.Wanted.Flavor = "rds.mysql.n1.large.4" }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonChangePending, "", ""},
		{"an intent that was never patched is decided anew", func(c *Case) { c.Status.Pending = intentTo(v1alpha1.KindVolume, "100", "110", time.Minute) }, []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},

		{"busy", busy("MODIFYING"), []Alarm{storageAt(93)}, ActionNone, ReasonInstanceBusy, "", "MODIFYING"},
		{"busy, for flavors", busy("BACKING UP"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonInstanceBusy, "", ""},
		{"ACTIVE for too short a time to change the flavor", activeFor(14 * time.Minute), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonInstanceBusy, "", "1m0s"},
		{"ACTIVE for long enough", activeFor(15 * time.Minute), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"ACTIVE for as long as a short cooldown", both(activeFor(time.Minute), cooldown(60)), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"ACTIVE for too short a time does not hold storage back", activeFor(time.Second), []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"storage full grows once", busy(StatusStorageFull), []Alarm{storageAt(99)}, ActionGrowVolume, ReasonAlarmInForce, "120", ""},
		{"storage full, asked for once", both(busy(StatusStorageFull), pendingVolume(time.Minute)), []Alarm{storageAt(99)}, ActionNone, ReasonStorageFull, "", "may refuse"},

		{"at the cap", func(c *Case) { c.Spec.Storage.MaxGB = 100 }, []Alarm{storageAt(93)}, ActionNone, ReasonCapReached, "", "spec.storage.maxGB is 100"},
		{"the last step is clamped", func(c *Case) { c.Spec.Storage.StepGB, c.Spec.Storage.MaxGB = 50, 120 }, []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "120", ""},
		{"flavor caps", func(c *Case) { c.Spec.Flavor.MaxVCPUs = new(int32(8)) }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonCapReached, "", "caps of 8 vCPUs"},
		{"without a cap, four times the first is the most", func(c *Case) { c.Status.Baseline.VCPUs = 2 }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonCapReached, "", ""},
		{"none larger", func(c *Case) { c.Catalogue = c.Catalogue[:3] }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonNoLargerFlavor, "", ""},
		{"sold out in one of its zones", soldOut("eu-de-02"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonSoldOut, "", "rds.mysql.n1.4xlarge.4 is sold out in eu-de-02"},
		{"sold out elsewhere", soldOut("eu-de-03"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"catalogue unreadable", func(c *Case) { c.Catalogue = nil }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonNoData, "", ""},
		{"a PostgreSQL replica would be smaller", replica("PostgreSQL"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonReplicaTooSmall, "", "reader"},
		{"a MySQL replica may be smaller", replica("MySQL"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},

		{"cooldown", changed(59*time.Minute, "95.0"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonCooldown, "", "1m0s"},
		{"cooldown over", changed(61*time.Minute, "99.0"), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"a lost change cools down too", both(changed(30*time.Minute, "95.0"), lostOne), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonCooldown, "", ""},
		{"cooldown of zero", both(changed(10*time.Minute, "99.0"), cooldown(0)), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"cooldown does not hold storage back", changed(time.Minute, "95.0"), []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"the budget of a day is spent", both(changed(3*time.Hour, "95.0"), changed(20*time.Hour, "95.0")), []Alarm{usageAt(v1alpha1.MetricMemory, 95)}, ActionNone, ReasonBudgetSpent, "", "2 times"},
		{"the budget of yesterday", both(changed(3*time.Hour, "95.0"), changed(25*time.Hour, "95.0")), []Alarm{usageAt(v1alpha1.MetricMemory, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"two changes that did not help", both(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "97.0")), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionNone, ReasonNoEffect, "", "cpu"},
		{"one change that did not help", changed(30*time.Hour, "94.0"), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"one of two helped", both(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "99.9")), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"no effect a week ago", both(changed(30*time.Hour, "94.0"), changed(8*24*time.Hour, "97.0")), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"no effect under another spec", both(both(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "97.0")), func(c *Case) { c.Generation++ }), []Alarm{usageAt(v1alpha1.MetricCPU, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"no effect on CPU says nothing of memory", both(changed(30*time.Hour, "94.0"), changed(60*time.Hour, "97.0")), []Alarm{usageAt(v1alpha1.MetricMemory, 93)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"somebody put a smaller one in place of ours", both(changed(2*time.Hour, "95.0"), undone), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonContested, "", "a-gitops-tool put rds.mysql.n1.xlarge.4 in place of rds.mysql.n1.2xlarge.4"},
		{"contested by a new spec no more", both(changed(2*time.Hour, "95.0"), both(undone, func(c *Case) { c.Generation++ })), []Alarm{usageAt(v1alpha1.MetricCPU, 99)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.2xlarge.4", ""},
		{"smaller a day later is nobody's contest", both(changed(25*time.Hour, "95.0"), undone), []Alarm{usageAt(v1alpha1.MetricCPU, 99)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.2xlarge.4", ""},
		{"the cloud went back by itself", both(changed(2*time.Hour, "95.0"), flavored("rds.mysql.n1.xlarge.4")), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonRolledBack, "", "by itself"},
		{"too many in the cluster", func(c *Case) { c.FleetBusy = true }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonFleetBrake, "", "--max-flavor-changes"},
		{"the brake does not hold storage back", func(c *Case) { c.FleetBusy = true }, []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},
		{"outside the window", window("Sat", "01:00", "05:00"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionNone, ReasonOutsideWindow, "", "2026-11-21T01:00:00Z"},
		{"inside the window", window("Fri", "11:00", "13:00"), []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonAlarmInForce, "rds.mysql.n1.4xlarge.4", ""},
		{"the window is not for storage", window("Sat", "01:00", "05:00"), []Alarm{storageAt(93)}, ActionGrowVolume, ReasonAlarmInForce, "110", ""},

		{"recommend only, storage", func(c *Case) { c.Mode = v1alpha1.ModeRecommend }, []Alarm{storageAt(93)}, ActionGrowVolume, ReasonRecommend, "110", ""},
		{"recommend only, flavor", func(c *Case) { c.Mode = v1alpha1.ModeRecommend }, []Alarm{usageAt(v1alpha1.MetricCPU, 95)}, ActionChangeFlavor, ReasonRecommend, "rds.mysql.n1.4xlarge.4", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := quiet()
			if tc.alter != nil {
				tc.alter(&c)
			}
			v := Decide(c.with(tc.alarms...))
			if len(v.Decisions) != 1 {
				t.Fatalf("%d decisions, want 1: %+v", len(v.Decisions), v.Decisions)
			}
			d := v.Decisions[0]
			if d.Action != tc.action || d.Reason != tc.reason || d.To != tc.to {
				t.Errorf("%s %s to %q (%s), want %s %s to %q", d.Action, d.Reason, d.To, d.Message, tc.action, tc.reason, tc.to)
			}
			if !strings.Contains(d.Message, tc.says) || d.Message == "" {
				t.Errorf("it says %q, want %q in it", d.Message, tc.says)
			}
			if acts := tc.reason == ReasonAlarmInForce; acts != (v.Intent != nil) {
				t.Errorf("intent %+v with reason %s", v.Intent, tc.reason)
			}
		})
	}
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

func soldOut(zone string) func(*Case) {
	return func(c *Case) {
		for i := range c.Catalogue {
			c.Catalogue[i].Zones = map[string]string{"eu-de-01": flavors.ZoneNormal, "eu-de-02": flavors.ZoneNormal, "eu-de-03": flavors.ZoneNormal}
			c.Catalogue[i].Zones[zone] = flavors.ZoneSoldOut
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

func TestStorageGoesBeforeFlavors(t *testing.T) {
	v := Decide(quiet().with(usageAt(v1alpha1.MetricCPU, 95), storageAt(93)))
	if v.Intent == nil || v.Intent.Kind != v1alpha1.KindVolume {
		t.Fatalf("intent %+v, want the volume", v.Intent)
	}
	if len(v.Decisions) != 2 {
		t.Fatalf("%d decisions, want one for each alarm", len(v.Decisions))
	}
}

func TestCPUAndMemoryMakeOneChangeThatServesBoth(t *testing.T) {
	v := Decide(quiet().with(usageAt(v1alpha1.MetricCPU, 95), usageAt(v1alpha1.MetricMemory, 97)))
	if v.Intent == nil || v.Intent.To != "rds.mysql.n1.4xlarge.4" || len(v.Intent.Metrics) != 2 {
		t.Fatalf("intent %+v, want one for both", v.Intent)
	}
	if len(v.Decisions) != 2 || !v.Decisions[0].Acts() || !v.Decisions[1].Acts() {
		t.Errorf("decisions %+v, want one for each alarm", v.Decisions)
	}
}

func TestNothingIsSaidWithoutAnAlarm(t *testing.T) {
	for name, a := range map[string]Alarm{
		"state ok, no message":          {Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK},
		"state ok, message ok":          signalled(Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}, v1alpha1.StateOK, time.Minute, "50"),
		"insufficient data, no message": {Metric: v1alpha1.MetricStorage, State: v1alpha1.StateInsufficientData},
	} {
		if v := Decide(quiet().with(a)); len(v.Decisions) != 0 || v.Intent != nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestAnOKThatMayBeOlderThanTheMessageIsLookedAtAgain(t *testing.T) {
	v := Decide(quiet().with(signalled(Alarm{Metric: v1alpha1.MetricStorage, State: v1alpha1.StateOK}, v1alpha1.StateAlarm, time.Minute, "93")))
	if len(v.Decisions) != 0 || v.Again != 30*time.Second {
		t.Fatalf("decisions %+v, again in %s; want none and 30s", v.Decisions, v.Again)
	}
}

func TestAnIntentDecidedAnewKeepsItsTime(t *testing.T) {
	c := quiet()
	c.Status.Pending = intentTo(v1alpha1.KindVolume, "100", "110", time.Minute)
	v := Decide(c.with(storageAt(96)))
	if v.Intent == nil || !v.Intent.DecisionTime.Time.Equal(noon().Add(-time.Minute)) {
		t.Fatalf("intent %+v, want the decision time of the first", v.Intent)
	}
}

func TestTheMessageItselfIsEvidenceWhereCloudEyeDoesNotAnswer(t *testing.T) {
	c := quiet()
	c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, From: "90", To: "100", Outcome: v1alpha1.OutcomeCompleted, CompletionTime: ago(time.Minute)}}
	a := signalled(Alarm{Metric: v1alpha1.MetricStorage}, v1alpha1.StateAlarm, 5*time.Minute, "95")
	a.Evidence = a.Carried(c)
	if a.Evidence.UsedGB != 85.5 {
		t.Fatalf("%g GB used, want 95 %% of the 90 GB the volume had then", a.Evidence.UsedGB)
	}
	if v := Decide(c.with(a)); v.Intent != nil {
		t.Errorf("the evidence of before a growth asked for another: %+v", v.Intent)
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

// undone is somebody who put the flavor of before in place of ours, and the operator who applied it.
func undone(c *Case) {
	c.Wanted.Flavor, c.Instance.Flavor, c.Rival = "rds.mysql.n1.xlarge.4", "rds.mysql.n1.xlarge.4", "a-gitops-tool"
	c.Instance.VCPUs, c.Instance.MemoryGB = 4, 16
}

func window(day v1alpha1.Day, start, end string) func(*Case) {
	return func(c *Case) {
		c.Spec.Flavor.Window = &v1alpha1.Window{Days: []v1alpha1.Day{day}, Start: start, End: end, TimeZone: "UTC"}
	}
}

func TestAnAlarmOnWednesdayIsServedInSaturdaysWindow(t *testing.T) {
	c := quiet()
	window("Sat", "01:00", "05:00")(&c)
	activeFor(30 * 24 * time.Hour)(&c)
	at := func(day time.Time, alarm bool) Verdict {
		c.Now, c.Alarms = day, nil
		c.Alarms = []Alarm{{Metric: v1alpha1.MetricCPU, State: v1alpha1.StateOK}}
		if alarm {
			c.Alarms[0].State, c.Alarms[0].Evidence = v1alpha1.StateAlarm, Evidence{Time: day, Percent: 95}
		}
		v := Decide(c)
		c.Status, _ = Apply(c, v)
		return v
	}
	wednesday := time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC)
	if v := at(wednesday, true); v.Intent != nil || c.Status.Deferred == nil {
		t.Fatalf("on Wednesday: intent %+v, deferred %+v", v.Intent, c.Status.Deferred)
	}
	v := at(wednesday.Add(time.Hour), false)
	if v.Intent != nil || c.Status.Deferred == nil || v.Again <= 0 {
		t.Fatalf("an hour later: intent %+v, deferred %+v, again in %s", v.Intent, c.Status.Deferred, v.Again)
	}
	v = at(wednesday.Add(time.Hour).Add(v.Again), false)
	if v.Intent == nil || v.Intent.Kind != v1alpha1.KindFlavor || c.Status.Deferred != nil {
		t.Fatalf("when the window opens: intent %+v, deferred %+v", v.Intent, c.Status.Deferred)
	}
}

func TestAWishIsForgotten(t *testing.T) {
	wish := func() Case {
		c := quiet()
		c.Status.Deferred = &v1alpha1.Deferred{
			Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU}, ValuePercent: "95.0",
			FirstTime: metav1.NewTime(noon().Add(-48 * time.Hour)), LastTime: metav1.NewTime(noon().Add(-47 * time.Hour)),
		}
		return c
	}
	if v := Decide(wish()); v.Intent == nil {
		t.Fatalf("without a window it is due: %+v", v)
	}
	for name, alter := range map[string]func(*Case){
		"after a week":              func(c *Case) { c.Now = c.Now.Add(8 * 24 * time.Hour) },
		"when the flavor changed":   func(c *Case) { c.Status.Changes = []v1alpha1.Change{completedFlavor(time.Hour)} },
		"when the metric is off":    func(c *Case) { off := false; c.Spec.Flavor.CPU.Enabled = &off },
		"when autopilot is off":     func(c *Case) { c.Enabled = false },
		"in mode Off":               func(c *Case) { c.Mode = v1alpha1.ModeOff },
		"when the instance is gone": func(c *Case) { c.Instance = nil },
	} {
		c := wish()
		alter(&c)
		if v := Decide(c); v.Intent != nil {
			t.Errorf("%s: %+v", name, v.Intent)
		}
	}
}

func TestWindow(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	berlin := func(day v1alpha1.Day, start, end string) v1alpha1.Window {
		return v1alpha1.Window{Days: []v1alpha1.Day{day}, Start: start, End: end, TimeZone: "Europe/Berlin"}
	}
	for _, tc := range []struct {
		name  string
		w     v1alpha1.Window
		now   string
		opens time.Duration
	}{
		{"open", berlin("Sat", "01:00", "05:00"), "2026-11-21T02:00:00+01:00", 0},
		{"at its start", berlin("Sat", "01:00", "05:00"), "2026-11-21T01:00:00+01:00", 0},
		{"at its end it is closed for a week", berlin("Sat", "01:00", "05:00"), "2026-11-21T05:00:00+01:00", 7*24*time.Hour - 4*time.Hour},
		{"an hour before", berlin("Sat", "01:00", "05:00"), "2026-11-21T00:00:00+01:00", time.Hour},
		{"the zone counts, not ours", berlin("Sat", "01:00", "05:00"), "2026-11-21T00:30:00Z", 0},
		{"over midnight, the evening", berlin("Sat", "22:00", "02:00"), "2026-11-21T23:00:00+01:00", 0},
		{"over midnight, the morning after", berlin("Sat", "22:00", "02:00"), "2026-11-22T01:59:00+01:00", 0},
		{"over midnight, over", berlin("Sat", "22:00", "02:00"), "2026-11-22T02:00:00+01:00", 7*24*time.Hour - 4*time.Hour},
		{"a whole day", berlin("Sat", "00:00", "00:00"), "2026-11-21T23:59:00+01:00", 0},
		{"the day the clock goes forward", berlin("Sun", "01:00", "05:00"), "2026-03-29T04:30:00+02:00", 0},
		{"closed by the new clock", berlin("Sun", "01:00", "05:00"), "2026-03-29T05:00:00+02:00", 7*24*time.Hour - 4*time.Hour},
		{"the day the clock goes back", berlin("Sun", "01:00", "05:00"), "2026-10-25T04:59:00+01:00", 0},
		{"an hour longer to wait that night", berlin("Sun", "04:00", "05:00"), "2026-10-25T02:00:00+02:00", 3 * time.Hour},
		{"a zone nobody knows", v1alpha1.Window{Days: []v1alpha1.Day{"Sat"}, Start: "00:00", End: "00:00", TimeZone: "No/Where"}, "2026-11-21T02:00:00Z", wishSpan},
	} {
		if got := Opens(tc.w, at(tc.now)); got != tc.opens {
			t.Errorf("%s: opens in %s, want %s", tc.name, got, tc.opens)
		}
	}
}

func TestAGrowthThatWasNotEnoughIsFollowedByAnother(t *testing.T) {
	c := quiet()
	c.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "90", To: "100", Outcome: v1alpha1.OutcomeCompleted, CompletionTime: ago(10 * time.Minute)}}
	a := storageAt(93)
	a.State, a.Grown = v1alpha1.StateOK, Grown(c.Status.Changes, c.Now) // the rule was rewritten, and starts anew
	if v := Decide(c.with(a)); v.Intent == nil || v.Intent.To != "110" {
		t.Errorf("measured after the growth: %+v", v)
	}
	a.Evidence.Time = noon().Add(-11 * time.Minute)
	if v := Decide(c.with(a)); v.Intent != nil || v.Again != dataAgain {
		t.Errorf("measured before the growth: %+v", v)
	}
	c.Status.Changes[0].CompletionTime = ago(2 * time.Hour)
	if g := Grown(c.Status.Changes, c.Now); !g.IsZero() {
		t.Errorf("two hours later it still counts: %s", g)
	}
}
