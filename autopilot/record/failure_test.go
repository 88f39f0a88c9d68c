// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// loop is what the controller does with a case, for tests of what happens over time.
type loop struct {
	autopilot.Case
	patches []string
	apply   func(c *autopilot.Case, i v1alpha1.Intent) Patched // what the API server and everybody behind it do
	ended   []v1alpha1.Change
	news    []autopilot.Decision
}

func (l *loop) round(t *testing.T) autopilot.Verdict {
	t.Helper()
	f := FollowUp(l.Case)
	l.Status, l.ended = f.Status, append(l.ended, f.Ended...)
	c, v := decided(l.Case)
	p := Patched{}
	if v.Intent != nil {
		l.patches = append(l.patches, l.Now.Format("15:04:05 ")+v.Intent.To)
		p = l.apply(&l.Case, *v.Intent)
	}
	c.Wanted = l.Wanted
	done := Outcome(c, v, f, p)
	l.Status, l.ended, l.news = done.Status, append(l.ended, done.Ended...), append(l.news, done.News...)
	return v
}

// run goes on for that long, with a round whenever the verdict asks for one, and at least every interval.
func (l *loop) run(t *testing.T, long, interval time.Duration) {
	t.Helper()
	for end := l.Now.Add(long); l.Now.Before(end); {
		v := l.round(t)
		next := interval
		if v.RequeueAfter > 0 {
			next = min(next, v.RequeueAfter)
		}
		l.Now = l.Now.Add(next)
		for i := range l.Alarms {
			l.Alarms[i].Evidence.Time = l.Now
		}
	}
}

func condition(t *testing.T, s v1alpha1.Status, kind string) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(s.Conditions, kind)
	if c == nil {
		t.Fatalf("no condition %s in %+v", kind, s.Conditions)
	}
	return *c
}

// takesBack accepts a patch, and somebody else puts the old value back before anybody looks again.
func takesBack(_ *autopilot.Case, _ v1alpha1.Intent) Patched { return Patched{Result: PatchAccepted} }

// putsBack is something within the API server that does so.
func putsBack(*autopilot.Case, v1alpha1.Intent) Patched { return Patched{Result: PatchReverted} }

func TestRevertedSizeIsRequestedAgainAtLongerIntervals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		usedGB float64
		apply  func(*autopilot.Case, v1alpha1.Intent) Patched
		want   []string
	}{
		{"by a writer", 92, takesBack, []string{"12:00:00 110", "12:01:01 110", "12:06:02 110", "12:21:03 110", "12:36:04 110"}},
		{"by an admission policy", 92, putsBack, []string{"12:00:00 110", "12:01:00 110", "12:06:00 110", "12:21:00 110", "12:36:00 110"}},
		{"at 2 GB from read-only", 93, putsBack, []string{"12:00:00 110", "12:00:10 110", "12:00:40 110", "12:01:40 110", "12:02:40 110"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &loop{Case: cases.Quiet(cases.StorageAt(tc.usedGB)), apply: tc.apply}
			for i := 0; len(l.patches) < 5 && i < 10000; i++ {
				l.run(t, time.Second, time.Second)
				if len(l.patches) > 0 && condition(t, l.Status, v1alpha1.ConditionContested).Status != metav1.ConditionTrue && l.Status.Pending == nil {
					t.Fatalf("at %s not contested: %+v", l.Now, l.Status)
				}
			}
			if got := strings.Join(l.patches, ", "); got != strings.Join(tc.want, ", ") {
				t.Errorf("patched at %s\nwant %s", got, strings.Join(tc.want, ", "))
			}
			if n := len(l.Status.Changes); n != 1 || l.Status.Changes[0].Count < 4 {
				t.Errorf("changes %+v, want one with a count", l.Status.Changes)
			}
			for _, ch := range l.ended {
				if ch.Outcome != v1alpha1.OutcomeLost {
					t.Errorf("ended %+v", ch)
				}
			}
			l.Generation++ // a new spec ends it
			if v := verdictOf(l.Case); v.Intent == nil {
				t.Errorf("after a new spec: %+v", v)
			}
		})
	}
}

