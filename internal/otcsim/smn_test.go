// SPDX-License-Identifier: Apache-2.0

package otcsim

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestTopicsAreIdempotentByName(t *testing.T) {
	w := start(t, Options{})
	urn := w.newTopic("autopilot_a")
	if want := "urn:smn:eu-de:" + w.ProjectID() + ":autopilot_a"; urn != want {
		t.Errorf("URN %s, want %s", urn, want)
	}
	again := w.call(200, "smn", "POST", "/topics", map[string]any{"name": "autopilot_a", "display_name": "other"})
	if again["topic_urn"] != urn || len(w.Topics()) != 1 {
		t.Error(again, w.Topics())
	}
	w.call(200, "smn", "PUT", "/topics/"+urn, map[string]any{"display_name": "new"})
	if got := w.call(200, "smn", "GET", "/topics/"+urn, nil); got["display_name"] != "new" || got["name"] != "autopilot_a" {
		t.Error(got)
	}
}

func TestTopicsAreListedInPagesNewestFirst(t *testing.T) {
	w := start(t, Options{})
	for i := range 103 {
		w.newTopic(fmt.Sprintf("t%03d", i))
	}
	var names []string
	for offset := 0; ; offset += 50 {
		out := w.call(200, "smn", "GET", fmt.Sprintf("/topics?offset=%d&limit=50", offset), nil)
		if out["topic_count"] != 103.0 {
			t.Fatal(out["topic_count"])
		}
		rows := out["topics"].([]any)
		for _, r := range rows {
			names = append(names, r.(map[string]any)["name"].(string))
		}
		if len(rows) == 0 {
			break
		}
	}
	if len(names) != 103 || names[0] != "t102" || names[102] != "t000" {
		t.Errorf("%d: %v", len(names), names)
	}
	if rows := w.call(200, "smn", "GET", "/topics", nil)["topics"].([]any); len(rows) != 100 {
		t.Errorf("%d rows without a limit", len(rows))
	}
}

func TestDeletingATopicRemovesItsSubscriptionsAndMessages(t *testing.T) {
	w, e := start(t, Options{}), receive(t)
	gone, kept := w.newTopic("gone"), w.newTopic("kept")
	w.newSubscription(gone, e.URL)
	urn := w.newSubscription(kept, e.URL)
	w.call(200, "smn", "DELETE", "/topics/"+gone, nil)
	w.step()
	if subs := w.Subscriptions(); len(subs) != 1 || subs[0].URN != urn {
		t.Error(subs)
	}
	if got := e.messages(); len(got) != 1 || got[0].TopicURN != kept {
		t.Error(got)
	}
	w.call(404, "smn", "GET", "/topics/"+gone, nil)
	w.call(200, "smn", "DELETE", "/subscriptions/"+urn, nil)
	if len(w.Subscriptions()) != 0 {
		t.Error(w.Subscriptions())
	}
}

func TestSMNRefusals(t *testing.T) {
	w := start(t, Options{Settings: Settings{TopicQuota: 2, SubscriptionQuota: 1, RefusePrivateEndpoints: true}})
	a := w.newTopic("a")
	w.newTopic("b")
	w.newSubscription(a, "https://example.com/x")
	topic := "/topics/" + a
	missing := strings.TrimSuffix(topic, "a") + "missing"
	sub := func(endpoint, protocol, remark string) map[string]any {
		return map[string]any{"endpoint": endpoint, "protocol": protocol, "remark": remark}
	}
	for name, c := range map[string]struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		"topic quota":            {"POST", "/topics", map[string]any{"name": "c"}, 403, "SMN.0004"},
		"topic name":             {"POST", "/topics", map[string]any{"name": "-c"}, 400, "SMN.0002"},
		"long topic name":        {"POST", "/topics", map[string]any{"name": strings.Repeat("c", 256)}, 400, "SMN.0002"},
		"display name":           {"POST", "/topics", map[string]any{"name": "a", "display_name": strings.Repeat("ä", 97)}, 400, "SMN.0003"},
		"no such topic":          {"GET", missing, nil, 404, "SMN.0006"},
		"topic URN":              {"GET", "/topics/nonsense", nil, 400, "SMN.0005"},
		"limit":                  {"GET", "/topics?limit=101", nil, 400, "SMN.0015"},
		"offset":                 {"GET", "/subscriptions?offset=-1", nil, 400, "SMN.0015"},
		"protocol":               {"POST", topic + "/subscriptions", sub("https://example.com", "ftp", ""), 400, "SMN.0011"},
		"endpoint of protocol":   {"POST", topic + "/subscriptions", sub("http://example.com", "https", ""), 400, "SMN.0012"},
		"remark":                 {"POST", topic + "/subscriptions", sub("https://example.com", "https", strings.Repeat("r", 129)), 400, "SMN.0017"},
		"private endpoint":       {"POST", topic + "/subscriptions", sub("http://127.0.0.1:80", "http", ""), 403, "SMN.0069"},
		"subscription quota":     {"POST", topic + "/subscriptions", sub("https://example.com/y", "https", ""), 403, "SMN.0007"},
		"no such subscription":   {"DELETE", "/subscriptions/" + a + ":" + strings.Repeat("0", 32), nil, 404, "SMN.0013"},
		"subscription URN":       {"DELETE", "/subscriptions/nonsense", nil, 400, "SMN.0014"},
		"subscription to no-one": {"POST", missing + "/subscriptions", sub("https://example.com", "https", ""), 404, "SMN.0006"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			if out := w.call(c.status, "smn", c.method, c.path, c.body); out["code"] != c.code {
				t.Errorf("got %v, want %s", out, c.code)
			}
		})
	}
}

