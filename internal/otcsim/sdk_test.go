// SPDX-License-Identifier: Apache-2.0

package otcsim

import (
	"os"
	"strings"
	"testing"
	"time"

	golangsdk "github.com/opentelekomcloud/gophertelekomcloud"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/ces/v1/alarms"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/ces/v1/metricdata"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/flavors"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/rds/v3/instances"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/smn/v2/subscriptions"
	"github.com/opentelekomcloud/gophertelekomcloud/openstack/smn/v2/topics"
)

// sdkClient authenticates as the environment says, with no other OS_ variable set.
func sdkClient(t *testing.T, env []string) (*golangsdk.ProviderClient, error) {
	t.Helper()
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "OS_") {
			t.Setenv(k, "")
		}
	}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		t.Setenv(k, v)
	}
	return openstack.NewEnv("OS_", false).AuthenticatedClient()
}

func TestTheSDKWorksWithPasswordAndWithAccessKey(t *testing.T) {
	for name, env := range map[string]func(*Cloud) []string{"password": (*Cloud).Env, "access key": (*Cloud).AKSKEnv} {
		for _, derived := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := start(t, Options{Now: time.Now, Settings: Settings{NoCESInCatalog: derived}})
				client, err := sdkClient(t, env(w.Cloud))
				if err != nil {
					t.Fatal(err)
				}
				exerciseSDK(t, w, client)
			})
		}
	}
}

func exerciseSDK(t *testing.T, w *world, client *golangsdk.ProviderClient) {
	smn, err1 := openstack.NewSMNV2(client, golangsdk.EndpointOpts{})
	ces, err2 := openstack.NewCESClient(client, golangsdk.EndpointOpts{})
	rds, err3 := openstack.NewRDSV3(client, golangsdk.EndpointOpts{})
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	in := w.newInstance("rds.mysql.c2.medium.ha", 40, Workload{UsedGB: 10})

	topic, err := topics.Create(smn, topics.CreateOpts{Name: "sdk", DisplayName: "a b/c ä"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := topics.List(smn, topics.ListOpts{Offset: "0", Limit: 10})
	if err != nil || len(list) != 1 || list[0].DisplayName != "a b/c ä" {
		t.Fatal(list, err)
	}
	if _, err := topics.Update(smn, topics.UpdateOpts{Id: topic.TopicUrn, DisplayName: "x"}); err != nil {
		t.Fatal(err)
	}
	sub, err := subscriptions.Create(smn, subscriptions.CreateOpts{Endpoint: "https://example.com/smn", Protocol: "https"}, topic.TopicUrn)
	if err != nil {
		t.Fatal(err)
	}
	subs, err := subscriptions.ListTopic(smn, subscriptions.ListTopicOpts{TopicUrn: topic.TopicUrn, Limit: 100})
	if err != nil || len(subs) != 1 || subs[0].SubscriptionUrn != sub.SubscriptionUrn || subs[0].Status != Unconfirmed {
		t.Fatal(subs, err)
	}

	actions := []alarms.AlarmActions{{Type: "notification", NotificationList: []string{topic.TopicUrn}}}
	id, err := alarms.CreateAlarm(ces, alarms.CreateAlarmOpts{
		AlarmName: "sdk_storage", AlarmActions: actions, OkActions: actions,
		Metric: alarms.MetricForAlarm{
			Namespace: "SYS.RDS", MetricName: "rds039_disk_util", Dimensions: []alarms.MetricsDimension{{Name: "rds_cluster_id", Value: in.ID}},
		},
		Condition: alarms.Condition{Period: 1, Filter: "average", ComparisonOperator: ">=", Value: 75, Count: 5, SuppressDuration: 900},
	})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := alarms.ListAlarms(ces, alarms.ListAlarmsOpts{Limit: 100})
	if err != nil || len(rules.MetricAlarms) != 1 || rules.MetricAlarms[0].AlarmId != id || rules.MetricAlarms[0].Condition.Value != 75 {
		t.Fatal(rules, err)
	}
	if err := alarms.UpdateAlarmAction(ces, id, alarms.ModifyAlarmActionRequest{AlarmEnabled: false}); err != nil {
		t.Fatal(err)
	}
	if rules := w.Rules(); rules[0].Enabled {
		t.Error("the rule is still enabled")
	}
	if _, err := metricdata.BatchListMetricData(ces, metricdata.BatchListMetricDataOpts{
		Metrics: []metricdata.Metric{{
			Namespace: "SYS.RDS", MetricName: "rds048_disk_used_size", Dimensions: []metricdata.MetricsDimension{{Name: "rds_cluster_id", Value: in.ID}},
		}},
		From: time.Now().Add(-time.Hour).UnixMilli(), To: time.Now().UnixMilli(), Period: "1", Filter: "average",
	}); err != nil {
		t.Fatal(err)
	}
	if err := alarms.DeleteAlarm(ces, id); err != nil {
		t.Fatal(err)
	}

	found, err := instances.List(rds, instances.ListOpts{Name: in.Name, Limit: 10})
	if err != nil || found.TotalCount != 1 || found.Instances[0].Id != in.ID || found.Instances[0].Cpu != "2" || len(found.Instances[0].Nodes) != 2 {
		t.Fatal(found, err)
	}
	offers, err := flavors.ListFlavors(rds, flavors.ListOpts{DatabaseName: "MySQL", VersionName: "8.0"})
	if err != nil || len(offers) != 3*(28+3) {
		t.Fatal(len(offers), err)
	}
	if _, err := instances.EnlargeVolume(rds, instances.EnlargeVolumeRdsOpts{InstanceId: in.ID, Size: 50}); err != nil {
		t.Fatal(err)
	}
	if in, _ := w.Instance(in.ID); in.Status != StatusModifying {
		t.Error("status", in.Status)
	}
	if err := topics.Delete(smn, topic.TopicUrn); err != nil {
		t.Fatal(err)
	}
	if got := w.Count("smn", "CreateTopic") + w.Count("rds", "EnlargeVolume") + w.Count("ces", "ListAlarms"); got != 3 {
		t.Errorf("requests counted: %d", got)
	}
}

func TestTheSDKIsRefusedWithWrongCredentials(t *testing.T) {
	w := start(t, Options{Now: time.Now})
	for name, env := range map[string][]string{
		"password":   append(w.Env(), "OS_PASSWORD=wrong"),
		"domain":     append(w.Env(), "OS_DOMAIN_NAME=other", "OS_USER_DOMAIN_NAME=other"),
		"secret key": append(w.AKSKEnv(), "OS_SECRET_KEY=wrong"),
		"access key": append(w.AKSKEnv(), "OS_ACCESS_KEY=wrong"),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := sdkClient(t, env); err == nil || !strings.Contains(err.Error(), "Authentication Failed") {
				t.Errorf("got %v, want a failed authentication", err)
			}
		})
	}
}