func TestRevertedFlavorIsNotRequestedAgain(t *testing.T) {
	for name, apply := range map[string]func(*autopilot.Case, v1alpha1.Intent) Patched{"by a writer": takesBack, "by an admission policy": putsBack} {
		l := &loop{Case: cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95)), apply: apply}
		l.run(t, 6*24*time.Hour, 5*time.Minute)
		if len(l.patches) != 1 {
			t.Errorf("%s: patched at %v, want once", name, l.patches)
		}
		c := condition(t, l.Status, v1alpha1.ConditionContested)
		if c.Status != metav1.ConditionTrue || c.Reason != string(autopilot.ReasonContested) {
			t.Errorf("%s: %+v", name, c)
		}
		l.Alarms, l.Catalogue = nil, nil // the alarm pauses, so no catalogue is read
		l.Now = l.Now.Add(time.Hour)
		l.round(t)
		if c := condition(t, l.Status, v1alpha1.ConditionContested); c.Status != metav1.ConditionTrue {
			t.Errorf("%s: forgotten while the alarm pauses: %+v", name, c)
		}
		l.Wanted.Flavor = l.Status.Changes[0].To
		l.round(t)
		if c := condition(t, l.Status, v1alpha1.ConditionContested); c.Status != metav1.ConditionFalse {
			t.Errorf("%s: the Rds asks for ours, and still %+v", name, c)
		}
	}
}

func TestRestoredFlavorIsContestedBeforeTheAlarmIsBack(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted string
		want   metav1.ConditionStatus
	}{
		"the flavor before ours":              {"rds.mysql.n1.xlarge.4", metav1.ConditionTrue},
		"ours":                                {"rds.mysql.n1.2xlarge.4", metav1.ConditionFalse},
		"another flavor, which may be larger": {"rds.mysql.n1.4xlarge.4", metav1.ConditionFalse},
	} {
		l := &loop{Case: cases.Quiet()}
		cases.Changed(2*time.Hour, "99.0")(&l.Case)
		l.Catalogue, l.Wanted.Flavor, l.FlavorWriter = nil, tc.wanted, "a-gitops-tool"
		for range 2 { // the second round no longer reads the writer
			l.round(t)
			c := condition(t, l.Status, v1alpha1.ConditionContested)
			if c.Status != tc.want {
				t.Errorf("%s: %+v", name, c)
			}
			const message = `Field manager "a-gitops-tool" replaced flavor rds.mysql.n1.2xlarge.4 by rds.mysql.n1.xlarge.4. The flavor stays for 7 days unless the spec changes`
			if tc.want == metav1.ConditionTrue && c.Message != message {
				t.Errorf("%s: %s", name, c.Message)
			}
			l.FlavorWriter = ""
		}
	}
}

func TestRefusedPatchIsReportedAndRetried(t *testing.T) {
	refuses := true
	l := &loop{Case: cases.Quiet(cases.StorageAt(93))}
	l.apply = func(c *autopilot.Case, i v1alpha1.Intent) Patched {
		if refuses {
			return Patched{Result: PatchRefused, Message: "denied by policy: not on Fridays"}
		}
		c.Wanted.VolumeGB = autopilot.Gigabytes(i.To)
		return Patched{Result: PatchAccepted}
	}
	l.run(t, 40*time.Minute, 30*time.Second)
	if got, want := strings.Join(l.patches, ", "), "12:00:00 110, 12:01:00 110, 12:03:00 110, 12:07:00 110, 12:15:00 110, 12:30:00 110"; got != want {
		t.Errorf("patched at %s\nwant       %s", got, want)
	}
	if len(l.news) != 1 || l.news[0].Reason != autopilot.ReasonRefused || !strings.Contains(l.news[0].Message, "not on Fridays") || !l.news[0].Reason.IsWarning() {
		t.Errorf("told %+v, want one refusal in the API server's words", l.news)
	}
	if c := condition(t, l.Status, v1alpha1.ConditionProgressing); c.Status != metav1.ConditionFalse || c.Reason != string(autopilot.ReasonRefused) {
		t.Errorf("%+v", c)
	}
	decided := l.Status.Pending.DecisionTime
	refuses = false
	l.run(t, 10*time.Minute, 30*time.Second)
	if p := l.Status.Pending; p == nil || p.AskedTime == nil || p.Refusal != nil || !p.DecisionTime.Equal(&decided) {
		t.Fatalf("pending %+v", p)
	}
	if d := l.news[1]; !d.Acts() || d.Action != autopilot.ActionGrowVolume || !strings.HasPrefix(l.Status.Decisions[len(l.Status.Decisions)-2].Message, "Storage 100 → 110 GB") {
		t.Errorf("told %+v, records %+v", d, l.Status.Decisions)
	}
	if c := condition(t, l.Status, v1alpha1.ConditionProgressing); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
}

