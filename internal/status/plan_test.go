// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/plan"
	"github.com/mcsps/rds-autopilot/internal/status"
)

type ask func(ctx context.Context, namespace, name string) (*plan.Plan, error)

func planning(t *testing.T, c *cache, plan ask) http.Handler {
	t.Helper()
	return newPage(t, func(o *status.Options) { o.Cache, o.Plan, o.Now = c, plan, time.Now })
}

func TestOnlyThePlanPageAsksForAPlanAndCachesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		fails := errors.New("the cloud says <no>")
		c := fleet()
		h := planning(t, c, func(_ context.Context, namespace, name string) (*plan.Plan, error) {
			if asked++; name == "limited" {
				return nil, fails
			}
			return &plan.Plan{Namespace: namespace, Name: name, Notes: []string{"<i>a note</i>"}}, nil
		})
		root := get(t, h, "/databases/a/armed", http.StatusOK)
		get(t, h, "/", http.StatusOK)
		get(t, h, "/health", http.StatusOK)
		get(t, h, "/databases/a/nope/plan", http.StatusNotFound)
		if asked != 0 {
			t.Fatalf("asked %d times", asked)
		}
		link := ""
		for _, a := range elements(root, "a") {
			if text(a) == "What would be decided now" {
				link = attribute(a, "href")
			}
		}
		if link != "./armed/plan" { // from /databases/a/armed
			t.Errorf("the link is %q", link)
		}
		for range 50 {
			if got := text(get(t, h, "/databases/a/armed/plan", http.StatusOK)); !strings.Contains(got, "<i>a note</i>") {
				t.Fatalf("the page is %s", got)
			}
		}
		if got := text(get(t, h, "/databases/b/limited/plan", http.StatusOK)); !strings.Contains(got, "the cloud says <no>") {
			t.Errorf("the page is %s", got)
		}
		if asked != 2 {
			t.Errorf("asked %d times for two databases", asked)
		}
		time.Sleep(31 * time.Second)
		get(t, h, "/databases/a/armed/plan", http.StatusOK)
		if asked != 3 {
			t.Errorf("asked %d times: what is old is kept", asked)
		}
	})
}

func TestAHangingPlanBlocksNoOtherPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asking, most atomic.Int32
		h := planning(t, fleet(), func(ctx context.Context, _, _ string) (*plan.Plan, error) {
			most.Store(max(most.Load(), asking.Add(1)))
			defer asking.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		answers := make(chan string, 10)
		for range cap(answers) {
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/databases/a/armed/plan", nil))
				answers <- w.Body.String()
			}()
		}
		synctest.Wait()
		begin := time.Now()
		get(t, h, "/", http.StatusOK)
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("the overview waited %s for a plan", waited)
		}
		for range cap(answers) {
			if body := <-answers; !strings.Contains(body, "The plan failed") {
				t.Errorf("a plan that hangs is answered %s", body)
			}
		}
		if most.Load() != 1 {
			t.Errorf("%d plans at once", most.Load())
		}
	})
}
