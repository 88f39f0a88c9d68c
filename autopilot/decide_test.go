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
