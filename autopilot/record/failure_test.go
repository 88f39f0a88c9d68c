// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/change"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/cases"
)

// loop runs rounds on a case as the controller does.
type loop struct {
	autopilot.Case
	patches []string
	apply   func(c *autopilot.Case, ch v1alpha1.Change) *Answer // returns the answer to a patch, and may change the Rds
	took    time.Duration                                       // by a request
	ended   []v1alpha1.Change
	news    []autopilot.Decision
}

func (l *loop) round(t *testing.T) autopilot.Verdict {
	t.Helper()
	l.IsSpecLive = true
	f := FollowUp(l.Case)
	l.Status, l.ended = f.Status, append(l.ended, f.Ended...)
	c, v := walked(l.Case)
	done := Outcome(c, v)
	l.Status, l.ended = done.Status, append(l.ended, done.Ended...)
	answer := &Answer{}
	for _, d := range done.News {
		if d.Acts() {
			answer.News = append(answer.News, d)
		} else {
			l.news = append(l.news, d)
		}
	}
	if done.Attempt == nil {
		return v
	}
	l.patches = append(l.patches, l.Now.Format("15:04:05 ")+v.Change.To)
	given := l.apply(&l.Case, *done.Attempt)
	if given == nil {
		l.Accepted = done.Attempt.RequestTime
		l.news = append(l.news, answer.News...)
		return v
	}
	given.Attempt, given.Before, given.Acting, given.News = *done.Attempt, done.Before, v.Decisions, answer.News
	c.Now, c.Wanted, c.IsSpecLive, c.Accepted = c.Now.Add(l.took), l.Wanted, true, done.Attempt.RequestTime
	answers, news, ended := given.Record(c, &l.Status)
	l.news, l.ended = append(l.news, news...), append(l.ended, ended...)
	for _, d := range answers {
		v.RequeueIn(d.RequeueAfter)
	}
	return v
}

// run runs rounds for that long: when the verdict requests one, and at least every interval.
func (l *loop) run(t *testing.T, duration, interval time.Duration) {
	t.Helper()
	for end := l.Now.Add(duration); l.Now.Before(end); {
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

// condition returns a condition of a status.
func condition(t *testing.T, s v1alpha1.Status, kind string) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(s.Conditions, kind)
	if c == nil {
		t.Fatalf("no condition %s in %+v", kind, s.Conditions)
	}
	return *c
}

// revertedLater accepts a patch. Another writer restores the old value before the next check.
func revertedLater(*autopilot.Case, v1alpha1.Change) *Answer { return nil }

// revertedAtOnce is an admission policy that restores the old value in the answer to the patch.
func revertedAtOnce(*autopilot.Case, v1alpha1.Change) *Answer {
	return &Answer{Reason: autopilot.ReasonContested}
}

func TestRevertedSizeIsRequestedAgainAtLongerIntervals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		usedGB float64
		apply  func(*autopilot.Case, v1alpha1.Change) *Answer
		want   []string
	}{
		{"by a writer", 92, revertedLater, []string{"12:00:00 110", "12:01:10 110", "12:06:20 110", "12:21:30 110", "12:36:40 110"}},
		{"by an admission policy", 92, revertedAtOnce, []string{"12:00:00 110", "12:01:00 110", "12:06:00 110", "12:21:00 110", "12:36:00 110"}},
		{"at 2 GB from read-only", 93, revertedAtOnce, []string{"12:00:00 110", "12:00:10 110", "12:00:40 110", "12:01:40 110", "12:02:40 110"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &loop{Case: cases.Quiet(cases.StorageAt(tc.usedGB)), apply: tc.apply}
			for i := 0; len(l.patches) < 5 && i < 10000; i++ {
				l.run(t, 10*time.Second, 10*time.Second)
				if len(l.patches) > 0 && condition(t, l.Status, v1alpha1.ConditionContested).Status != metav1.ConditionTrue && pendingOf(l.Status) == nil {
					t.Fatalf("at %s not contested: %+v", l.Now, l.Status)
				}
			}
			if got := strings.Join(l.patches, ", "); got != strings.Join(tc.want, ", ") {
				t.Errorf("patched at %s\nwant %s", got, strings.Join(tc.want, ", "))
			}
			for _, ch := range l.ended {
				if ch.State != v1alpha1.StateReplaced {
					t.Errorf("ended %+v", ch)
				}
			}
			l.run(t, 5*time.Second, 5*time.Second)
			l.Generation++ // a new spec ends it
			if v := verdictOf(l.Case); v.Change == nil {
				t.Errorf("after a new spec: %+v", v)
			}
		})
	}
}

