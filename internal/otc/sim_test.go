// SPDX-License-Identifier: Apache-2.0

package otc

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/flavors"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

func simulate(t *testing.T, o simcloud.Options) *simcloud.Cloud {
	t.Helper()
	o.Local = true
	sim, err := simcloud.Start(o)
	must(t, err)
	return sim
}

// lookUpIn returns a function that looks up a variable in "KEY=VALUE" pairs. The last pair of a key counts.
func lookUpIn(pairs []string) func(string) string {
	values := map[string]string{}
	for _, pair := range pairs {
		k, v, _ := strings.Cut(pair, "=")
		values[k] = v
	}
	return func(k string) string { return values[k] }
}

// connectSim connects at a rate in requests per second.
func connectSim(t *testing.T, sim *simcloud.Cloud, env []string, rate float64) *Cloud {
	t.Helper()
	c, err := Connect(t.Context(), Options{Env: lookUpIn(env), Transport: sim, Rate: rate, Log: zap.NewNop(), Now: time.Now})
	must(t, err)
	return c
}

// The package alarms tests the calls to SMN and Cloud Eye.
func TestInstancesAndFlavorsAreReadWithAPasswordAndAnAccessKey(t *testing.T) {
	for name, tc := range map[string]struct {
		env            func(*simcloud.Cloud) []string
		noCESInCatalog bool
	}{
		"password":   {(*simcloud.Cloud).Env, false},
		"access key": {(*simcloud.Cloud).AKSKEnv, true},
	} {
		t.Run(name, func(t *testing.T) {
			sim := simulate(t, simcloud.Options{Settings: simcloud.Settings{NoCESInCatalog: tc.noCESInCatalog}})
			c := connectSim(t, sim, tc.env(sim), 1e6)
			if c.ProjectID() != sim.ProjectID() || c.Region() != sim.Region() {
				t.Errorf("project %s, region %s", c.ProjectID(), c.Region())
			}
			if host := c.SMNHost(); host == "" || !strings.Contains(sim.Endpoint("smn"), "//"+host+"/") {
				t.Errorf("the SMN host is %q, and SMN is at %s", host, sim.Endpoint("smn"))
			}
			checkRDS(t, c, sim)
		})
	}
}

func TestSameEndpointIgnoresCaseOfHostAndDefaultPort(t *testing.T) {
	const url = "https://example.com/smn?a=B"
	for other, want := range map[string]bool{
		url: true, "HTTPS://Example.COM:443/smn?a=B": true, "https://example.com/smn/?a=B": false, "https://example.com/SMN?a=B": false,
		"http://example.com/smn?a=B": false, "https://example.com:8443/smn?a=B": false, "https://example.com/smn": false, "%": false, "": false,
	} {
		if SameEndpoint(url, other) != want || SameEndpoint(other, url) != want {
			t.Errorf("SameEndpoint(%q) = %t", other, !want)
		}
	}
	if !SameEndpoint("http://x", "http://x:80/") {
		t.Error("an endpoint without a path differs from the one with the path /")
	}
}

