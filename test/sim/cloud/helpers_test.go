// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeClock stands at a full period of five minutes.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
}

func (f *fakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeClock) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// world is a cloud with a client that has a token.
type world struct {
	*Cloud
	t     *testing.T
	clock *fakeClock
	token string
}

func start(t *testing.T, opts Options) *world {
	t.Helper()
	w := &world{t: t, clock: newClock()}
	if opts.Now == nil {
		opts.Now = w.clock.Now
	}
	c, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	w.Cloud = c
	w.login()
	return w
}

// on is the same world in a subtest.
func (w *world) on(t *testing.T) *world {
	return &world{w.Cloud, t, w.clock, w.token}
}

func (w *world) env(key string) string {
	for _, kv := range w.Env() {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	w.t.Fatalf("no %s", key)
	return ""
}

func (w *world) login() {
	w.t.Helper()
	res, _ := w.loginAs(w.env("OS_PASSWORD"))
	if res.StatusCode != http.StatusCreated {
		w.t.Fatalf("login: %d", res.StatusCode)
	}
	w.token = res.Header.Get("X-Subject-Token")
}

func (w *world) loginAs(password string) (*http.Response, map[string]any) {
	w.t.Helper()
	domain := map[string]any{"name": w.env("OS_DOMAIN_NAME")}
	return w.request("POST", w.AuthURL()+"/auth/tokens", map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": w.env("OS_USERNAME"), "password": password, "domain": domain},
		}},
		"scope": map[string]any{"project": map[string]any{"name": w.env("OS_PROJECT_NAME"), "domain": domain}},
	}})
}

func (w *world) request(method, url string, body any) (*http.Response, map[string]any) {
	w.t.Helper()
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			w.t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, url, bytes.NewReader(data))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", w.token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	out := map[string]any{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			w.t.Fatalf("%s %s: %q: %v", method, url, raw, err)
		}
	}
	return res, out
}

// call makes a request of a service and checks the status.
func (w *world) call(want int, service, method, path string, body any) map[string]any {
	w.t.Helper()
	base := map[string]string{
		"smn": "/v2/" + w.ProjectID() + "/notifications", "ces": "/V1.0/" + w.ProjectID(), "rds": "/v3/" + w.ProjectID(),
	}[service]
	res, out := w.request(method, w.Endpoint(service)+base+path, body)
	if res.StatusCode == http.StatusUnauthorized && want != res.StatusCode { // a token lives for a day of the simulated time
		w.login()
		res, out = w.request(method, w.Endpoint(service)+base+path, body)
	}
	if res.StatusCode != want {
		w.t.Fatalf("%s %s: status %d, want %d: %v", method, path, res.StatusCode, want, out)
	}
	return out
}

func (w *world) newTopic(name string) string {
	w.t.Helper()
	return w.call(201, "smn", "POST", "/topics", map[string]any{"name": name, "display_name": name})["topic_urn"].(string)
}

func (w *world) newSubscription(topic, endpoint string) string {
	w.t.Helper()
	protocol, _, _ := strings.Cut(endpoint, ":")
	out := w.call(201, "smn", "POST", "/topics/"+topic+"/subscriptions", map[string]any{"endpoint": endpoint, "protocol": protocol})
	return out["subscription_urn"].(string)
}

func (w *world) step() {
	w.t.Helper()
	w.Step(w.t.Context())
}

// minutes passes time minute by minute.
func (w *world) minutes(n int) {
	w.t.Helper()
	for range n {
		w.clock.advance(w.span(time.Minute))
		w.step()
	}
}

// trusting is a client that trusts the cloud's authority.
func (w *world) trusting() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.CAPEM())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (w *world) get(url string) (int, []byte) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.trusting().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res.StatusCode, body
}

// endpoint receives messages and answers with the statuses given, the last of them for ever.
type endpoint struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int
	got      []Envelope
	headers  []http.Header
}

func receive(t *testing.T, statuses ...int) *endpoint {
	e := &endpoint{statuses: append(statuses, 200)[:max(len(statuses), 1)]}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var env Envelope
		err := json.NewDecoder(r.Body).Decode(&env)
		e.mu.Lock()
		defer e.mu.Unlock()
		if err != nil || r.Method != http.MethodPost {
			t.Errorf("%s: %v", r.Method, err)
		}
		e.got, e.headers = append(e.got, env), append(e.headers, r.Header)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(e.statuses[0])
		if len(e.statuses) > 1 {
			e.statuses = e.statuses[1:]
		}
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) messages() []Envelope {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Envelope(nil), e.got...)
}

// subscribed is a topic with a confirmed subscription of an endpoint; its messages so far are forgotten.
func (w *world) subscribed(e *endpoint) (topic string) {
	w.t.Helper()
	topic = w.newTopic("t-" + hexID(6))
	urn := w.newSubscription(topic, e.URL)
	w.Step(context.Background())
	if !w.Confirm(urn) {
		w.t.Fatal("not confirmed")
	}
	e.mu.Lock()
	e.got = nil
	e.mu.Unlock()
	return topic
}

func (w *world) newInstance(flavor string, gb int, load Workload) Instance {
	w.t.Helper()
	in, err := w.AddInstance(Instance{Flavor: flavor, VolumeGB: gb, Workload: load})
	if err != nil {
		w.t.Fatal(err)
	}
	return in
}

func (w *world) change(in Instance, change func(*Instance)) {
	w.t.Helper()
	if err := w.ChangeInstance(in.ID, change); err != nil {
		w.t.Fatal(err)
	}
}

func ruleBody(name string, d Dimension, metric string, cond Condition, topic string) map[string]any {
	actions := []Action{{Type: "notification", NotificationList: []string{topic}}}
	return map[string]any{
		"alarm_name": name, "metric": Metric{Namespace: "SYS.RDS", MetricName: metric, Dimensions: []Dimension{d}}, "condition": cond,
		"alarm_actions": actions, "ok_actions": actions, "alarm_enabled": true, "alarm_action_enabled": true,
	}
}

func condition(period, count, suppress int, value float64) Condition {
	return Condition{Period: period, Filter: "average", ComparisonOperator: ">=", Value: value, Count: count, SuppressDuration: suppress}
}
