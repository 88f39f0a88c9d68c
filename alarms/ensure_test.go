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
	want := w.want()
	var steps []string
	_, _, err := w.ensureWith(t.Context(), w.alarms, want, w.recorded, nil, func(h v1alpha1.Alarms) error {
		steps = append(steps, fmt.Sprintf("recorded %v %v %d; exist %d %d %d", h.TopicURN != "", h.Subscription, len(h.Rules),
			len(w.sim.Topics()), len(w.sim.Subscriptions()), len(w.sim.Rules())))
		return w.record(h)
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
	if topic.Name != "autopilot_shop_orders_1b4e28ba" || topic.DisplayName != "rds-autopilot shop/orders cluster "+clusterID {
		t.Errorf("topic %+v", topic)
	}
	action := []simcloud.Action{{Type: "notification", NotificationList: []string{topic.URN}}}
	rule.ID, rule.State, rule.UpdateTime = "", "", 0
	if diff := cmp.Diff(simcloud.Rule{
		Name: "autopilot_shop_orders_1b4e28ba_storage", Description: "rds-autopilot shop/orders cluster " + clusterID,
		Metric: simcloud.Metric{
			Namespace: "SYS.RDS", MetricName: "rds039_disk_util",
			Dimensions: []simcloud.Dimension{{Name: "rds_cluster_id", Value: w.instance}},
		},
		Condition: simcloud.Condition{Period: 1, Filter: "average", ComparisonOperator: ">=", Value: 75, Unit: "%", Count: 5, SuppressDuration: 900},
		Enabled:   true, Level: 2, ActionEnabled: true, AlarmActions: action, OKActions: action,
	}, rule); diff != "" {
		t.Error(diff)
	}

	w.sim.ResetRequests()
	w.records = 0
	before := w.recorded
	w.ensure(want)
	if n := w.writes(); len(n) > 0 {
		t.Errorf("a second run wrote: %v", n)
	}
	if n := len(w.sim.Requests()); n != 2 {
		t.Errorf("a second run asked %d times, want 2", n)
	}
	// The states of rules just made are new to the record, and nothing else.
	if w.records > 1 || w.recorded.TopicURN != before.TopicURN || w.recorded.Rules[0].AlarmID != before.Rules[0].AlarmID || w.recorded.Rules[0].State == "" {
		t.Errorf("recorded %d times: %+v", w.records, w.recorded)
	}
	w.records = 0
	w.ensure(want)
	if w.records != 0 {
		t.Error("nothing has changed and it was recorded")
	}
}

func foreignRule(name, topic string) otc.Rule {
	return otc.Rule{
		Name: name, Namespace: "SYS.RDS", Metric: "rds001_cpu_util", Dimension: "rds_cluster_id", DimensionValue: "x", Period: 300, Count: 1,
		Filter: "average", Comparison: ">=", Threshold: 1, Enabled: true, ActionEnabled: true, AlarmActions: []string{topic}, OKActions: []string{topic},
	}
}

func TestEnsureReportsFullQuotaAndRepairsOtherRules(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	if err := w.cloud.DeleteRule(t.Context(), w.recorded.Rules[0].AlarmID); err != nil {
		t.Fatal(err)
	}
	if err := w.cloud.EnableRule(t.Context(), w.recorded.Rules[2].AlarmID, false); err != nil {
		t.Fatal(err)
	}
	w.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 2 })
	_, _, err := w.ensureWith(t.Context(), w.alarms, w.want(), w.recorded, nil, w.record)
	if !errors.Is(err, v1alpha1.ErrQuota) || !strings.HasPrefix(err.Error(), "quota exceeded: 2 of 2 alarm rules used: the storage rule cannot be created: ") {
		t.Errorf("err = %v", err)
	}
	if len(w.recorded.Rules) != 2 || w.recorded.Rules[0].Metric != v1alpha1.MetricCPU {
		t.Errorf("recorded %+v", w.recorded.Rules)
	}
	for _, r := range w.sim.Rules() {
		if !r.Enabled {
			t.Errorf("%s is still disabled", r.Name)
		}
	}
}

// noQuotas is a cloud whose quotas nobody may read.
type noQuotas struct{ *otc.Cloud }

func (noQuotas) RuleQuota(context.Context) (used, quota int, err error) {
	return 0, 0, errors.New("not allowed")
}