func TestRefusedIntentIsDroppedWhenItsAlarmClears(t *testing.T) {
	l := &loop{Case: cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95))}
	l.apply = func(*autopilot.Case, v1alpha1.Intent) Patched { return Patched{Result: PatchRefused, Message: "no"} }
	l.round(t)
	l.Alarms = nil
	l.round(t)
	if l.Status.Pending != nil || len(l.Status.Changes) > 0 {
		t.Errorf("pending %+v, changes %+v: nothing was ever asked for", l.Status.Pending, l.Status.Changes)
	}
}

func TestIntentFoundInTheRdsIsReportedAsPatched(t *testing.T) {
	l := &loop{Case: cases.Quiet(cases.Signalled(cases.StorageAt(93), v1alpha1.StateAlarm, 30*time.Second, "93"))}
	v := verdictOf(l.Case)
	l.Status = Intent(l.Case, v) // killed after the patch, before it could note it
	l.Wanted.VolumeGB = 110
	l.round(t)
	if len(l.news) != 2 || !l.news[0].Acts() || l.news[0].Message != v.Decisions[0].Message || l.news[0].MessageID != "m1" || l.news[1].Reason != autopilot.ReasonChangePending {
		t.Fatalf("told %+v", l.news)
	}
}

func TestStalledSizeOfOthersIsReplacedOnlyNearReadOnly(t *testing.T) {
	for _, tc := range []struct {
		name   string
		wanted int
		usedGB float64
		reason autopilot.Reason
		to     string
	}{
		{"not urgent", 105, 92, autopilot.ReasonStalled, ""},
		{"nearly read-only", 105, 94, autopilot.ReasonAlarmInForce, "110"},
		{"read-only", 105, 99.5, autopilot.ReasonAlarmInForce, "120"},
		{"theirs is larger than ours would be", 133, 99.5, autopilot.ReasonAlarmInForce, "140"},
		{"theirs is a size the cloud could have", 130, 99.5, autopilot.ReasonStalled, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &loop{Case: cases.Quiet(cases.StorageAt(tc.usedGB)), apply: takesBack}
			l.Wanted.VolumeGB = tc.wanted
			l.run(t, 15*time.Minute, 30*time.Second)
			if len(l.patches) > 0 || l.Status.Decisions[0].Reason != string(autopilot.ReasonChangePending) {
				t.Fatalf("in time: patches %v, %+v", l.patches, l.Status.Decisions[0])
			}
			v := verdictOf(l.Case)
			if d := v.Decisions[0]; d.Reason != tc.reason || d.To != tc.to {
				t.Errorf("%s to %q: %s", d.Reason, d.To, d.Message)
			}
		})
	}
}

