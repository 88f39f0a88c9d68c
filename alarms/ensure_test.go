// SPDX-License-Identifier: Apache-2.0

package alarms_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/internal/otc"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func TestEnsureCreatesOneTopicOneSubscriptionThreeRules(t *testing.T) {
	w := newWorld(t)
	var steps []string
	_, _, err := w.ensureWith(t.Context(), w.alarms, w.desired(), w.recorded, nil, func(observed v1alpha1.Alarms) error {
		steps = append(steps, fmt.Sprintf("recorded %v %v %d; exist %d %d %d", observed.TopicURN != "", observed.Subscription,
			len(observed.Rules), len(w.sim.Topics()), len(w.sim.Subscriptions()), len(w.sim.Rules())))
		return w.record(observed)
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"recorded true  0; exist 1 0 0", // before anything is sent to the topic
		"recorded true  1; exist 1 0 1",
		"recorded true  2; exist 1 0 2",
		"recorded true  3; exist 1 0 3",
		"recorded true Pending 3; exist 1 1 3",
	}, steps); diff != "" {
		t.Error(diff)
	}
	w.checkRecord()
	rule := w.sim.Rules()[0]
	topic := w.sim.Topics()[0]
	const mark = "rds-autopilot shop/orders cluster " + clusterID
	if topic.Name != "autopilot_shop_orders_1b4e28ba" || topic.DisplayName != mark {
		t.Errorf("topic %+v", topic)
	}
	action := []simcloud.Action{{Type: "notification", NotificationList: []string{topic.URN}}}
	rule.ID, rule.State, rule.UpdateTime = "", "", 0
	if diff := cmp.Diff(simcloud.Rule{
		Name: "autopilot_shop_orders_1b4e28ba_storage", Description: mark,
		Metric: simcloud.Metric{
			Namespace: "SYS.RDS", MetricName: "rds039_disk_util",
			Dimensions: []simcloud.Dimension{{Name: "rds_cluster_id", Value: w.instance}},
		},
		Condition: simcloud.Condition{
			Period: 1, Filter: "average", ComparisonOperator: ">=", Value: 75, Unit: "%", Count: 5, SuppressDuration: 900,
		},
		Enabled: true, Level: 2, ActionEnabled: true, AlarmActions: action, OKActions: action,
	}, rule); diff != "" {
		t.Error(diff)
	}

	w.sim.ResetRequests()
	w.ensure(w.desired())
	if n := len(w.sim.Requests()); n != 2 || len(w.writes()) > 0 {
		t.Errorf("the second run sent %d requests and wrote %v, want 2 reads", n, w.writes())
	}
}

// foreignRule returns a rule of another owner.
func foreignRule(name, topic string) otc.Rule {
	return otc.Rule{
		Name: name, Namespace: "SYS.RDS", Metric: "rds001_cpu_util", Dimension: "rds_cluster_id", DimensionValue: "x",
		Period: 300, Count: 1, Filter: "average", Comparison: ">=", Threshold: 1, Enabled: true, ActionEnabled: true,
		AlarmActions: []string{topic}, OKActions: []string{topic},
	}
}

// noQuotas is a cloud whose quotas cannot be read.
type noQuotas struct{ *otc.Cloud }

func (noQuotas) RuleQuota(context.Context) (used, quota int, err error) {
	return 0, 0, errors.New("not allowed")
}

func TestEnsureReportsFullQuotaOnceAndRepairsOtherRules(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct {
		cloud api
		want  string
	}{
		"quota is readable":     {w.cloud, "quota exceeded: 1 of 1 alarm rules used: the storage rule cannot be created: "},
		"quota is not readable": {noQuotas{w.cloud}, "quota exceeded: the storage rule cannot be created: "},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 1000 })
			w.reset()
			w.ensure(w.desired())
			err := errors.Join(
				deleteRule(v1alpha1.MetricStorage)(w, t.Context()), deleteRule(v1alpha1.MetricCPU)(w, t.Context()),
				w.cloud.EnableRule(t.Context(), ruleID(w, v1alpha1.MetricMemory), false))
			if err != nil {
				t.Fatal(err)
			}
			w.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 1 })
			_, _, err = w.ensureWith(t.Context(), w.process(tt.cloud), w.desired(), w.recorded, nil, w.record)
			if !errors.Is(err, v1alpha1.ErrQuota) || !strings.HasPrefix(err.Error(), tt.want) ||
				strings.Count(err.Error(), "cannot be created") != 1 || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if rules := w.sim.Rules(); len(rules) != 1 || !rules[0].Enabled || len(w.recorded.Rules) != 1 {
				t.Errorf("rules %+v, recorded %+v; want the memory rule enabled", rules, w.recorded.Rules)
			}
		})
	}
}

