// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/status"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestDatabasePageShowsTimelinePolicyAndCloudObjects(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return now().Add(time.Duration(minutes) * time.Minute) }
	c := &cache{}
	c.add("shop", "orders", usage("91", at(-50)), func(a *v1alpha1.RdsAutopilot) {
		a.Spec.Flavor.MaxChangesPerDay = 5
		a.Status.Alarms.TopicURN = "urn:smn:eu-de:p:autopilot_1"
		a.Status.Instance.VolumeGB = 110
		a.Status.Cause = &v1alpha1.Cause{Name: v1alpha1.CauseWAL, Message: "41 GB of it are WAL", Time: metav1.NewTime(at(-49))}
		a.Status.CapForecast = &v1alpha1.CapForecast{Message: "A volume of 500 GB would be read-only", Time: metav1.NewTime(at(-49))}
		a.Status.Decisions = []v1alpha1.DecisionRecord{
			{Time: metav1.NewTime(at(-20)), LastTime: metav1.NewTime(at(-5)), Count: 3, Metric: v1alpha1.MetricCPU, Action: "None", Reason: "Cooldown", Message: "The last change is too recent"},
			{Time: metav1.NewTime(at(-49)), Count: 1, Metric: v1alpha1.MetricStorage, Action: "GrowVolume", Reason: "AlarmInForce", From: "100", To: "110", ValuePercent: "91.0", Message: "91.0 % storage used"},
		}
		a.Status.Changes = []v1alpha1.Change{{
			Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "100", To: "110", Outcome: v1alpha1.OutcomeCompleted,
			DecisionTime: new(metav1.NewMicroTime(at(-49))), CompletionTime: metav1.NewMicroTime(at(-45)),
		}}
	})
	root := get(t, handler(t, c), "/databases/shop/orders", http.StatusOK)
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
		"91 of 110 GB used (83 %)",          // what was used of 100 GB is less of 110
		"flavor.maxChangesPerDay 5 2",       // and the default beside it
		"storage.stepGB 10 is the default",  //
		"The alarm for storage fires at 90", //
		"At most 8 vCPUs: 4 times",          //
		"urn:smn:eu-de:p:autopilot_1", "instance-of-orders", "al-storage",
		"What fills it 41 GB of it are WAL", "What to do: docs/runbooks/causes/WAL.md", "Limit A volume of 500 GB would be read-only",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if i := slices.IndexFunc(elements(root, "a"), func(n *html.Node) bool { return strings.Contains(attribute(n, "href"), "urn") }); i >= 0 {
		t.Error("a URN is a link")
	}
}

func TestHealthShowsWhatTheRegistryHas(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	gauge := func(name string, value float64) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "rds_autopilot_" + name})
		g.Set(value)
		reg.MustRegister(g)
	}
	gauge("leader", 1)
	gauge("kubernetes_reachable", 0)
	gauge("cloud_logged_in", 0)
	gauge("last_sweep_timestamp_seconds", float64(now().Add(-time.Hour).Unix()))
	gauge("waiting_databases", 7)
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rds_autopilot_cloud_requests_total"}, []string{"service", "operation", "code"})
	requests.WithLabelValues("smn", "list_topics", "200").Add(5)
	requests.WithLabelValues("smn", "list_topics", "429").Add(3)
	requests.WithLabelValues("rds", "list_instances", "error").Add(0)
	messages := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rds_autopilot_notifications_total"}, []string{"type", "result"})
	messages.WithLabelValues("Notification", "forged").Add(2)
	messages.WithLabelValues("Notification", "stored").Add(900)
	reg.MustRegister(requests, messages)
	h := newPage(t, func(o *status.Options) {
		o.Cache, o.Metrics = &cache{notSynced: true}, reg
		o.CloudErrors = func() []status.CloudError {
			return []status.CloudError{{Service: "smn", Text: "smn ListTopics: 503 <b>busy</b>", Time: now().Add(-3 * time.Minute)}}
		}
	})
	page := text(get(t, h, "/health", http.StatusOK))
	for _, want := range []string{
		"This replica leads", "The Kubernetes API does not answer", "The cloud refused the credentials", "The sweep is overdue", "The caches are not filled yet",
		"7 databases", "The leader is pod-2", "smn list_topics 5 3 429: 3", "Notification stored 900 Notification forged 2",
		"smn 3m ago smn ListTopics: 503 <b>busy</b>", "rds-autopilot doctor --public-url",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if strings.Contains(page, "list_instances") {
		t.Error("an operation that was never called is shown")
	}
}

// A growth that waits for a read replica is in progress, not refused.
func TestDatabasePageShowsTheWaitForAReplica(t *testing.T) {
	t.Parallel()
	c := &cache{}
	c.add("shop", "orders", usage("91", now()), func(a *v1alpha1.RdsAutopilot) {
		a.Status.Pending = &v1alpha1.Intent{
			Kind: v1alpha1.KindVolume, From: "100", To: "110",
			Refusal: &v1alpha1.Refusal{Count: 2, Reason: string(autopilot.ReasonChangePending), Message: "reader (100 GB)"},
		}
	})
	for _, path := range []string{"/", "/databases/shop/orders"} {
		page := text(get(t, handler(t, c), path, http.StatusOK))
		if strings.Contains(page, "Refused 2 times") || !strings.Contains(page, "Changing Auto") && path == "/" {
			t.Errorf("%s: %s", path, page)
		}
		if path != "/" && !strings.Contains(page, "A read replica grows first: reader (100 GB)") {
			t.Errorf("%s does not name the replica: %s", path, page)
		}
	}
}
