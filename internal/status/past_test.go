// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/status"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

type measure func(ctx context.Context, name string, period time.Duration, since time.Time) (autopilot.Past, error)

func pageWithPast(t *testing.T, c *cache, clock func() time.Time, past measure) http.Handler {
	t.Helper()
	return newPage(t, func(o *status.Options) {
		o.Cache, o.Now = c, clock
		o.Past = func(ctx context.Context, _, name string, period time.Duration, since time.Time) (autopilot.Past, error) {
			return past(ctx, name, period, since)
		}
	})
}

// measurementsUntil returns measurements of a volume that fills by 5 GB a day and grew from 100 to 120 GB two hours ago, of a CPU at 40 %,
// and of memory with a gap.
func measurementsUntil(end time.Time, period time.Duration, since time.Time) autopilot.Past {
	past := autopilot.Past{Percent: map[v1alpha1.Metric][]autopilot.Point{}}
	for at := since.Truncate(period).Add(period); at.Before(end); at = at.Add(period) {
		size, used := 100.0, 90-5*end.Sub(at).Hours()/24
		if end.Sub(at) < 2*time.Hour {
			size = 120
		}
		point := func(v float64) autopilot.Point { return autopilot.Point{Time: at, Value: v} }
		past.UsedGB, past.SizeGB = append(past.UsedGB, point(max(used, 1))), append(past.SizeGB, point(size))
		past.Percent[v1alpha1.MetricCPU] = append(past.Percent[v1alpha1.MetricCPU], point(40))
		if h := end.Sub(at).Hours(); h < 5 || h > 10 {
			past.Percent[v1alpha1.MetricMemory] = append(past.Percent[v1alpha1.MetricMemory], point(60))
		}
	}
	return past
}

func withChanges(a *v1alpha1.RdsAutopilot) {
	a.Status.Instance.VolumeGB = 120
	a.Status.Changes = []v1alpha1.Change{{
		Kind: v1alpha1.KindVolume, By: v1alpha1.ByAutopilot, From: "100", To: "120", Outcome: v1alpha1.OutcomeCompleted,
		DecisionTime: new(metav1.NewMicroTime(now().Add(-121 * time.Minute))), CompletionTime: metav1.NewMicroTime(now().Add(-2 * time.Hour)),
	}, {
		Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, From: "a", To: "b", Outcome: v1alpha1.OutcomeCompleted,
		CompletionTime: metav1.NewMicroTime(now().Add(-3 * 24 * time.Hour)),
	}}
}

func elementsOfClass(root *html.Node, tag, class string) (found []*html.Node) {
	for _, n := range elements(root, tag) {
		if attribute(n, "class") == class {
			found = append(found, n)
		}
	}
	return found
}

func TestDatabasePageDrawsMeasurements(t *testing.T) {
	t.Parallel()
	c := &cache{}
	c.add("shop", "orders", withChanges)
	var read []string
	h := pageWithPast(t, c, now, func(_ context.Context, _ string, period time.Duration, since time.Time) (autopilot.Past, error) {
		read = append(read, fmt.Sprint(period, now().Sub(since)))
		return measurementsUntil(now(), period, since), nil
	})
	root := get(t, h, "/databases/shop/orders", http.StatusOK)
	if got, want := strings.Join(read, ", "), "5m0s 24h0m0s, 1h0m0s 336h0m0s"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	plots := elementsOfClass(root, "svg", "plot")
	if len(plots) != 6 {
		t.Fatalf("%d plots, want storage, CPU and memory twice", len(plots))
	}
	for i, want := range []struct {
		label string
		used  int // pieces of the curve
		marks string
	}{
		{"Used space in GB: from 85 to 90 GB, between 85 and 90, size 120 GB, alarm at 104 GB", 1, "A"},
		{"CPU in percent: from 40 to 40 percent, between 40 and 40, alarm at 90 %", 1, "A"},
		{"Memory in percent: from 60 to 60 percent", 2, "A"},
		{"Used space in GB: from 20 to 90 GB", 1, "AB"},
		{"CPU in percent", 1, "AB"}, {"Memory in percent", 2, "AB"},
	} {
		letters := ""
		for _, n := range elementsOfClass(plots[i], "text", "letter") {
			letters += text(n)
		}
		if label := attribute(plots[i], "aria-label"); !strings.HasPrefix(label, want.label) || letters != want.marks {
			t.Errorf("plot %d is %q with the marks %s, want %q with %s", i, label, letters, want.label, want.marks)
		}
		if n := len(elementsOfClass(plots[i], "polyline", "used")); n != want.used {
			t.Errorf("plot %d has its curve in %d pieces, want %d", i, n, want.used)
		}
		if attribute(plots[i], "role") != "img" || len(elementsOfClass(plots[i], "polyline", "threshold")) != 1 {
			t.Errorf("plot %d has no role, or no threshold", i)
		}
	}
	page := text(root)
	for _, want := range []string{
		"CPU 40.0 %, alarm at 90 %, measured 5m ago", "A Storage 100 → 120 GB 120m ago", "A Flavor a → b 3d ago", "B Storage 100 → 120 GB 120m ago",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
}

func TestMeasurementsAreReadForOneDatabaseAndCachedForFiveMinutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		h := pageWithPast(t, fleetOfAllStates(), time.Now, func(_ context.Context, name string, period time.Duration,
			since time.Time) (autopilot.Past, error) {
			if reads++; name == "limited" {
				return autopilot.Past{}, errors.New("ces QueryMetricData: <503>")
			}
			return measurementsUntil(time.Now(), period, since), nil
		})
		check := func(url, want string, wantReads int) {
			t.Helper()
			page := get(t, h, url, http.StatusOK)
			if !strings.Contains(text(page), want) || reads != wantReads {
				t.Errorf("%s: %d reads, want %d and %q in %s", url, reads, wantReads, want, text(page))
			}
		}
		check("/", "a/armed", 0)
		check("/databases/a/armed", "used 90 GB", 2) // one for each span
		check("/databases/a/armed", "used 90 GB", 2)
		check("/databases/b/limited", "Cannot read from Cloud Eye: ces QueryMetricData: <503>", 3) // the second span is not read
		time.Sleep(5*time.Minute + time.Second)
		check("/databases/a/armed", "used 90 GB", 5)
	})
}

// The pages of people who look at one database must not block those of others, nor add calls to a slow cloud.
func TestSlowCloudBlocksNoOtherPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		hang := func(ctx context.Context) error {
			calls.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		h := newPage(t, func(o *status.Options) {
			o.Cache, o.Now = fleetOfAllStates(), time.Now
			o.Past = func(ctx context.Context, _, _ string, _ time.Duration, _ time.Time) (autopilot.Past, error) {
				return autopilot.Past{}, hang(ctx)
			}
		})
		pages := make(chan string, 10)
		begin := time.Now()
		for i := range cap(pages) {
			go func() {
				w, url := httptest.NewRecorder(), "/databases/a/"+[]string{"armed", "changing"}[i%2]
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
				pages <- w.Body.String()
			}()
		}
		synctest.Wait()
		get(t, h, "/", http.StatusOK)
		if waited := time.Since(begin); waited != 0 || calls.Load() != 1 {
			t.Errorf("the overview waited %s for %d calls", waited, calls.Load())
		}
		for range cap(pages) {
			if got := <-pages; !strings.Contains(got, "no answer yet") {
				t.Errorf("the page lacks the error: %s", got)
			}
		}
		if waited := time.Since(begin); waited != 2*time.Second {
			t.Errorf("the pages came after %s, want 2s", waited)
		}
		time.Sleep(time.Minute) // until the calls have ended
	})
}