func TestStalledSizeOfOthersIsReplacedWhenStorageIsFull(t *testing.T) {
	l := &loop{Case: cases.Quiet(cases.StorageAt(99.5)), apply: takesBack}
	l.Wanted.VolumeGB, l.Instance.Status = 105, autopilot.StatusStorageFull
	l.run(t, 15*time.Minute, 30*time.Second)
	if v := verdictOf(l.Case); len(l.patches) > 0 || v.Intent == nil || v.Intent.To != "120" {
		t.Errorf("patches %v, then %+v", l.patches, v)
	}
}

func TestStalledFlavorOfOthersIsReported(t *testing.T) {
	l := &loop{Case: cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95))}
	l.Wanted.Flavor = "rds.mysql.n1.5xlarge.4"
	l.run(t, 15*time.Minute+time.Second, 30*time.Second)
	if r := l.Status.Decisions[0]; r.Reason != string(autopilot.ReasonStalled) || !autopilot.ReasonStalled.IsWarning() || !strings.Contains(r.Message, "rds.mysql.n1.5xlarge.4 since 2026-11-20T12:00:00Z") {
		t.Errorf("%+v", r)
	}
	l.Instance.Status = "MODIFYING" // somebody works on it
	l.round(t)
	if r := l.Status.Decisions[0]; r.Reason != string(autopilot.ReasonChangePending) {
		t.Errorf("%+v", r)
	}
}

func TestDecideWaitsForAMeasurementAfterAChange(t *testing.T) {
	c := cases.Quiet()
	c.Status.Changes = []v1alpha1.Change{cases.CompletedFlavor(30 * time.Second)}
	if v := verdictOf(cases.With(c, cases.UsageAt(v1alpha1.MetricCPU, 95))); len(v.Decisions) > 0 || v.RequeueAfter != autopilot.DataRequeue {
		t.Errorf("half a minute after the change: %+v", v)
	}
	if v := verdictOf(cases.With(c, cases.MeasuredAgo(cases.UsageAt(v1alpha1.MetricCPU, 95), 36*time.Minute))); len(v.Decisions) != 1 || v.Decisions[0].Reason != autopilot.ReasonStaleEvidence {
		t.Errorf("no data for half an hour: %+v", v)
	}
}

func TestDecideNeedsTheSizeOfTheFlavorAndACap(t *testing.T) {
	unknown := func() autopilot.Case {
		c := cases.Quiet()
		c.Instance.Flavor, c.Instance.VCPUs, c.Instance.MemoryGB = "rds.mysql.former.9xlarge", 0, 0
		c.Wanted.Flavor = c.Instance.Flavor
		return c
	}
	if d := verdictOf(cases.With(unknown(), cases.UsageAt(v1alpha1.MetricCPU, 95))).Decisions[0]; d.Reason != autopilot.ReasonNoData || d.Action != autopilot.ActionNone {
		t.Errorf("size unknown: %s %s", d.Reason, d.Message)
	}
	c := cases.Quiet()
	c.Status.Baseline = nil
	if d := verdictOf(cases.With(c, cases.UsageAt(v1alpha1.MetricCPU, 95))).Decisions[0]; d.Reason != autopilot.ReasonNoData {
		t.Errorf("no cap known: %s %s", d.Reason, d.Message)
	}
	c.Spec.Flavor.MaxVCPUs, c.Spec.Flavor.MaxMemoryGB = new(int32(16)), new(int32(64))
	if d := verdictOf(cases.With(c, cases.UsageAt(v1alpha1.MetricCPU, 95))).Decisions[0]; d.Reason != autopilot.ReasonAlarmInForce {
		t.Errorf("caps given: %s %s", d.Reason, d.Message)
	}
	c = unknown()
	c.Status.Baseline = nil
	if b := FollowUp(c).Status.Baseline; b == nil || b.VolumeGB != 100 || b.VCPUs != 0 {
		t.Errorf("baseline %+v, want the volume alone, on which the default cap rests", b)
	}
	c.Instance.Flavor = "rds.mysql.n1.2xlarge.4"
	known := c.Instance.WithSizes(cases.Catalogue())
	c.Instance = &known
	if b := FollowUp(c).Status.Baseline; b == nil || b.VCPUs != 8 || b.MemoryGB != 32 {
		t.Errorf("baseline %+v, want the catalogue's 8 vCPUs and 32 GB", b)
	}
}