// The operator applies the former flavor a day after a person has written it into the Rds.
func TestFlavorThatIsTakenBackLateIsContestedForSevenDays(t *testing.T) {
	l := &loop{Case: cases.Quiet(cases.UsageAt(v1alpha1.MetricCPU, 99)), apply: revertedLater}
	cases.Changed(2*time.Hour, "99.0")(&l.Case)
	l.Wanted.Flavor, l.FlavorWriter = "rds.mysql.n1.xlarge.4", "a-gitops-tool"
	l.run(t, 28*time.Hour, time.Hour)
	cases.Restored(&l.Case)
	l.run(t, 5*24*time.Hour, time.Hour)
	if c := condition(t, l.Status, v1alpha1.ConditionContested); len(l.patches) > 0 || c.Status != metav1.ConditionTrue {
		t.Errorf("patched at %v, %+v", l.patches, c)
	}
	l.run(t, 3*24*time.Hour, time.Hour)
	if len(l.patches) == 0 {
		t.Errorf("after 9 days, nothing is requested: %+v", l.Status.Decisions)
	}
}

func TestContestedFollowsTheFlavorThatTheRdsRequests(t *testing.T) {
	const former, ours, larger = "rds.mysql.n1.xlarge.4", "rds.mysql.n1.2xlarge.4", "rds.mysql.n1.4xlarge.4"
	l := &loop{Case: cases.Quiet()}
	cases.Changed(2*time.Hour, "99.0")(&l.Case)
	for _, wanted := range []string{former, ours, former, larger} {
		l.Wanted.Flavor = wanted
		for range 2 {
			l.round(t)
			c := condition(t, l.Status, v1alpha1.ConditionContested)
			if isContested := c.Status == metav1.ConditionTrue; isContested != (wanted == former) {
				t.Errorf("%s: %+v", wanted, c)
			}
		}
	}
}

func TestContestOfASizeEndsWhenTheRdsRequestsOurs(t *testing.T) {
	l := &loop{Case: cases.Quiet(cases.StorageAt(92))}
	cases.LostVolume(&l.Case)
	for _, gb := range []int{100, 110} {
		l.Wanted.VolumeGB = gb
		l.round(t)
		c := condition(t, l.Status, v1alpha1.ConditionContested)
		if isContested := c.Status == metav1.ConditionTrue; isContested != (gb == 100) {
			t.Errorf("the Rds requests %d GB: %+v", gb, c)
		}
	}
}

func TestRefusedPatchIsReportedAndRetried(t *testing.T) {
	refuses := true
	l := &loop{Case: cases.Quiet(cases.StorageAt(93)), took: 3 * time.Second}
	l.apply = func(c *autopilot.Case, ch v1alpha1.Change) *Answer {
		if refuses {
			return &Answer{Event: change.Rejected, Reason: autopilot.ReasonRefused, Message: "denied by policy: not on Fridays"}
		}
		c.Wanted.VolumeGB = autopilot.Gigabytes(ch.To)
		return nil
	}
	l.run(t, 40*time.Minute, 30*time.Second)
	if got, want := strings.Join(l.patches, ", "), "12:00:00 110, 12:01:03 110, 12:03:06 110, 12:07:09 110, 12:15:12 110, 12:30:15 110"; got != want {
		t.Errorf("patched at %s\nwant       %s", got, want)
	}
	if len(l.news) != 1 || l.news[0].Reason != autopilot.ReasonRefused || !strings.Contains(l.news[0].Message, "not on Fridays") || !l.news[0].Reason.IsWarning() {
		t.Errorf("reported %+v, want one refusal with the text of the API server", l.news)
	}
	if c := condition(t, l.Status, v1alpha1.ConditionProgressing); c.Status != metav1.ConditionFalse || c.Reason != string(autopilot.ReasonRefused) {
		t.Errorf("%+v", c)
	}
	refuses = false
	l.run(t, 10*time.Minute, 30*time.Second)
	if p := pendingOf(l.Status); p == nil || p.SeenTime == nil || len(l.Status.Changes) != 1 {
		t.Fatalf("pending %+v", p)
	}
	if d := l.news[1]; !d.Acts() || d.Action != autopilot.ActionGrowVolume || !strings.HasPrefix(l.Status.Decisions[len(l.Status.Decisions)-2].Message, "Storage 100 → 110 GB") {
		t.Errorf("reported %+v, records %+v", d, l.Status.Decisions)
	}
	if c := condition(t, l.Status, v1alpha1.ConditionProgressing); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
}

