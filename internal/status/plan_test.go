// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
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
