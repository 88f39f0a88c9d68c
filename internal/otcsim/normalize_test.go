// SPDX-License-Identifier: Apache-2.0

package otcsim

import "testing"

// What is stored in another form is found again by the form it was sent in.
func TestWhatIsSentMayBeListedInAnotherForm(t *testing.T) {
	w := start(t, Options{Settings: Settings{Normalizes: true}})
	topic := w.newTopic("a")
	urn := w.newSubscription(topic, "https://Example.com/smn/")
	rows := w.call(200, "smn", "GET", "/topics/"+topic+"/subscriptions", nil)["subscriptions"].([]any)
	if got := rows[0].(map[string]any)["endpoint"]; got != "https://example.com/smn" {
		t.Errorf("the endpoint is listed as %v", got)
	}
	again := w.call(200, "smn", "POST", "/topics/"+topic+"/subscriptions", map[string]any{"endpoint": "https://Example.com/smn/", "protocol": "https"})
	if again["subscription_urn"] != urn || len(w.Subscriptions()) != 1 {
		t.Errorf("subscribed twice: %v", w.Subscriptions())
	}
	for period, want := range map[int]string{1: "raw", 300: "average"} {
		id := w.call(201, "ces", "POST", "/alarms", ruleBody("r", Dimension{"k", "v"}, "m", condition(period, 1, 0, 1), topic))["alarm_id"].(string)
		for _, path := range []string{"/alarms/" + id, "/alarms?limit=1"} {
			row := w.call(200, "ces", "GET", path, nil)["metric_alarms"].([]any)[0].(map[string]any)
			if got := row["condition"].(map[string]any)["filter"]; got != want {
				t.Errorf("%s of period %d: filter %v, want %s", path, period, got, want)
			}
		}
	}
}

func TestSubscribingTwiceMayBeAnsweredByACode(t *testing.T) {
	w := start(t, Options{Settings: Settings{ExistsAsCode: true}})
	topic := w.newTopic("a")
	w.newSubscription(topic, "https://example.com/smn")
	again := w.call(200, "smn", "POST", "/topics/"+topic+"/subscriptions", map[string]any{"endpoint": "https://example.com/smn", "protocol": "https"})
	if again["code"] != "SMN.0190" || again["subscription_urn"] != nil || len(w.Subscriptions()) != 1 {
		t.Errorf("%v, %d subscriptions", again, len(w.Subscriptions()))
	}
}
