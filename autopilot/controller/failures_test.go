// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// Without this, a panic would end the process, and the next leader would repeat it.
func TestPanicInARoundIsReportedAndRetriedWithBackOff(t *testing.T) {
	withAlarm(t, func(t *testing.T, w *world, c *Controller) {
		var calls atomic.Int32 // of rounds of both queues
		w.onInstance = func() {
			calls.Add(1)
			panic("text of a sender")
		}
		w.run(c)
		w.advance(10 * time.Minute)
		rounds := int(calls.Load())
		n := testutil.ToFloat64(c.meters.failed.WithLabelValues(causePanic))
		if rounds < 5 || rounds > 40 || int(n) != rounds {
			t.Errorf("%d rounds in 10 minutes, %g counted; want retries with back-off", rounds, n)
		}
		w.withLock(func() {
			i := slices.IndexFunc(w.events, func(e autopilot.Event) bool { return e.Reason == "InternalError" && e.Warning })
			if i < 0 || strings.Contains(w.events[i].Note, "sender") {
				t.Errorf("events %+v", w.events)
			}
			w.onInstance = nil
		})
		w.advance(3 * time.Minute)
		w.withLock(func() {
			if !slices.Equal(w.patches, []string{"110"}) {
				t.Errorf("patches %v after the panics, want one", w.patches)
			}
		})
	})
}

func TestStatusThatCannotBeStoredIsReportedAndStopsTheChange(t *testing.T) {
	withAlarm(t, func(t *testing.T, w *world, c *Controller) {
		w.statusRefusal = "denied by policy"
		w.run(c)
		w.advance(22 * time.Minute)
		if n := testutil.ToFloat64(c.meters.failed.WithLabelValues(causeKubernetes)); n < 10 {
			t.Errorf("%g failed rounds counted", n)
		}
		if warnings, _ := w.countEvents("StatusNotStored"); warnings == 0 || len(w.patches) > 0 {
			t.Errorf("patches %v, %d warnings", w.patches, warnings)
		}
		w.withLock(func() { w.statusRefusal = "" })
		w.advance(5 * time.Minute)
		if len(w.patches) != 1 {
			t.Errorf("patches %v, want one", w.patches)
		}
	})
}

// Arming may write the status while a decision waits for the cloud.
func TestConflictIsRetriedAndIsNoFailure(t *testing.T) {
	whenArmed(t, func(t *testing.T, w *world, c *Controller) {
		w.run(c)
		w.advance(21 * time.Minute)
		w.raise(v1alpha1.MetricStorage)
		w.withLock(func() {
			w.onInstance = func() {
				w.withLock(func() { w.onInstance = nil })
				w.writeRap(func(rap *v1alpha1.RdsAutopilot) { rap.Status.ObservedGeneration++ })
			}
		})
		w.changeRds(func(rds *otcv1.Rds) { rds.Status.Status = "ACTIVE" })
		w.advance(time.Minute)
		if n := testutil.ToFloat64(c.meters.failed.WithLabelValues(causeKubernetes)); n > 0 || !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("%g failed rounds counted, patches %v; want one patch", n, w.patches)
		}
		if held := w.rap().Status.Held; len(held) != 1 || held[0].Reason == string(autopilot.ReasonStatusNotStored) {
			t.Errorf("held %+v", held)
		}
	})
}