func TestEnsureReportsFullQuotaWithoutNumbersOnce(t *testing.T) {
	w := newWorld(t)
	a := w.process(noQuotas{w.cloud})
	for i := range 100 { // what one namespace may request in ten minutes
		want := w.want()
		want.Autopilot.Name, want.Rules = fmt.Sprint(i), nil
		if _, _, err := w.ensureWith(t.Context(), a, want, v1alpha1.Alarms{}, nil, func(v1alpha1.Alarms) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	urn := w.sim.Topics()[0].URN
	if _, err := w.cloud.CreateRule(t.Context(), foreignRule("stranger", urn)); err != nil {
		t.Fatal(err)
	}
	w.sim.Configure(func(s *simcloud.Settings) { s.RuleQuota = 1 })
	_, _, err := w.ensureWith(t.Context(), a, w.want(), w.recorded, w.listing(), w.record)
	if errors.Is(err, v1alpha1.ErrConfirmationLimit) || !errors.Is(err, v1alpha1.ErrQuota) || !strings.HasPrefix(err.Error(), "quota exceeded: the storage rule cannot be created: ") {
		t.Errorf("err = %v", err)
	}
	if strings.Count(err.Error(), "cannot be created") != 1 || strings.Contains(err.Error(), "\n") {
		t.Errorf("told more than once: %v", err)
	}
}

// hiding leaves a rule out of the listing, as happens when rows move between pages while they are read.
type hiding struct {
	*otc.Cloud
	id string
}

func (h hiding) Rules(ctx context.Context) ([]otc.Rule, error) {
	rules, err := h.Cloud.Rules(ctx)
	return slices.DeleteFunc(rules, func(r otc.Rule) bool { return r.ID == h.id }), err
}

func TestRecordedRuleMissingInListIsNotCreatedTwice(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	cloud := hiding{w.cloud, w.recorded.Rules[0].AlarmID}
	if _, _, err := w.ensureWith(t.Context(), w.process(cloud), w.want(), w.recorded, nil, w.record); err != nil {
		t.Fatal(err)
	}
	w.checkRecord()
}

func TestRecordedRuleIsKeptAndItsDuplicatesDeleted(t *testing.T) {
	for which := range 3 {
		w := newWorld(t)
		w.ensure(w.want())
		twin, err := w.cloud.Rule(t.Context(), w.recorded.Rules[0].AlarmID)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			id, err := w.cloud.CreateRule(t.Context(), twin)
			if err != nil {
				t.Fatal(err)
			}
			if i == which {
				w.recorded.Rules[0].AlarmID = id
			}
		}
		recorded := w.recorded.Rules[0].AlarmID
		w.ensure(w.want())
		w.checkRecord()
		if w.recorded.Rules[0].AlarmID != recorded {
			t.Errorf("kept %s, recorded was %s", w.recorded.Rules[0].AlarmID, recorded)
		}
	}
}

// The credentials may have been changed to those of another project.
func TestRecordOfAnotherProjectIsNotTrusted(t *testing.T) {
	w := newWorld(t)
	urn := "urn:smn:eu-de:" + strings.Repeat("f", 32) + ":" + nameOf(w.want())
	w.recorded = v1alpha1.Alarms{TopicURN: urn, SubscriptionURN: urn + ":" + strings.Repeat("a", 32), Subscription: v1alpha1.SubscriptionConfirmed}
	w.ensure(w.want())
	w.checkRecord()
	for _, r := range w.sim.Requests() {
		if strings.Contains(r.URI, strings.Repeat("f", 32)) {
			t.Errorf("asked for another project's: %s", r.URI)
		}
	}
}

// A record can be that of another object: a restored backup, an edited status.
func TestForeignRecordIsNotTrusted(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.want())
	theirs := w.shown()
	other := w.want()
	other.Autopilot.UID = "99999999-2fa1-11d2-883f-0016d3cca427"
	have, _, err := w.ensureWith(t.Context(), w.alarms, other, w.recorded, nil, func(v1alpha1.Alarms) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if have.TopicURN == w.recorded.TopicURN || have.Rules[0].AlarmID == w.recorded.Rules[0].AlarmID || len(w.sim.Rules()) != 6 {
		t.Errorf("took over what is another's: %+v", have)
	}
	for _, record := range []v1alpha1.Alarms{w.recorded, have} {
		if err := w.removeWith(w.alarms, other, record); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(theirs, w.shown()); diff != "" {
		t.Error(diff)
	}
}

func TestEnsureRejectsInvalidDesired(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*v1alpha1.DesiredAlarms){
		"no URL":         func(*v1alpha1.DesiredAlarms) { w.endpoint = "autopilot.example.com" },
		"another scheme": func(*v1alpha1.DesiredAlarms) { w.endpoint = "ftp://autopilot.example.com" },
		"whose it is":    func(*v1alpha1.DesiredAlarms) { w.cluster = "" },
		"no such metric": func(want *v1alpha1.DesiredAlarms) { want.Rules[0].Metric = "disk" },
		"no such engine": func(want *v1alpha1.DesiredAlarms) { want.Engine = "Oracle" },
	} {
		w.endpoint, w.cluster = ourURL, clusterID
		want := w.want()
		change(&want)
		w.alarms = w.process(w.cloud)
		if _, _, err := w.ensureWith(t.Context(), w.alarms, want, w.recorded, nil, w.record); err == nil || len(w.sim.Requests()) != 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(w.sim.Requests()))
		}
	}
}