func TestConfirmationByItsLink(t *testing.T) {
	w, e := start(t, Options{}), receive(t)
	topic := w.newTopic("a")
	urn := w.newSubscription(topic, e.URL)
	if _, err := w.Publish(topic, "", "before"); err != nil {
		t.Fatal(err)
	}
	w.step()
	again := w.call(200, "smn", "POST", "/topics/"+topic+"/subscriptions", map[string]any{"endpoint": e.URL, "protocol": "http"})
	if again["subscription_urn"] != urn {
		t.Error(again)
	}
	w.step()
	got := e.messages()
	if len(got) != 2 || got[0].Type != TypeConfirmation || got[1].Type != TypeConfirmation {
		t.Fatalf("want the confirmation twice and no notification: %v", got)
	}
	if h := e.headers[0]; h.Get("X-SMN-MESSAGE-TYPE") != TypeConfirmation || h.Get("X-SMN-MESSAGE-ID") != got[0].MessageID || h.Get("X-SMN-TOPIC-URN") != topic {
		t.Error(h)
	}
	link, err := url.Parse(got[0].SubscribeURL)
	if err != nil || link.Host != w.ConfirmHost() || link.Query().Get("topic_urn") != topic || link.Query().Get("region") != "eu-de" {
		t.Fatal(link, err)
	}
	for name, change := range map[string]func(url.Values){
		"token": func(q url.Values) { q.Set("token", "0"+q.Get("token")) },
		"topic": func(q url.Values) { q.Set("topic_urn", topic+"b") },
	} {
		q := link.Query()
		change(q)
		if status, _ := w.get("https://" + link.Host + link.Path + "?" + q.Encode()); status != 400 {
			t.Errorf("another %s: status %d", name, status)
		}
	}
	if s := w.Subscriptions()[0]; s.Status != Unconfirmed {
		t.Error("confirmed by a wrong link")
	}
	status, body := w.get(got[0].SubscribeURL)
	var out map[string]string
	if err := json.Unmarshal(body, &out); err != nil || status != 200 || out["subscription_urn"] != urn {
		t.Fatal(status, string(body), err)
	}
	rows := w.call(200, "smn", "GET", "/topics/"+topic+"/subscriptions", nil)["subscriptions"].([]any)
	if row := rows[0].(map[string]any); row["status"] != 1.0 || row["owner"] != w.ProjectID() || row["endpoint"] != e.URL {
		t.Error(row)
	}
	id, err := w.Publish(topic, "s", "after")
	if err != nil {
		t.Fatal(err)
	}
	w.step()
	last := e.messages()[2]
	if last.MessageID != id || last.Message != "after" || last.Subject != "s" || last.Type != TypeNotification {
		t.Error(last)
	}
	if err := verify(t, last, w.SigningCertPEM()); err != nil {
		t.Error(err)
	}
}

func TestConfirmationLinkEndsAfter48Hours(t *testing.T) {
	w, e := start(t, Options{}), receive(t)
	w.newSubscription(w.newTopic("a"), e.URL)
	w.step()
	link := e.messages()[0].SubscribeURL
	w.clock.advance(48*time.Hour - time.Second)
	if status, _ := w.get(link); status != 200 {
		t.Errorf("within 48 hours: %d", status)
	}
	w.clock.advance(time.Second)
	if status, _ := w.get(link); status != 400 {
		t.Errorf("after 48 hours: %d", status)
	}
}

func TestUnsubscribingNotifiesTheEndpointAndItsLinkSubscribesAgain(t *testing.T) {
	w, e := start(t, Options{}), receive(t)
	topic := w.subscribed(e)
	if _, err := w.Publish(topic, "", "x"); err != nil {
		t.Fatal(err)
	}
	w.step()
	if status, _ := w.get(e.messages()[0].UnsubscribeURL); status != 200 {
		t.Fatal(status)
	}
	if _, err := w.Publish(topic, "", "y"); err != nil {
		t.Fatal(err)
	}
	w.step()
	got := e.messages()
	if len(got) != 2 || got[1].Type != TypeUnsubscribe || w.Subscriptions()[0].Status != Cancelled {
		t.Fatal(got, w.Subscriptions())
	}
	if err := verify(t, got[1], w.SigningCertPEM()); err != nil {
		t.Error(err)
	}
	if status, _ := w.get(got[1].SubscribeURL); status != 200 || w.Subscriptions()[0].Status != Confirmed {
		t.Error(status, w.Subscriptions())
	}
}

func TestConfirmationsAreLimited(t *testing.T) {
	w, e := start(t, Options{Settings: Settings{ConfirmationQuota: 2}}), receive(t)
	topic := w.newTopic("a")
	for i := range 3 {
		w.newSubscription(topic, fmt.Sprintf("%s/%d", e.URL, i))
	}
	w.step()
	if n := len(e.messages()); n != 2 {
		t.Errorf("%d confirmations", n)
	}
	w.clock.advance(10*time.Minute + time.Second)
	w.call(200, "smn", "POST", "/topics/"+topic+"/subscriptions", map[string]any{"endpoint": e.URL + "/2", "protocol": "http"})
	w.step()
	if n := len(e.messages()); n != 3 {
		t.Errorf("%d confirmations after 10 minutes", n)
	}
}