func TestFollowUpSetsABaselineForAFullInstance(t *testing.T) {
	c := cases.Quiet()
	c.Status = v1alpha1.Status{}
	c.Instance.Status = autopilot.StatusStorageFull
	if FollowUp(c).Status.Baseline == nil {
		t.Error("turned on for a full database, there is no baseline")
	}
}

func TestRepeatedChangesOfOthersAreCountedInOneEntry(t *testing.T) {
	c := cases.Quiet()
	cases.Changed(30*time.Minute, "95.0")(&c)
	const before = "rds.mysql.n1.xlarge.4"
	ours := c.Instance.Flavor
	for range 7 {
		for _, code := range []string{before, ours} {
			c.Now = c.Now.Add(10 * time.Second)
			c.Instance.Flavor = code
			c.Status = FollowUp(c).Status
		}
	}
	if n := len(c.Status.Changes); n != 3 || len(c.OurFlavorChanges()) != 1 {
		t.Fatalf("%d changes, want ours and two that are counted: %+v", n, c.Status.Changes)
	}
	back := c.Status.Changes[1]
	if back.Outcome != v1alpha1.OutcomeRolledBack || back.Count != 7 || back.To != before {
		t.Errorf("%+v", back)
	}
	c.Status.Conditions = nil
	a := cases.UsageAt(v1alpha1.MetricCPU, 99)
	a.Evidence.Time = c.Now.Add(time.Minute)
	c.Now = c.Now.Add(2 * time.Hour)
	a.Evidence.Time = c.Now
	if d := verdictOf(cases.With(c, a)).Decisions[0]; d.Reason != autopilot.ReasonRolledBack {
		t.Errorf("the cloud is at our flavor again: %s %s", d.Reason, d.Message)
	}
}

// The cloud has our flavor, but is not ACTIVE yet, and goes back: the intent is still open.
func TestFlavorRevertedBeforeActiveIsRolledBack(t *testing.T) {
	c := cases.Quiet()
	before, to := c.Instance.Flavor, "rds.mysql.n1.4xlarge.4"
	c.Wanted.Flavor = to
	c.Status.Pending = &v1alpha1.Intent{
		Kind: v1alpha1.KindFlavor, From: before, To: to, Metrics: []v1alpha1.Metric{v1alpha1.MetricCPU}, DecisionTime: *autopilot.Micro(c.Now), AskedTime: autopilot.Micro(c.Now),
	}
	for _, code := range []string{to, before} {
		c.Now = c.Now.Add(10 * time.Second)
		c.Instance.Flavor, c.Instance.Status = code, "MODIFYING"
		c.Status = FollowUp(c).Status
	}
	if changes := c.Status.Changes; len(changes) == 0 || changes[0].Outcome != v1alpha1.OutcomeRolledBack || c.Status.Pending == nil {
		t.Fatalf("%+v, pending %+v", changes, c.Status.Pending)
	}
	c.Now = c.Now.Add(time.Hour)
	c.Instance.Flavor, c.Instance.Status = to, autopilot.StatusActive
	c.Status = FollowUp(c).Status
	c.Now = c.Now.Add(2 * time.Hour)
	a := cases.UsageAt(v1alpha1.MetricCPU, 99)
	a.Evidence.Time = c.Now
	if d := verdictOf(cases.With(c, a)).Decisions[0]; d.Reason != autopilot.ReasonRolledBack {
		t.Errorf("the cloud is at our flavor again: %s %s", d.Reason, d.Message)
	}
}

