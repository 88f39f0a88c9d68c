// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsps/rds-autopilot/autopilot"
)

// The SDK does not escape path segments, so an id that contains "/" would address another resource.
func TestInvalidIDsAreNotSent(t *testing.T) {
	f := &fake{service: answer(200, `{}`)}
	c := connectTo(t, f, Options{})
	ctx := t.Context()
	for _, id := range []string{"", "..", "../topics", "a/b", "a?b", "a#b", "a b", "*a", "-a", "ä", strings.Repeat("a", 600)} {
		_, rule := c.Rule(ctx, id)
		_, instance := c.readInstance(ctx, id)
		_, resizes := c.ResizeList(ctx, autopilot.Instance{ID: id})
		_, topic := c.TopicSubscriptions(ctx, id)
		_, subscribe := c.Subscribe(ctx, id, "https", "https://x", "")
		_, flavors := c.ListFlavors(ctx, id, "")
		for what, err := range map[string]error{
			"Rule": rule, "Instance": instance, "ResizeList": resizes, "TopicSubscriptions": topic, "Subscribe": subscribe, "ListFlavors": flavors,
			"ModifyRule": c.ModifyRule(ctx, id, Rule{}), "EnableRule": c.EnableRule(ctx, id, true), "DeleteRule": c.DeleteRule(ctx, id),
			"DeleteTopic": c.DeleteTopic(ctx, id), "Unsubscribe": c.Unsubscribe(ctx, id),
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
		t.Error("Subscribe returned the subscription of another endpoint")
	}
}

func TestQueryPointsReturnsOnlyWhatWasRequested(t *testing.T) {
	c := connectTo(t, &fake{service: answer(200, `{"metrics":[
		{"metric_name":"m","dimensions":[{"name":"d","value":"v0"}],"datapoints":[{"average":2.5,"timestamp":2000},{"timestamp":3000},{"average":"a lot","timestamp":4000},{"average":0,"timestamp":1000}]},
		{"metric_name":"m","dimensions":[{"name":"d","value":"v1"}],"datapoints":[]},
		{"metric_name":"m","dimensions":[{"name":"d","value":"stranger"}],"datapoints":[{"average":1,"timestamp":1}]}]}`)}, Options{})
	first := Series{"m", "d", "v0"}
	got, err := c.queryPoints(t.Context(), []Series{first, {"m", "d", "v1"}}, 300, time.Unix(0, 0), time.Unix(9, 0))
	must(t, err)
	want := map[Series][]autopilot.Point{first: {{Time: time.UnixMilli(1000).UTC()}, {Time: time.UnixMilli(2000).UTC(), Value: 2.5}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want only points with an average, the oldest first:\n%s", diff)
	}
}

func TestEveryPageReadsUntilNoNewRowFollows(t *testing.T) {
	all := make([]string, 250)
	for i := range all {
		all[i] = fmt.Sprintf("r%03d", i)
	}
	index := func(last string) int { return slices.Index(all, last) }
	from := func(i, n int) []string { return all[min(i, len(all)):min(i+n, len(all))] }
	tests := map[string]struct {
		fetch    func(offset int, last string) ([]string, int, error)
		want     int
		requests int
	}{
		"by offset":                    {func(o int, _ string) ([]string, int, error) { return from(o, 100), -1, nil }, 250, 3},
		"by marker, after it":          {func(_ int, l string) ([]string, int, error) { return from(index(l)+1, 100), 250, nil }, 250, 3},
		"by marker, at it":             {func(_ int, l string) ([]string, int, error) { return from(max(index(l), 0), 100), 250, nil }, 250, 3},
		"pages smaller than asked for": {func(o int, _ string) ([]string, int, error) { return from(o, 50), 250, nil }, 250, 5},
		"always the same page":         {func(int, string) ([]string, int, error) { return from(0, 100), 250, nil }, 100, 2},
		"a total that is never met":    {func(o int, _ string) ([]string, int, error) { return from(o, 100), 999, nil }, 250, 4},
		"a total of the page only":     {func(o int, _ string) ([]string, int, error) { return from(o, 100), 100, nil }, 250, 3},
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

// SMN reports some errors with the status 200. The expected key in the reply shows success. An operation without such a
// key has failed if the reply has a code of the services.
func TestSuccessfulStatusWithoutResultIsAnError(t *testing.T) {
	subscribe := func(ctx context.Context, c *Cloud) error {
		_, err := c.Subscribe(ctx, "urn:t", "https", "https://x/y", "r")
		return err
	}
	modify := func(ctx context.Context, c *Cloud) error { return c.ModifyRule(ctx, "al1", Rule{}) }
	rules := func(ctx context.Context, c *Cloud) error { _, err := c.ListRules(ctx); return err }
	for name, tt := range map[string]struct {
		do   func(context.Context, *Cloud) error
		body string
		err  string
	}{
		"the key":                   {subscribe, `{"request_id":"r","subscription_urn":"urn:s"}`, ""},
		"a code alone":              {subscribe, `{"request_id":"r","code":"SMN.0012","message":"The endpoint is invalid"}`, "smn Subscribe: 200 SMN.0012 The endpoint is invalid"},
		"a list after other things": {rules, `{"meta_data":{"count":0},"metric_alarms":[]}`, ""},
		"no list":                   {rules, `{"meta_data":{"count":0}}`, "ces ListRules: the reply contains no metric_alarms"},
		"a list that is cut off":    {rules, `{"metric_alarms":[{"alarm_id":"al1"}`, "ces ListRules: the reply is not a JSON object: unexpected end of JSON input"},
		"too large":                 {rules, `{"metric_alarms":[` + strings.Repeat(" ", replyLimit) + `]}`, "ces ListRules: the reply is too large"},
		"no key is expected":        {modify, ``, ""},
		"a code of failure":         {modify, `{"code":"ces.0007","message":"Internal error"}`, "ces ModifyRule: 200 ces.0007 Internal error"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			synctest.Test(t, func(t *testing.T) { // some are retried, which takes seconds
				err = tt.do(t.Context(), connectTo(t, &fake{service: answer(200, tt.body)}, Options{}))
			})
			if err == nil && tt.err != "" || err != nil && err.Error() != tt.err {
				t.Errorf("%v, want %q", err, tt.err)
			}
		})
	}
}

func TestErrorRepliesOfAllServicesAreParsed(t *testing.T) {
	tests := map[string]struct {
		status        int
		body          string
		code, message string
		is            []error
	}{
		"SMN":                          {404, `{"request_id":"r","code":"SMN.0006","message":"Topic not found"}`, "SMN.0006", "Topic not found", []error{ErrNotFound}},
		"SMN, quota":                   {403, `{"request_id":"r","code":"SMN.0004","message":"too many"}`, "SMN.0004", "too many", []error{ErrQuota}},
		"SMN, quota of subscriptions":  {403, `{"request_id":"r","code":"SMN.0007","message":"too many"}`, "SMN.0007", "too many", []error{ErrQuota}},
		"SMN, quota of its other code": {403, `{"request_id":"r","code":"SMN.0078","message":"too many"}`, "SMN.0078", "too many", []error{ErrQuota}},
		"CES v1, number":               {400, `{"http_code":400,"message":{"details":"gone","code":"ces.0016"}}`, "ces.0016", "gone", []error{ErrNotFound}},
		"CES v1, gone, with 200":       {200, `{"http_code":"404","message":{"details":"gone","code":"ces.0016"}}`, "ces.0016", "gone", []error{ErrNotFound}},
		"RDS, with 202":                {202, `{"error_code":"DBS.200316","error_msg":"full"}`, "DBS.200316", "full", nil},
		"CES v1, quota":                {403, `{"http_code":"403","message":{"details":"full","code":"ces.0018"}}`, "ces.0018", "full", []error{ErrQuota}},
		"CES v2":                       {500, `{"error_code":"ces.0016","error_msg":"no rule","request_id":"r"}`, "ces.0016", "no rule", []error{ErrNotFound}},
		"RDS, old":                     {409, `{"errCode":"RDS.0010","externalMessage":"busy"}`, "RDS.0010", "busy", nil},
		"IAM":                          {401, `{"error":{"code":401,"message":"wrong password","title":"Unauthorized"}}`, "401", "wrong password", []error{ErrCredentials}},
		"too many":                     {429, `{"error_code":"APIGW.0308","error_msg":"throttled"}`, "APIGW.0308", "throttled", []error{ErrUnavailable}},
		"a proxy's page":               {502, `<html>Bad Gateway</html>`, "", "bad gateway", []error{ErrUnavailable}},
		"an odd document":              {500, `[1,2]`, "", "internal server error", []error{ErrUnavailable}},
		"odd types":                    {500, `{"code":{"a":1},"message":7,"error":"x","error_msg":"kept"}`, "", "kept", []error{ErrUnavailable}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var err error
			synctest.Test(t, func(t *testing.T) { // some are retried, which takes seconds
				err = connectTo(t, &fake{service: answer(tt.status, tt.body)}, Options{}).ModifyRule(t.Context(), "al1", Rule{})
			})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("err = %v", err)
			}
			if e.Status != tt.status || e.Code != tt.code || e.Message != tt.message || e.Service != "ces" {
				t.Errorf("got %+v", e)
			}
			for _, kind := range []error{ErrNotFound, ErrQuota, ErrCredentials, ErrUnavailable} {
				if want := slices.Contains(tt.is, kind); errors.Is(err, kind) != want {
					t.Errorf("errors.Is(%v, %v) = %v", err, kind, !want)
				}
			}
		})
	}
}
