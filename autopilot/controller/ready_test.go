// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// unreadable is a cloud that has the instance, and does not say what its alarms do.
type unreadable struct {
	cloud
	now *bool
}

func (u unreadable) AlarmStates(ctx context.Context, notBefore time.Time) (map[string]AlarmState, error) {
	if *u.now {
		return nil, errors.New("no answer")
	}
	return u.cloud.AlarmStates(ctx, notBefore)
}

func (w *world) checkReady(t *testing.T, what string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	rap := w.rap()
	got := meta.FindStatusCondition(rap.Status.Conditions, v1alpha1.ConditionReady)
	if got == nil || got.Status != status || got.Reason != reason || got.ObservedGeneration != rap.Generation {
		t.Errorf("%s: Ready is %+v, want %s, %s", what, got, status, reason)
	}
}

func TestReadyOverALife(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		failing := false
		c.options.Cloud = unreadable{cloud{w}, &failing}
		w.changeRds(func(rds *otcv1.Rds) { rds.Status.ID = "" })
		w.settle(t, c)
		w.checkReady(t, "before there is an instance", metav1.ConditionFalse, string(autopilot.ReasonInstanceUnknown))
		w.changeRds(func(rds *otcv1.Rds) { rds.Status.ID = w.inst.ID })
		w.settle(t, c)
		w.checkReady(t, "armed", metav1.ConditionTrue, autopilot.ArmedReason)

		failing = true
		if _, err := w.look(t.Context(), c); err == nil {
			t.Error("no error")
		}
		w.checkReady(t, "the alarms cannot be read", metav1.ConditionFalse, autopilot.ReadFailed)
		if !w.armed() {
			t.Error("an alarm would still reach us")
		}
		before := len(w.names)
		if _, err := w.look(t.Context(), c); err == nil {
			t.Error("no error")
		}
		if written := w.names[before:]; len(written) > 0 {
			t.Errorf("the same again is written again: %v", written)
		}
		failing = false
		if _, err := w.look(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		w.checkReady(t, "they can be read again", metav1.ConditionTrue, autopilot.ArmedReason)

		w.gone = true
		if _, err := w.look(t.Context(), c); err == nil {
			t.Error("no error")
		}
		w.checkReady(t, "the cloud is away", metav1.ConditionFalse, autopilot.CloudUnreachable)
		w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = new(false) })
		if _, err := w.look(t.Context(), c); err == nil {
			t.Error("no error")
		}
		w.checkReady(t, "it cannot be disarmed", metav1.ConditionFalse, autopilot.CloudUnreachable)
		w.gone = false
		w.settle(t, c)
		w.checkReady(t, "turned off", metav1.ConditionTrue, string(autopilot.ReasonNotEnabled))

		w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = new(true) })
		if _, err := w.decide(t.Context(), c); err != nil { // arm comes later
			t.Fatal(err)
		}
		w.checkReady(t, "turned on and not armed yet", metav1.ConditionFalse, autopilot.RuleMissing)
		w.settle(t, c)
		w.checkReady(t, "armed again", metav1.ConditionTrue, autopilot.ArmedReason)
	})
}

// Ready comes with what a round writes anyway.
func TestReadyCostsNoWrite(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(t, c)
		w.names = nil
		if _, err := w.look(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if len(w.names) > 0 {
			t.Errorf("a round without news writes %v", w.names)
		}
		w.names, w.usedGB = nil, 93
		w.alarm(v1alpha1.MetricStorage, true)
		if _, err := w.look(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if want := []string{"status", "patch rdss", "status"}; !slices.Equal(w.names, want) {
			t.Errorf("a round with a change writes %v, want %v", w.names, want)
		}
	})
}

// stale is a cloud that can no longer be read, but for what was read of it before.
type stale struct {
	cloud
	read *time.Time // the zero time while it can be read
}

func (s stale) Instance(ctx context.Context, id string, notBefore time.Time) (*autopilot.Instance, error) {
	if !s.read.IsZero() && notBefore.After(*s.read) {
		return nil, errors.New("no answer")
	}
	return s.cloud.Instance(ctx, id, notBefore)
}

// Or Armed would go to and fro while the cloud is away, and each of its writes would begin a decision anew.
func TestWhatWasReadBeforeTheCloudWasAwayDoesNotArm(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		var read time.Time
		c.options.Cloud = stale{cloud{w}, &read}
		w.settle(t, c)
		if !w.armed() {
			t.Fatal("not armed")
		}
		read = w.now
		w.now = w.now.Add(30 * time.Second)
		if _, err := w.decide(t.Context(), c); err == nil || w.armed() {
			t.Fatalf("with a cloud that does not answer: armed %v, %v", w.armed(), err)
		}
		w.now = w.now.Add(10 * time.Second)
		synctest.Wait() // the cache has the condition
		if _, err := c.arm(t.Context(), database); err == nil || w.armed() {
			t.Errorf("by what was read before: armed %v, %v", w.armed(), err)
		}
		read = time.Time{}
		w.settle(t, c)
		if !w.armed() {
			t.Error("not armed once the cloud answers again")
		}
	})
}
