// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// cache has shop/orders with both objects, shop/new with an Rds only, and lab/own with an RdsAutopilot only.
type cache []*v1alpha1.RdsAutopilot

func newCache() cache {
	orders := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders",
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}}
	orders.Status.Decisions = []v1alpha1.DecisionRecord{
		{Metric: "storage", Message: "the newest"}, {Metric: "storage", Message: "<script>an older one</script>"},
		{Metric: "cpu", Message: "of cpu"},
	}
	return cache{orders, {ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "own"}}}
}

func (c cache) HasSynced() bool { return true }
func (c cache) Reachable() bool { return false }

func (c cache) EachAutopilot(f func(*v1alpha1.RdsAutopilot)) {
	for _, a := range c {
		f(a)
	}
}

func (c cache) EachTarget(f func(*autopilot.Target)) {
	f(c.Target("shop", "orders"))
	f(c.Target("shop", "new"))
	f(c.Target("lab", "own"))
}

func (c cache) Autopilot(namespace, name string) (*v1alpha1.RdsAutopilot, bool) {
	for _, a := range c {
		if a.Namespace == namespace && a.Name == name {
			return a, true
		}
	}
	return nil, false
}

func (c cache) Target(namespace, name string) *autopilot.Target {
	if name == "none" {
		return nil
	}
	return &autopilot.Target{Namespace: namespace, Name: name, NoRds: namespace == "lab",
		Wanted: autopilot.Wanted{VolumeGB: 50, Flavor: "large"}}
}

type readPast = func(context.Context, *v1alpha1.RdsAutopilot, time.Duration, time.Time) (autopilot.Past, error)

func options(past readPast) Options {
	return Options{Cache: newCache(), Past: past, Sweep: 5 * time.Minute, Recheck: 30 * time.Second, Now: time.Now}
}

// get returns the answer to a GET. Each answer must have the headers that protect the page.
func get(t *testing.T, h http.Handler, path string, want int) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if w.Code != want {
		t.Fatalf("GET %s: %d, want %d: %s", path, w.Code, want, w.Body)
	}
	csp := w.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self';") || strings.Contains(csp, "unsafe") ||
		w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("GET %s has the headers %v", path, w.Header())
	}
	return w
}

// getJSON returns an answer of the API.
func getJSON(t *testing.T, h http.Handler, path string, want int) (answer map[string]any) {
	t.Helper()
	w := get(t, h, path, want)
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("GET %s has the type %s", path, got)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("GET %s: %v: %s", path, err, w.Body)
	}
	return answer
}

func TestListHasEachDatabaseOnceWithTheNewestDecisions(t *testing.T) {
	h := New(options(nil))
	text := get(t, h, "/api/databases", http.StatusOK).Body.String()
	answer := getJSON(t, h, "/api/databases", http.StatusOK)
	var has []string
	for _, d := range answer["databases"].([]any) {
		d := d.(map[string]any)
		has = append(has, d["namespace"].(string)+"/"+d["name"].(string))
		if want := d["name"] != "own"; (d["rds"] != nil) != want {
			t.Errorf("%v has an Rds: %v", d["name"], !want)
		}
	}
	if !slices.Equal(has, []string{"lab/own", "shop/new", "shop/orders"}) || !strings.Contains(text, "the newest") ||
		!strings.Contains(text, "of cpu") || strings.Contains(text, "managedFields") ||
		strings.Contains(text, "an older one") || answer["reachable"] != false || answer["recheckSeconds"] != 30.0 {
		t.Errorf("the list is %s", text)
	}
}