// incompleteList is a cloud whose list lacks a rule, as happens when rows move between pages while they are read.
type incompleteList struct {
	*otc.Cloud
	id string
}

func (h incompleteList) Rules(ctx context.Context) ([]otc.Rule, error) {
	rules, err := h.Cloud.Rules(ctx)
	return slices.DeleteFunc(rules, func(r otc.Rule) bool { return r.ID == h.id }), err
}

func TestRecordedRuleMissingInListIsNotCreatedTwice(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	cloud := incompleteList{w.cloud, w.recorded.Rules[0].AlarmID}
	if _, _, err := w.ensureWith(t.Context(), w.process(cloud), w.desired(), w.recorded, nil, w.record); err != nil {
		t.Fatal(err)
	}
	w.checkRecord()
}

func TestRecordedRuleIsKeptAndItsDuplicatesDeleted(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	first := ruleID(w, v1alpha1.MetricStorage)
	rule, err := w.cloud.Rule(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if w.recorded.Rules[0].AlarmID, err = w.cloud.CreateRule(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
	}
	recorded := w.recorded.Rules[0].AlarmID
	w.ensure(w.desired())
	w.checkRecord()
	if kept := ruleID(w, v1alpha1.MetricStorage); kept != recorded {
		t.Errorf("kept %s, recorded was %s, created first %s", kept, recorded, first)
	}
}

// The credentials may have been changed to those of another project.
func TestRecordOfAnotherProjectIsNotTrusted(t *testing.T) {
	w := newWorld(t)
	urn := "urn:smn:eu-de:" + strings.Repeat("f", 32) + ":" + nameOf(w.desired())
	w.recorded = v1alpha1.Alarms{
		TopicURN: urn, SubscriptionURN: urn + ":" + strings.Repeat("a", 32), Subscription: v1alpha1.SubscriptionConfirmed,
	}
	w.ensure(w.desired())
	w.checkRecord()
	for _, r := range w.sim.Requests() {
		if strings.Contains(r.URI, strings.Repeat("f", 32)) {
			t.Errorf("request for a topic of another project: %s", r.URI)
		}
	}
}

// The status of an RdsAutopilot may come from a restored backup of another object.
func TestRecordOfAnotherObjectIsNotTrusted(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired())
	theirs := w.objects()
	other := w.desired()
	other.Autopilot.UID = "99999999-2fa1-11d2-883f-0016d3cca427"
	observed, _, err := w.ensureWith(t.Context(), w.alarms, other, w.recorded, nil, noRecord)
	if err != nil {
		t.Fatal(err)
	}
	if observed.TopicURN == w.recorded.TopicURN || observed.Rules[0].AlarmID == w.recorded.Rules[0].AlarmID ||
		len(w.sim.Rules()) != 6 {
		t.Errorf("adopted the alarms of another object: %+v", observed)
	}
	for _, record := range []v1alpha1.Alarms{w.recorded, observed} {
		if err := w.removeWith(w.alarms, other, record); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(theirs, w.objects()); diff != "" {
		t.Error(diff)
	}
}

func TestEnsureRejectsInvalidDesired(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*v1alpha1.DesiredAlarms){
		"endpoint without a scheme": func(*v1alpha1.DesiredAlarms) { w.endpoint = "autopilot.example.com" },
		"endpoint of FTP":           func(*v1alpha1.DesiredAlarms) { w.endpoint = "ftp://autopilot.example.com" },
		"no id of the cluster":      func(*v1alpha1.DesiredAlarms) { w.cluster = "" },
		"unknown metric":            func(want *v1alpha1.DesiredAlarms) { want.Rules[0].Metric = "disk" },
		"unknown engine":            func(want *v1alpha1.DesiredAlarms) { want.Engine = "Oracle" },
	} {
		w.endpoint, w.cluster = ourURL, clusterID
		want := w.desired()
		change(&want)
		w.alarms = w.process(w.cloud)
		if err := w.tryEnsure(want, nil); err == nil || len(w.sim.Requests()) != 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(w.sim.Requests()))
		}
	}
}
