// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
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
	if err != nil {
		t.Fatal(err)
	}
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
