// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/autopilot/record"
	"github.com/mcsps/rds-autopilot/internal/status"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestDatabasePageShowsTimelineAndCloudObjects(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return now().Add(time.Duration(minutes) * time.Minute) }
	c := &cache{}
	c.add("shop", "orders", withUsage("91", at(-50)), func(a *v1alpha1.RdsAutopilot) {
		a.Spec.Flavor.MaxChangesPerDay = 5
		a.Status.Alarms.TopicURN = "urn:smn:eu-de:p:autopilot_1"
		a.Status.Instance.VolumeGB = 110
		a.Status.ReadOnly = &v1alpha1.ReadOnly{SinceTime: metav1.NewTime(at(-49))}
		a.Status.Decisions = []v1alpha1.DecisionRecord{
			{Time: metav1.NewTime(at(-20)), LastTime: metav1.NewTime(at(-5)), Count: 3, Metric: v1alpha1.MetricCPU, Action: "None", Reason: "Cooldown", Message: "The last change is too recent"},
			{Time: metav1.NewTime(at(-49)), Count: 1, Metric: v1alpha1.MetricStorage, Action: "GrowVolume", Reason: "AlarmInForce", From: "100", To: "110", ValuePercent: "91.0", Message: "91.0 % storage used"},
		}
		a.Status.Changes = []v1alpha1.Change{{
			Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "100", To: "110", Outcome: v1alpha1.OutcomeCompleted,
			DecisionTime: new(metav1.NewMicroTime(at(-49))), CompletionTime: metav1.NewMicroTime(at(-45)),
		}}
	})
	root := get(t, pageOf(t, c), "/databases/shop/orders", http.StatusOK)
	var timeline []string
	for _, list := range elements(root, "ol") {
		for _, li := range elements(list, "li") {
			timeline = append(timeline, text(li))
		}
	}
	for i, want := range []string{"cpu: Cooldown, 3 times until", "Storage 100 → 110 GB is done, 4 minutes", "GrowVolume 100 → 110", "storage is in alarm at 91.0 %"} {
		if len(timeline) != 4 || !strings.Contains(timeline[i], want) {
			t.Fatalf("line %d lacks %q:\n%s", i, want, strings.Join(timeline, "\n"))
		}
	}
	if folded := elements(root, "details"); len(folded) != 2 || !strings.Contains(text(folded[0]), "too recent") {
		t.Errorf("%d are folded", len(folded))
	}
	page := text(root)
	for _, want := range []string{
		"91 of 110 GB used (83 %)", // percent of the present size
		"urn:smn:eu-de:p:autopilot_1", "instance-of-orders", "al-storage",
		"Read-only Since 49m ago. The cloud keeps it so until", "CPU not measured yet, alarm at 90 %",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	for text, want := range map[string]string{"Cooldown": "reasons.md#cooldown", "AlarmsInPlace": "reasons.md#alarmsinplace"} {
		if got := linkOf(root, text); got != documents+"docs/runbooks/"+want {
			t.Errorf("%s links to %q", text, got)
		}
	}
	if i := slices.IndexFunc(elements(root, "a"), func(n *html.Node) bool { return strings.Contains(attribute(n, "href"), "urn") }); i >= 0 {
		t.Error("a URN is a link")
	}
}

// linkOf returns the address of the link with that text, or an empty text.
func linkOf(root *html.Node, label string) string {
	for _, a := range elements(root, "a") {
		if text(a) == label {
			return attribute(a, "href")
		}
	}
	return ""
}

func TestPagesNameClusterRegionAndProject(t *testing.T) {
	t.Parallel()
	scope := status.Scope{}
	h := newPage(t, func(o *status.Options) { o.Scope = func() status.Scope { return scope } })
	if got := text(elements(get(t, h, "/", http.StatusOK), "header")[0]); strings.Contains(got, "cluster") || strings.Contains(got, "project") {
		t.Errorf("the header of an unknown scope is %q", got)
	}
	scope = status.Scope{Cluster: "0c2b-uid", Region: "eu-de", Project: "eu-de_shop"}
	if got := text(elements(get(t, h, "/health", http.StatusOK), "header")[0]); !strings.Contains(got, "project eu-de_shop in eu-de, cluster 0c2b-uid") {
		t.Errorf("the header is %q", got)
	}
}

