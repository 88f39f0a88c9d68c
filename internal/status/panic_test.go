// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/status"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// panickingCache panics while broken is set.
type panickingCache struct {
	*cache
	broken bool
}

func (c *panickingCache) EachAutopilot(f func(*v1alpha1.RdsAutopilot)) {
	if c.broken {
		panic("a broken object")
	}
	c.cache.EachAutopilot(f)
}

// In the goroutine of a query, a panic would end the process. In a handler it would keep the slot for rendering.
func TestPanicIsAnErrorOnThePage(t *testing.T) {
	t.Parallel()
	c := &panickingCache{cache: fleetOfAllStates()}
	h := newPage(t, func(o *status.Options) {
		o.Cache = c
		o.Past = func(context.Context, string, string, time.Duration, time.Time) (past autopilot.Past, err error) {
			past.UsedGB[1].Value = 1 // out of range
			return past, err
		}
	})
	for range 2 {
		for url, want := range map[string]string{
			"/databases/a/armed": "Cannot read from Cloud Eye: internal error; the reason is in the log",
		} {
			if page := text(get(t, h, url, http.StatusOK)); !strings.Contains(page, want) {
				t.Errorf("%s lacks %q: %s", url, want, page)
			}
		}
		c.broken = true
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "broken") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		c.broken = false
		get(t, h, "/", http.StatusOK)
	}
}

func TestValuesThatCannotBeTrueAreNotDrawn(t *testing.T) {
	t.Parallel()
	for _, wrong := range []float64{1.7e308, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(), -1} {
		c := &cache{}
		c.add("shop", "orders", withChanges)
		h := pageWithPast(t, c, now, func(_ context.Context, _ string, period time.Duration, since time.Time) (autopilot.Past, error) {
			past := measurementsUntil(now(), period, since)
			past.UsedGB[7].Value, past.SizeGB[7].Value, past.Percent[v1alpha1.MetricCPU][7].Value = wrong, wrong, wrong
			return past, nil
		})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/databases/shop/orders", nil)) // must end
		page := w.Body.String()
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf,") || strings.Contains(page, strings.Repeat("0", 20)) || strings.Count(page, `class="plot"`) != 6 {
			t.Errorf("the page with %v is %s", wrong, page)
		}
	}
}