// TestDecide in package decide shows the decisions on such a request.
func TestFollowUpRecordsSinceWhenOthersRequestAChange(t *testing.T) {
	c := cases.Quiet()
	c.Wanted = autopilot.Wanted{VolumeGB: 105, Flavor: "rds.mysql.n1.5xlarge.4"}
	c.Status = FollowUp(c).Status
	c.Now = c.Now.Add(15 * time.Minute)
	since := autopilot.Micro(cases.Noon())
	want := []v1alpha1.Change{
		{Kind: v1alpha1.KindFlavor, By: v1alpha1.ByOther, From: c.Instance.Flavor, To: c.Wanted.Flavor, State: v1alpha1.StateRequested, RequestTime: since},
		{Kind: v1alpha1.KindVolume, By: v1alpha1.ByOther, From: "100", To: "105", State: v1alpha1.StateRequested, RequestTime: since},
	}
	if diff := cmp.Diff(want, FollowUp(c).Status.Changes); diff != "" {
		t.Error(diff)
	}
	c.Wanted = autopilot.Wanted{VolumeGB: 120, Flavor: c.Instance.Flavor}
	if got := FollowUp(c).Status.Changes; len(got) != 1 || !got[0].RequestTime.Equal(autopilot.Micro(c.Now)) {
		t.Errorf("another size: %+v, want one request since now", got)
	}
}

func TestFollowUpRecordsTheBaseline(t *testing.T) {
	for name, tc := range map[string]struct {
		alter func(*autopilot.Instance)
		want  v1alpha1.Baseline
	}{
		"vCPUs and memory known":     {func(*autopilot.Instance) {}, v1alpha1.Baseline{VolumeGB: 100, VCPUs: 8, MemoryGB: 32}},
		"vCPUs and memory not known": {func(i *autopilot.Instance) { i.VCPUs, i.MemoryGB = 0, 0 }, v1alpha1.Baseline{VolumeGB: 100}},
		"vCPUs and memory of the catalogue": {func(i *autopilot.Instance) {
			i.VCPUs, i.MemoryGB = 0, 0
			*i = i.WithSizes(cases.Catalogue())
		}, v1alpha1.Baseline{VolumeGB: 100, VCPUs: 8, MemoryGB: 32}},
		"STORAGE FULL": {func(i *autopilot.Instance) { i.Status = autopilot.StatusStorageFull },
			v1alpha1.Baseline{VolumeGB: 100, VCPUs: 8, MemoryGB: 32}},
	} {
		c := cases.Quiet()
		c.Status = v1alpha1.Status{}
		tc.alter(c.Instance)
		if b := FollowUp(c).Status.Baseline; b == nil || *b != tc.want {
			t.Errorf("%s: %+v, want %+v", name, b, tc.want)
		}
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

func TestUpdateWarningsReportsAWaitOfSixHoursForTheFleetLimitOnce(t *testing.T) {
	const brake = autopilot.ReasonFleetBrake
	for name, tc := range map[string]struct {
		decided, held time.Duration // ago
		reason        autopilot.Reason
		want          int
	}{
		"waits for 6 hours":                    {6 * time.Hour, 6 * time.Hour, brake, 1},
		"waits for 6 hours less a second":      {6 * time.Hour, 6*time.Hour - time.Second, brake, 0},
		"held by another reason since":         {6 * time.Hour, 6 * time.Hour, autopilot.ReasonNoData, 0},
		"another alarm has begun 5 hours ago":  {7 * time.Hour, 5 * time.Hour, brake, 0},
		"this alarm has been held for 5 hours": {5 * time.Hour, 7 * time.Hour, brake, 0},
	} {
		c := cases.Quiet()
		c.Status.Decisions = []v1alpha1.DecisionRecord{
			{Metric: v1alpha1.MetricCPU, Reason: string(brake), Time: *autopilot.Seconds(c.Now.Add(-tc.decided))},
		}
		c.Status.Held = []v1alpha1.Held{heldSince(v1alpha1.KindFlavor, tc.reason, tc.held)}
		if w := UpdateWarnings(c, &c.Status); len(w) != tc.want || tc.want > 0 && w[0].Reason != brake {
			t.Errorf("%s: %+v, want %d warnings", name, w, tc.want)
		}
		if again := UpdateWarnings(c, &c.Status); len(again) > 0 {
			t.Errorf("%s: warned twice: %+v", name, again)
		}
	}
}

func TestArmedIsFalseWithAnInvalidWindow(t *testing.T) {
	spec := cases.Policy()
	spec.Flavor.Window = &v1alpha1.Window{Start: "01:00", End: "05:00", TimeZone: "Europe/Berln"}
	rules := v1alpha1.Alarms{}
	for _, m := range autopilot.Metrics() {
		rules.Rules = append(rules.Rules, v1alpha1.Rule{Metric: m, AlarmID: "al-" + string(m), State: v1alpha1.StateOK})
	}
	ok, reason, message := Armed(spec, rules, v1alpha1.Topic{State: v1alpha1.SubscriptionConfirmed}, cases.Noon())
	if ok || reason != string(autopilot.ReasonPolicyInvalid) || !strings.Contains(message, "Europe/Berln") {
		t.Errorf("armed %t, %s: %s", ok, reason, message)
	}
}
