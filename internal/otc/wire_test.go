// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRequestsMatchTheAPIDocuments holds the requests against the API's documents, and shows that what the SDK lacks is sent.
func TestRequestsMatchTheAPIDocuments(t *testing.T) {
	rule := Rule{
		Name: "n", Description: "d", Namespace: "SYS.RDS", Metric: "rds039_disk_util", Dimension: "rds_cluster_id", DimensionValue: "i1",
		Period: 1, Count: 5, Repeat: 900, Filter: "average", Comparison: ">=", Threshold: 75, Unit: "%", Level: 2,
		Enabled: true, ActionEnabled: true, AlarmActions: []string{"urn:t"}, OKActions: []string{"urn:t"},
	}
	const (
		ces, smn, rds = "/V1.0/" + fakeProject, "/v2/" + fakeProject + "/notifications", "/rds/v3/" + fakeProject
		condition     = `"condition":{"comparison_operator":">=","count":5,"filter":"average","period":1,"suppress_duration":900,"unit":"%","value":75}`
		actions       = `[{"notificationList":["urn:t"],"type":"notification"}]`
	)
	tests := map[string]struct {
		do     func(*Cloud, context.Context) error
		status int
		reply  string
		line   string
		body   string
	}{
		"create a rule": {
			func(c *Cloud, ctx context.Context) error { _, err := c.CreateRule(ctx, rule); return err },
			201, `{"alarm_id":"al1"}`, "POST " + ces + "/alarms",
			`{"alarm_action_enabled":true,"alarm_actions":` + actions + `,"alarm_description":"d","alarm_enabled":true,"alarm_level":2,"alarm_name":"n",` +
				condition + `,"metric":{"dimensions":[{"name":"rds_cluster_id","value":"i1"}],"metric_name":"rds039_disk_util","namespace":"SYS.RDS"},"ok_actions":` + actions + `}`,
		},
		"modify a rule": {
			func(c *Cloud, ctx context.Context) error { return c.ModifyRule(ctx, "al1", rule) },
			204, "", "PUT " + ces + "/alarms/al1",
			`{"alarm_action_enabled":true,"alarm_actions":` + actions + `,"alarm_description":"d","alarm_level":2,"alarm_name":"n",` + condition + `,"ok_actions":` + actions + `}`,
		},
		"enable a rule": {
			func(c *Cloud, ctx context.Context) error { return c.EnableRule(ctx, "al1", false) },
			204, "", "PUT " + ces + "/alarms/al1/action", `{"alarm_enabled":false}`,
		},
		"delete a rule":       {func(c *Cloud, ctx context.Context) error { return c.DeleteRule(ctx, "al1") }, 204, "", "DELETE " + ces + "/alarms/al1", ""},
		"delete a lost rule":  {func(c *Cloud, ctx context.Context) error { return c.DeleteRule(ctx, "al1") }, 400, `{"message":{"code":"ces.0016"}}`, "DELETE " + ces + "/alarms/al1", ""},
		"delete a lost topic": {deleteTopic, 404, `{"code":"SMN.0006"}`, "DELETE " + smn + "/topics/urn:smn:eu-de:1:t", ""},
		"delete a lost subscription": {
			func(c *Cloud, ctx context.Context) error { return c.Unsubscribe(ctx, "urn:s") },
			404, `{"code":"SMN.0013"}`, "DELETE " + smn + "/subscriptions/urn:s", "",
		},
		"create a topic": {
			func(c *Cloud, ctx context.Context) error { _, err := c.CreateTopic(ctx, "n", "d"); return err },
			200, `{"topic_urn":"urn:t"}`, "POST " + smn + "/topics", `{"display_name":"d","name":"n"}`,
		},
		"update a topic": {
			func(c *Cloud, ctx context.Context) error { return c.UpdateTopic(ctx, "urn:t", "d") },
			200, `{"request_id":"1"}`, "PUT " + smn + "/topics/urn:t", `{"display_name":"d"}`,
		},
		"subscribe": {
			func(c *Cloud, ctx context.Context) error {
				_, err := c.Subscribe(ctx, "urn:t", "https", "https://x/y?z", "r")
				return err
			},
			201, `{"subscription_urn":"urn:s"}`, "POST " + smn + "/topics/urn:t/subscriptions", `{"endpoint":"https://x/y?z","protocol":"https","remark":"r"}`,
		},
		"the series of a metric": {
			func(c *Cloud, ctx context.Context) error {
				_, err := c.ListedSeries(ctx, "rds001_cpu_util")
				return err
			},
			200, `{"metrics":[]}`, "GET " + ces + "/metrics?limit=1000&metric_name=rds001_cpu_util&namespace=SYS.RDS", "",
		},
		"metric data": {
			queryData, 200, `{"metrics":[]}`, "POST " + ces + "/batch-query-metric-data",
			`{"filter":"average","from":1000,"metrics":[{"dimensions":[{"name":"d","value":"v"}],"metric_name":"m","namespace":"SYS.RDS"}],"period":"1","to":2000}`,
		},
		"flavors": {
			func(c *Cloud, ctx context.Context) error { _, err := c.Flavors(ctx, "MySQL", "8.0"); return err },
			200, `{"flavors":[]}`, "GET " + rds + "/flavors/MySQL?version_name=8.0", "",
		},
		"resize targets": {
			func(c *Cloud, ctx context.Context) error { _, err := c.ResizeTargets(ctx, "i1"); return err },
			200, `{"flavor_groups":[]}`, "GET " + rds + "/instances/i1/flavors-resize", "",
		},
		"the storage policy": {
			func(c *Cloud, ctx context.Context) error { _, err := c.StoragePolicy(ctx, "i1"); return err },
			200, `{"switch_option":false}`, "GET " + rds + "/instances/i1/disk-auto-expansion", "",
		},
		"a topic": {
			func(c *Cloud, ctx context.Context) error { _, err := c.Topic(ctx, "urn:t"); return err },
			200, `{"topic_urn":"urn:t"}`, "GET " + smn + "/topics/urn:t", "",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fake{service: answer(tt.status, tt.reply)}
			c := connectTo(t, f, Options{})
			if err := tt.do(c, t.Context()); err != nil {
				t.Fatal(err)
			}
			line, body := f.lastRequest()
			if line != tt.line {
				t.Errorf("request\n got %s\nwant %s", line, tt.line)
			}
			if diff := cmp.Diff(document(t, tt.body), document(t, body)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An API without autoscaling says so in several ways; none of them is "off".
func TestStoragePolicyReturnsNotFoundWhenAPIIsMissing(t *testing.T) {
	for _, status := range []int{404, 405, 501} {
		c := connectTo(t, &fake{service: answer(status, `{"error_code":"APIGW.0101","error_msg":"no such API"}`)}, Options{})
		if _, err := c.StoragePolicy(t.Context(), "i1"); !errors.Is(err, ErrNotFound) {
			t.Errorf("%d: %v", status, err)
		}
	}
	c := connectTo(t, &fake{service: answer(200, `{}`)}, Options{})
	if p, err := c.StoragePolicy(t.Context(), "i1"); err == nil {
		t.Errorf("an empty document: %+v", p)
	}
}

func document(t *testing.T, s string) any {
	t.Helper()
	if s == "" {
		return nil
	}
	var v any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v: %s", err, s)
	}
	return v
}

// The SDK joins paths without escaping: an id of the cloud or of a status must not reach another URL.
func TestInvalidIDsAreNotSent(t *testing.T) {
	f := &fake{service: answer(200, `{}`)}
	c := connectTo(t, f, Options{})
	ctx := t.Context()
	for _, id := range []string{"", "..", "../topics", "a/b", "a?b", "a#b", "a b", "*a", "-a", "ä", strings.Repeat("a", 600)} {
		_, rule := c.Rule(ctx, id)
		_, instance := c.Instance(ctx, id)
		_, targets := c.ResizeTargets(ctx, id)
		_, topic := c.TopicSubscriptions(ctx, id)
		_, subscribe := c.Subscribe(ctx, id, "https", "https://x", "")
		_, flavors := c.Flavors(ctx, id, "")
		_, policy := c.StoragePolicy(ctx, id)
		_, detail := c.Topic(ctx, id)
		for what, err := range map[string]error{
			"Rule": rule, "Instance": instance, "ResizeTargets": targets, "TopicSubscriptions": topic, "Subscribe": subscribe, "Flavors": flavors,
			"StoragePolicy": policy, "Topic": detail,
			"ModifyRule": c.ModifyRule(ctx, id, Rule{}), "EnableRule": c.EnableRule(ctx, id, true), "DeleteRule": c.DeleteRule(ctx, id),
			"UpdateTopic": c.UpdateTopic(ctx, id, ""), "DeleteTopic": c.DeleteTopic(ctx, id), "Unsubscribe": c.Unsubscribe(ctx, id),
		} {
			if err == nil {
				t.Errorf("%s(%q) was sent", what, id)
			}
		}
	}
	if _, n := f.counts(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestSubscribeFindsExistingSubscriptionAfterSMN0190(t *testing.T) {
	c := connectTo(t, &fake{service: func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			reply(w, 400, `{"code":"SMN.0190","message":"endpoint exists"}`)
			return
		}
		reply(w, 200, `{"subscriptions":[
			{"subscription_urn":"urn:old","protocol":"https","endpoint":"https://x","status":3},
			{"subscription_urn":"urn:other","protocol":"http","endpoint":"https://x","status":1},
			{"subscription_urn":"urn:s","protocol":"https","endpoint":"https://x","status":0}]}`)
	}}, Options{})
	if urn, err := c.Subscribe(t.Context(), "urn:t", "https", "https://x", ""); urn != "urn:s" || err != nil {
		t.Errorf("Subscribe = %q, %v", urn, err)
	}
	if _, err := c.Subscribe(t.Context(), "urn:t", "https", "https://y", ""); err == nil {
		t.Error("found another's")
	}
}

func TestDatapoints(t *testing.T) {
	queries := 0
	c := connectTo(t, &fake{service: func(w http.ResponseWriter, _ *http.Request) {
		if queries++; queries > 1 {
			reply(w, 200, `{"metrics":[]}`)
			return
		}
		reply(w, 200, `{"metrics":[
			{"metric_name":"m","dimensions":[{"name":"d","value":"v0"}],"datapoints":[{"average":2.5,"timestamp":2000},{"timestamp":3000},{"average":0,"timestamp":1000}]},
			{"metric_name":"m","dimensions":[{"name":"d","value":"v1"}],"datapoints":[]},
			{"metric_name":"m","dimensions":[{"name":"d","value":"stranger"}],"datapoints":[{"average":1,"timestamp":1}]}]}`)
	}}, Options{})
	var series []Series
	for i := range 21 {
		series = append(series, Series{"m", "d", fmt.Sprintf("v%d", i)})
	}
	got, err := c.Datapoints(t.Context(), series, 300, time.Unix(0, 0), time.Unix(9, 0))
	if err != nil {
		t.Fatal(err)
	}
	want := map[Series][]Datapoint{series[0]: {{time.UnixMilli(1000).UTC(), 0}, {time.UnixMilli(2000).UTC(), 2.5}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a point without an average is none, and they come oldest first:\n%s", diff)
	}
	if queries != 3 {
		t.Errorf("%d queries for 21 series, want 3 of at most 10", queries)
	}
}

func TestEveryPage(t *testing.T) {
	all := make([]string, 250)
	for i := range all {
		all[i] = fmt.Sprintf("r%03d", i)
	}
	index := func(last string) int {
		for i, s := range all {
			if s == last {
				return i
			}
		}
		return -1
	}
	from := func(i, n int) []string { return all[min(i, len(all)):min(i+n, len(all))] }
	tests := map[string]struct {
		fetch    func(offset int, last string) ([]string, int, error)
		want     int
		requests int
	}{
		"by offset":                    {func(o int, _ string) ([]string, int, error) { return from(o, 100), -1, nil }, 250, 3},
		"by marker, after it":          {func(_ int, l string) ([]string, int, error) { return from(index(l)+1, 100), 250, nil }, 250, 3},
		"by marker, at it":             {func(_ int, l string) ([]string, int, error) { return from(max(index(l), 0), 100), 250, nil }, 250, 3},
		"always the same page":         {func(int, string) ([]string, int, error) { return from(0, 100), 250, nil }, 100, 2},
		"pages smaller than asked for": {func(o int, _ string) ([]string, int, error) { return from(o, 50), 250, nil }, 250, 5},
		"a total that is never met":    {func(o int, _ string) ([]string, int, error) { return from(o, 100), 999, nil }, 250, 4},
		"a total of the page only":     {func(o int, _ string) ([]string, int, error) { return from(o, 100), 100, nil }, 250, 3},
		"nothing":                      {func(int, string) ([]string, int, error) { return nil, 0, nil }, 0, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			requests := 0
			got, err := everyPage(func(s string) string { return s }, strings.ToUpper, func(o int, l string) ([]string, int, error) {
				requests++
				return tt.fetch(o, l)
			})
			if err != nil || len(got) != tt.want || requests != tt.requests || slices.Contains(got, "r000") {
				t.Errorf("%d rows by %d requests, %v; want %d by %d", len(got), requests, err, tt.want, tt.requests)
			}
		})
	}
}
