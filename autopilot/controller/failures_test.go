// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/internal/shorten"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// lead runs the leader's loop until the returned function is called.
func (w *world) lead(c *Controller) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	return func() { cancel(); <-done }
}

// refuseStatus lets a policy refuse what the service writes to the status of RdsAutopilots.
func (w *world) refuseStatus(reason string) {
	w.kube.SetAdmit(func(write simkube.Write) error {
		if reason != "" && write.New.GetKind() == v1alpha1.Kind && write.Subresource == "status" && write.Manager == "rds-autopilot" {
			return errors.New(reason)
		}
		return w.admit(write)
	})
}

func TestALongRefusalIsRecordedShort(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := full(t)
		w.refusal = "denied by policy:\n" + strings.Repeat("not on Fridays ", 5000)
		w.settle(t, c)
		d := w.rap().Status.Decisions[0]
		if d.Reason != "Refused" || !strings.Contains(d.Message, "denied by policy: not on Fridays") || len(d.Message) > 2*shorten.Limit {
			t.Errorf("%d bytes: %.300s", len(d.Message), d.Message)
		}
		if p := w.rap().Status.Pending; p == nil || p.Refusal == nil || len(p.Refusal.Message) > shorten.Limit {
			t.Errorf("pending %+v", p)
		}
	})
}

// A panic of one database's round ended the process, and the next leader's as well.
func TestAPanicInARoundAffectsOneDatabase(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := full(t)
		var called atomic.Int32 // The workers of arming and of decisions both read the cloud.
		w.duringCloud = func() {
			called.Add(1)
			panic("of a stranger's making")
		}
		stop := w.lead(c)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		rounds := int(called.Load())
		if rounds < 5 || rounds > 40 {
			t.Errorf("%d rounds in 10 minutes, want retries with back-off", rounds)
		}
		if n := testutil.ToFloat64(c.meters.failed.WithLabelValues(causePanic)); int(n) != rounds {
			t.Errorf("%g panics counted, want %d", n, rounds)
		}
		w.mu.Lock()
		if i := slices.IndexFunc(w.events, func(e autopilot.Event) bool { return e.Reason == "InternalError" && e.Warning }); i < 0 || strings.Contains(w.events[i].Note, "stranger") {
			t.Errorf("events %+v", w.events)
		}
		w.duringCloud = nil
		w.mu.Unlock()
		time.Sleep(3 * time.Minute)
		stop()
		if !slices.Equal(w.patches, []string{"110"}) {
			t.Errorf("patches %v after the panics, want 110", w.patches)
		}
	})
}

func TestAStatusThatCannotBeWrittenIsReported(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w, c := full(t)
		w.refuseStatus("denied by policy")
		stop := w.lead(c)
		defer stop()
		begin := w.now
		for range 22 {
			time.Sleep(time.Minute)
			synctest.Wait()
			w.mu.Lock()
			w.now = w.now.Add(time.Minute)
			w.state["al-storage"] = AlarmState{v1alpha1.StateAlarm, begin}
			w.mu.Unlock()
		}
		if n := testutil.ToFloat64(c.meters.failed.WithLabelValues(causeKubernetes)); n < 10 {
			t.Errorf("%g failed rounds counted", n)
		}
		w.mu.Lock()
		warnings, _ := w.countEvents("StatusNotStored")
		w.mu.Unlock()
		if warnings == 0 || len(w.patches) > 0 {
			t.Errorf("patches %v, events %+v", w.patches, w.events)
		}
		held := counts(t, newStatusCollector(c.options.Kube, c.options.Now, c.unstoredHeld), "rds_autopilot_held_changes")
		if held["Volume StatusNotStored"] != 1 {
			t.Errorf("held: %v", held)
		}
		w.refuseStatus("")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if _, ok := c.unstoredHeld(database); ok || len(w.patches) != 1 {
			t.Errorf("still kept: %t, patches %v", ok, w.patches)
		}
	})
}

func TestFailedRoundsAreCountedByCause(t *testing.T) {
	for want, err := range map[string]error{
		causeCloud:      errors.New("no answer"),
		causeKubernetes: errors.Join(errors.New("no answer"), errStatus, autopilot.ErrKubernetes),
		causePanic:      errors.Join(autopilot.ErrKubernetes, &autopilot.PanicError{}),
	} {
		if got := causeOf(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