func TestDatabaseIsTheResourceAsItIs(t *testing.T) {
	o := options(nil)
	h := New(o)
	text := get(t, h, "/api/databases/shop/orders", http.StatusOK).Body.String()
	if strings.Contains(text, "managedFields") || strings.Contains(text, "<") || !strings.Contains(text, "an older one") ||
		!strings.Contains(text, `"rds":{"volumeGB":50,"flavor":"large"}`) {
		t.Errorf("the database is %s", text)
	}
	if a, _ := o.Cache.Autopilot("shop", "orders"); len(a.ManagedFields) != 1 || len(a.Status.Decisions) != 3 {
		t.Error("the page has changed the cache")
	}
	get(t, h, "/api/databases/shop/new", http.StatusOK)
	for _, unknown := range []string{"/api/databases/shop/none", "/api/databases/shop/new/series"} {
		if answer := getJSON(t, h, unknown, http.StatusNotFound); answer["error"] == "" {
			t.Errorf("%s: %v", unknown, answer)
		}
	}
}

func TestSeriesLeavesOutValuesThatCannotBeTrue(t *testing.T) {
	h := New(options(func(_ context.Context, a *v1alpha1.RdsAutopilot, period time.Duration,
		since time.Time) (past autopilot.Past, err error) {
		if period == time.Hour {
			return past, errors.New("ces 403")
		}
		for _, v := range []float64{math.NaN(), 7, math.Inf(1), -1, 1e300} {
			past.UsedGB = append(past.UsedGB, autopilot.Point{Time: since, Value: v})
		}
		past.Percent = map[v1alpha1.Metric][]autopilot.Point{"cpu": {{Time: since, Value: float64(len(a.Name))}}}
		return past, nil
	}))
	answer := getJSON(t, h, "/api/databases/shop/orders/series", http.StatusOK)
	spans := answer["spans"].([]any)
	first, second := spans[0].(map[string]any), spans[1].(map[string]any)
	if used := first["usedGB"].([]any); len(used) != 1 || used[0].([]any)[1] != 7.0 || first["hours"] != 24.0 {
		t.Errorf("the first span is %v", first)
	}
	if second["error"] != "ces 403" || first["error"] != nil { // what fails does not take the rest with it
		t.Errorf("the second span is %v", second)
	}
}

func TestReadersShareOneReadAMinuteThatEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		s := newServer(options(func(ctx context.Context, _ *v1alpha1.RdsAutopilot, _ time.Duration,
			_ time.Time) (past autopilot.Past, err error) {
			reads++
			if reads > 2 {
				<-ctx.Done()
				return past, ctx.Err()
			}
			return past, nil
		}))
		h := s.handler()
		for range 50 {
			go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/api/databases/shop/orders/series", nil))
		}
		synctest.Wait()
		time.Sleep(59 * time.Second)
		get(t, h, "/api/databases/shop/orders/series", http.StatusOK)
		if reads != 2 { // one for each span
			t.Errorf("%d reads within a minute", reads)
		}
		time.Sleep(2 * time.Second)
		begin := time.Now()
		w := get(t, h, "/api/databases/shop/orders/series", http.StatusOK)
		if took := time.Since(begin); took > 20*time.Second || !strings.Contains(w.Body.String(), "deadline") {
			t.Errorf("a slow cloud is reported after %s: %s", took, w.Body)
		}
		// Each database that was shown would stay in memory.
		time.Sleep(2 * time.Minute)
		_, _ = s.series.Get(t.Context(), [2]string{"shop", "none"}, time.Now())
		if _, kept := s.series.Last([2]string{"shop", "orders"}); kept {
			t.Error("series that nobody has read for two minutes are kept")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // as at the end of the process
		ended := httptest.NewRecorder()
		h.ServeHTTP(ended, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/databases/shop/orders/series", nil))
		if ended.Code != http.StatusServiceUnavailable {
			t.Errorf("a request that was interrupted is answered %d", ended.Code)
		}
		time.Sleep(time.Minute) // until the last read has ended
	})
}

func TestPageOnlyReads(t *testing.T) {
	h := New(options(nil))
	for _, path := range []string{"/", "/page.css", "/page.js", "/icon.svg", "/api/databases", "/api/databases/shop/orders"} {
		get(t, h, path, http.StatusOK)
		post := httptest.NewRecorder()
		h.ServeHTTP(post, httptest.NewRequest(http.MethodPost, path, strings.NewReader("x=1")))
		if post.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, post.Code)
		}
	}
	get(t, h, "/none", http.StatusNotFound)
}
