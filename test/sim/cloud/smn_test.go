// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"
)

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

func TestMessageStructureHasATextForEachProtocol(t *testing.T) {
	w, e := start(t, Options{}), receive(t)
	topic := w.subscribed(e)
	publish := func(want int, structure string) map[string]any {
		return w.call(want, "smn", "POST", "/topics/"+topic+"/publish", map[string]any{
			"subject": "s", "message": "of the lowest rank", "message_structure": structure,
		})
	}
	publish(200, `{"default": "any", "http": "own"}`)
	publish(200, `{"default": "any", "email": "other"}`)
	w.step()
	texts := map[string]bool{} // in any order
	for _, m := range e.messages() {
		texts[m.Message] = true
	}
	if len(texts) != 2 || !texts["own"] || !texts["any"] {
		t.Error(texts)
	}
	for _, bad := range []string{"", "text", `{"http": "own"}`, `{"default": 1}`} {
		if out := publish(400, bad); out["code"] != "SMN.0021" {
			t.Error(bad, out)
		}
	}
}