func TestAlarmsInForceHaveValueAndThreshold(t *testing.T) {
	t.Parallel()
	c := &cache{}
	c.add("shop", "orders", inAlarm, withUsage("91.26", now().Add(-time.Minute)), func(a *v1alpha1.RdsAutopilot) {
		a.Status.Alarms.Rules[1].State = v1alpha1.StateAlarm
		a.Status.Alarms.Rules[2].State = v1alpha1.StateAlarm
		a.Status.Decisions = []v1alpha1.DecisionRecord{{Time: metav1.NewTime(now()), Metric: v1alpha1.MetricCPU, Reason: "Cooldown", ValuePercent: "97"}}
	})
	const want = "storage 91.3 %, alarm at 90 % cpu 97.0 %, alarm at 90 % memory alarm at 90 %"
	if page := text(get(t, pageOf(t, c), "/", http.StatusOK)); !strings.Contains(page, want) {
		t.Errorf("the overview lacks %q: %s", want, page)
	}
}

func TestDatabasePageShowsStateAndItsDuration(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(now().Add(-d)) }
	condition := func(kind string, status bool, reason string) func(*v1alpha1.RdsAutopilot) {
		return func(a *v1alpha1.RdsAutopilot) {
			record.SetCondition(&a.Status, kind, status, reason, "text", 1, now().Add(-3*time.Hour))
		}
	}
	pending := func(i v1alpha1.Intent) func(*v1alpha1.RdsAutopilot) {
		return func(a *v1alpha1.RdsAutopilot) {
			i.Kind, i.From, i.To, i.DecisionTime = v1alpha1.KindVolume, "100", "110", at(2*time.Hour)
			a.Status.Pending = &i
		}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.RdsAutopilot)
		want   string
	}{
		"armed": {func(*v1alpha1.RdsAutopilot) {}, "Armed, nothing to do for 0s"},
		"after change": {func(a *v1alpha1.RdsAutopilot) {
			a.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now().Add(-9 * time.Hour))
			a.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, CompletionTime: at(8 * time.Hour)}}
		}, "Armed, nothing to do for 8h"},
		"after alarm": {func(a *v1alpha1.RdsAutopilot) {
			a.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now().Add(-9 * time.Hour))
			a.Status.Alarms.Rules[1].StateTime = new(at(7 * time.Hour))
		}, "Armed, nothing to do for 7h"},
		"not armed":    {condition(v1alpha1.ConditionArmed, false, autopilot.SubscriptionPending), "Not armed SubscriptionPending: text for 3h"},
		"contested":    {condition(v1alpha1.ConditionContested, true, "Contested"), "Contested Contested: text for 3h"},
		"limited":      {condition(v1alpha1.ConditionLimited, true, "CapReached"), "Limited CapReached: text for 3h"},
		"check failed": {condition(v1alpha1.ConditionReady, false, autopilot.ReadFailed), "reason for 3h"},
		"refused":      {pending(v1alpha1.Intent{Refusal: &v1alpha1.Refusal{Count: 1, Message: "no"}}), "Refused Refused: The Kubernetes API refuses the patch: no for 120m"},
		"changing":     {pending(v1alpha1.Intent{AskedTime: new(at(time.Minute))}), "Changing for 120m"},
		"stalled": {func(a *v1alpha1.RdsAutopilot) {
			pending(v1alpha1.Intent{AskedTime: new(at(75 * time.Minute))})(a)
			a.Status.Instance.ActiveSince = new(metav1.NewTime(now().Add(-5 * time.Hour)))
		}, "Stalled Stalled: Storage 100 → 110 GB was requested but is not completed in time for 60m"},
		"in alarm": {func(a *v1alpha1.RdsAutopilot) {
			inAlarm(a)
			a.Status.Alarms.Rules[0].StateTime = new(at(4 * time.Minute))
		}, "In alarm Waiting for a decision for 4m"},
		"waiting": {func(a *v1alpha1.RdsAutopilot) {
			a.Status.Deferred = &v1alpha1.Deferred{FirstTime: metav1.NewTime(now().Add(-26 * time.Hour))}
		}, "A larger flavor was requested at 2026-11-21 10:00:00 for 26h"},
	} {
		c := &cache{}
		c.add("shop", "orders", test.change)
		page := text(elements(get(t, pageOf(t, c), "/databases/shop/orders", http.StatusOK), "main")[0])
		if !strings.Contains(page, test.want) {
			t.Errorf("%s: the page lacks %q: %.200s", name, test.want, page)
		}
	}
}