func checkRDS(t *testing.T, c *Cloud, sim *simcloud.Cloud) {
	ctx := t.Context()
	in, err := sim.AddInstance(simcloud.Instance{Flavor: "rds.pg.n1.large.4.ha", VolumeGB: 100})
	must(t, err)
	replica, err := sim.AddInstance(simcloud.Instance{Flavor: "rds.pg.n1.large.4.rr", VolumeGB: 100, ReplicaOf: in.ID})
	must(t, err)
	got, err := c.Instance(ctx, in.ID, time.Now())
	must(t, err)
	want := &autopilot.Instance{
		ID: in.ID, Name: in.Name, Status: "ACTIVE", Mode: "ha", Engine: "PostgreSQL", Version: in.Version, Flavor: "rds.pg.n1.large.4.ha",
		VCPUs: 2, MemoryGB: 8, VolumeGB: 100, Zones: []string{"eu-de-01", "eu-de-02"},
		NodeIDs: slices.Sorted(slices.Values([]string{in.Nodes[0].ID, in.Nodes[1].ID})), Primary: in.Nodes[0].ID,
		Replicas: []autopilot.Replica{{ID: replica.ID, Name: replica.Name, VCPUs: 2, MemoryGB: 8, VolumeGB: 100}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err := c.readInstance(ctx, replica.ID); got.Mode != "replica" || err != nil {
		t.Errorf("replica: %+v, %v", got, err)
	}
	if _, err := c.readInstance(ctx, strings.Repeat("0", 32)+"in03"); !errors.Is(err, ErrNotFound) {
		t.Errorf("no instance: %v", err)
	}
	offered, err := c.ListFlavors(ctx, "PostgreSQL", in.Version)
	if !slices.ContainsFunc(offered, func(f flavors.Flavor) bool {
		return f.Code == in.Flavor && f.VCPUs == 2 && f.MemoryGB == 8 && f.Mode == "ha" && f.Zones["eu-de-01"] == "normal"
	}) {
		t.Errorf("%s is not among %d flavors: %v", in.Flavor, len(offered), err)
	}
}

// TestLongListAtLowRateIsRead has the pages of instances.
func TestListsReadAllPages(t *testing.T) {
	sim := simulate(t, simcloud.Options{})
	c, ctx := connectSim(t, sim, sim.Env(), 1e6), t.Context()
	subscribed := ""
	for i := range 101 {
		urn, err1 := c.CreateTopic(ctx, fmt.Sprintf("t%d", i), "x")
		if i == 0 {
			subscribed = urn
		}
		_, err2 := c.Subscribe(ctx, subscribed, "https", fmt.Sprintf("https://example.com/%d", i), "")
		_, err3 := c.CreateRule(ctx, Rule{
			Name: "rule", Namespace: MetricNamespace, Metric: "rds039_disk_util", Dimension: "rds_cluster_id",
			DimensionValue: fmt.Sprint(i), Period: 1, Count: 5, Filter: "average", Comparison: ">=", Threshold: 90, Level: 2,
		})
		must(t, errors.Join(err1, err2, err3))
	}
	topics, err1 := c.Topics(ctx)
	subscriptions, err2 := c.TopicSubscriptions(ctx, subscribed)
	states, err3 := c.AlarmStates(ctx, time.Now())
	if err := errors.Join(err1, err2, err3); err != nil || len(topics) != 101 || len(subscriptions) != 101 || len(states) != 101 {
		t.Errorf("%d topics, %d subscriptions, %d rules, %v; want 101 each", len(topics), len(subscriptions), len(states), err)
	}
}

func TestListedSeriesReadsAllPages(t *testing.T) {
	var elapsed atomic.Int64 // nanoseconds since the start
	start := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	sim := simulate(t, simcloud.Options{Now: func() time.Time { return start.Add(time.Duration(elapsed.Load())) }})
	c := connectSim(t, sim, sim.Env(), 1e6)
	for calls, series := range []int{0, 1000, 2000} { // an instance and its node have one each
		for range min(series, 500) {
			if _, err := sim.AddInstance(simcloud.Instance{Flavor: "rds.mysql.c2.medium", VolumeGB: 40}); err != nil {
				t.Fatal(err)
			}
		}
		elapsed.Add(int64(10 * time.Minute))
		sim.ResetRequests()
		listed, err := c.ListSeries(t.Context())
		if n := sim.Count("ces", "ListMetrics"); len(listed) != series || err != nil || n != max(calls, 1) {
			t.Errorf("%d series in %d calls, %v; want %d in %d", len(listed), n, err, series, max(calls, 1))
		}
	}
}

const (
	fakePassword = "secret-pass-w0rd"
	fakeProject  = "0123456789abcdef0123456789abcdef"
)

// fake is a cloud with a working IAM. One handler serves all other requests.
type fake struct {
	service http.HandlerFunc // serves all other requests

	mu       sync.Mutex
	logins   int
	refuse   bool // logins are refused
	token    string
	requests int // to services other than IAM
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v3/auth/tokens" {
		f.login(w, r)
		return
	}
	f.mu.Lock()
	f.requests++
	f.mu.Unlock()
	f.service(w, r)
}

func (f *fake) login(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logins++
	if f.refuse {
		body, _ := io.ReadAll(r.Body)
		text := "The username or password is wrong: " + string(body)
		reply(w, 401, fmt.Sprintf(`{"error":{"code":401,"title":"Unauthorized","message":%q}}`, text))
		return
	}
	f.token = "secret-token-" + strconv.Itoa(f.logins)
	w.Header().Set("X-Subject-Token", f.token)
	base := "http://" + r.Host
	reply(w, 201, `{"token":{
		"project":{"id":"`+fakeProject+`","name":"eu-de_test","domain":{"id":"d1","name":"dom"}},
		"user":{"id":"u1","name":"me","domain":{"id":"d1","name":"dom"}},
		"catalog":[
			{"type":"smnv2","endpoints":[{"interface":"public","region":"eu-de","url":"`+base+`/v2/`+fakeProject+`"}]},
			{"type":"rdsv3","endpoints":[{"interface":"public","region":"eu-nl","url":"http://wrong"},{"interface":"public","region":"eu-de","url":"`+base+`/rds/v3/`+fakeProject+`"}]},
			{"type":"cesv1","endpoints":[{"interface":"public","region":"*","url":"`+base+`/V1.0"}]}
		]}}`)
}

// expire invalidates the present token.
func (f *fake) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token = ""
}

// authentic reports whether r has the present token.
func (f *fake) authentic(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.token != "" && r.Header.Get("X-Auth-Token") == f.token
}

func (f *fake) counts() (logins, requests int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.logins, f.requests
}

// inMemory serves without a network, which a bubble of synctest needs.
type inMemory struct{ http.Handler }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Host = r.URL.Host
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func fakeEnv(url string) map[string]string {
	return map[string]string{
		"OS_AUTH_URL": url + "/v3", "OS_USERNAME": "me", "OS_PASSWORD": fakePassword,
		"OS_DOMAIN_NAME": "dom", "OS_PROJECT_NAME": "eu-de_test",
	}
}

func lookUp(env map[string]string) func(string) string {
	return func(k string) string { return env[k] }
}

// connectTo connects to a fake without a network.
func connectTo(t *testing.T, f *fake, o Options) *Cloud {
	t.Helper()
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Rate == 0 {
		o.Rate = 1000
	}
	o.Now = time.Now
	if o.Env == nil {
		o.Env = lookUp(fakeEnv("http://cloud"))
	}
	o.Transport = inMemory{f}
	c, err := Connect(t.Context(), o)
	must(t, err)
	return c
}

// must fails the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { reply(w, status, body) }
}