func TestRecordsOfOneMetricDoNotPushOutOthers(t *testing.T) {
	var s v1alpha1.Status
	recordDecision(&s, autopilot.Decision{Metric: v1alpha1.MetricCPU, Reason: autopilot.ReasonCooldown}, cases.Noon())
	for i := range 50 {
		recordDecision(&s, autopilot.Decision{Metric: v1alpha1.MetricStorage, To: strconv.Itoa(i)}, cases.Noon())
	}
	if last := s.Decisions[len(s.Decisions)-1]; len(s.Decisions) != recordsKept || last.Metric != v1alpha1.MetricCPU {
		t.Errorf("%d records, the last %+v", len(s.Decisions), last)
	}
}

func TestSetOffLeavesOnlyReadyTrue(t *testing.T) {
	var s v1alpha1.Status
	for _, kind := range []string{v1alpha1.ConditionLimited, v1alpha1.ConditionContested, v1alpha1.ConditionProgressing, v1alpha1.ConditionArmed} {
		SetCondition(&s, kind, true, "Some", "some", 1, cases.Noon())
	}
	SetOff(&s, string(autopilot.ReasonNotEnabled), "The mode is Off", 1, cases.Noon())
	for _, c := range s.Conditions {
		if want := c.Type == v1alpha1.ConditionReady; (c.Status == metav1.ConditionTrue) != want {
			t.Errorf("%+v", c)
		}
	}
}

func TestUpdateWarningsReportsALongWaitForTheFleetLimitOnce(t *testing.T) {
	l := &loop{Case: cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95))}
	l.HasPlace = false
	l.run(t, 5*time.Hour+59*time.Minute, time.Minute)
	if w := UpdateWarnings(l.Case, &l.Status); len(w) > 0 {
		t.Fatalf("too early: %+v", w)
	}
	l.Now = cases.Noon().Add(6*time.Hour + time.Second)
	if w := UpdateWarnings(l.Case, &l.Status); len(w) != 1 || w[0].Reason != autopilot.ReasonFleetBrake {
		t.Errorf("after six hours: %+v", w)
	}
	if w := UpdateWarnings(l.Case, &l.Status); len(w) != 0 {
		t.Errorf("a second time: %+v", w)
	}
}

func TestUpdateWarningsReportsNoWaitForTheFleetLimitWhenTheAlarmHasEnded(t *testing.T) {
	l := &loop{Case: cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 95))}
	l.HasPlace = false
	check := func(when string, want bool) {
		t.Helper()
		got := slices.ContainsFunc(l.Status.Warned, func(w v1alpha1.Warned) bool { return w.Reason == string(autopilot.ReasonFleetBrake) })
		if got != want {
			t.Errorf("%s: warned %t, want %t", when, got, want)
		}
	}
	l.run(t, 10*time.Minute, time.Minute)
	l.Alarms[0].State = v1alpha1.StateOK
	l.run(t, 7*time.Hour, time.Hour)
	check("after the alarm", false)
	l.Alarms[0].State = v1alpha1.StateAlarm
	l.run(t, 5*time.Minute, time.Minute)
	check("in another alarm", false)
	l.run(t, 6*time.Hour, time.Minute)
	check("six hours later", true)
}

func TestInvalidWindowStopsFlavorsOnly(t *testing.T) {
	spec := cases.Policy()
	spec.Flavor.Window = &v1alpha1.Window{Start: "01:00", End: "05:00", TimeZone: "Europe/Berln"}
	rules := v1alpha1.Alarms{Subscription: v1alpha1.SubscriptionConfirmed}
	for _, m := range autopilot.Metrics() {
		rules.Rules = append(rules.Rules, v1alpha1.Rule{Metric: m, AlarmID: "al-" + string(m), State: v1alpha1.StateOK})
	}
	if ok, reason, message := Armed(spec, rules, cases.Noon()); ok || reason != string(autopilot.ReasonPolicyInvalid) || !strings.Contains(message, "Europe/Berln") {
		t.Errorf("armed %t, %s: %s", ok, reason, message)
	}
	c := cases.Quiet(cases.StorageAt(93))
	c.Spec = spec
	if v := verdictOf(c); v.Intent == nil {
		t.Errorf("storage: %+v", v)
	}
}
