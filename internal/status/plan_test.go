// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot/plan"
	"github.com/mcsps/rds-autopilot/internal/status"
)

// pageWithPlan returns the page of the fleet with these plans.
func pageWithPlan(t *testing.T, p func(ctx context.Context, namespace, name string) (*plan.Plan, error)) http.Handler {
	t.Helper()
	return newPage(t, func(o *status.Options) { o.Cache, o.Plan, o.Now = fleetOfAllStates(), p, time.Now })
}

func TestOnlyThePlanPageRequestsAPlan(t *testing.T) {
	t.Parallel()
	requested := 0
	h := pageWithPlan(t, func(_ context.Context, namespace, name string) (*plan.Plan, error) {
		if requested++; name == "limited" {
			return nil, errors.New("the cloud says <no>")
		}
		return &plan.Plan{Namespace: namespace, Name: name, Notes: []string{"<i>a note</i>"}}, nil
	})
	root := get(t, h, "/databases/a/armed", http.StatusOK)
	get(t, h, "/", http.StatusOK)
	get(t, h, "/health", http.StatusOK)
	get(t, h, "/databases/a/nope/plan", http.StatusNotFound)
	if requested != 0 {
		t.Errorf("other pages requested %d plans", requested)
	}
	if link := linkOf(root, "What would be decided now"); link != "./armed/plan" { // from /databases/a/armed
		t.Errorf("the link is %q", link)
	}
	for url, want := range map[string]string{
		"/databases/a/armed/plan": "<i>a note</i>", "/databases/b/limited/plan": "the cloud says <no>",
	} {
		if page := text(get(t, h, url, http.StatusOK)); !strings.Contains(page, want) {
			t.Errorf("%s lacks %q: %s", url, want, page)
		}
	}
}

func TestHangingPlanBlocksNoOtherPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running := 0
		h := pageWithPlan(t, func(ctx context.Context, _, _ string) (*plan.Plan, error) {
			running++
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
		if waited := time.Since(begin); waited != 0 || running != 1 {
			t.Errorf("the overview waited %s for a plan; %d plans run at once", waited, running)
		}
		for range cap(answers) {
			if body := <-answers; !strings.Contains(body, "The plan failed") {
				t.Errorf("the answer to a request for a plan that hangs is %s", body)
			}
		}
	})
}
