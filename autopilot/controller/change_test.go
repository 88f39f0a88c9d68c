// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// odd is an API server whose last look before a patch fails, whose watch is behind, or whose answer to a write is late.
type odd struct {
	Kubernetes
	reads int
	old   *autopilot.Target
	late  chan struct{}
}

func (o *odd) LiveTarget(ctx context.Context, ns, name string) (*autopilot.Target, error) {
	if o.reads++; o.old == nil && o.reads == 2 {
		return nil, fmt.Errorf("get Rds: timeout: %w", autopilot.ErrKubernetes)
	}
	return o.Kubernetes.LiveTarget(ctx, ns, name)
}

func (o *odd) Target(ns, name string) *autopilot.Target {
	if o.old != nil {
		return o.old
	}
	return o.Kubernetes.Target(ns, name)
}

func (o *odd) WriteStatus(ctx context.Context, read *v1alpha1.RdsAutopilot, next v1alpha1.Status) (*v1alpha1.RdsAutopilot, error) {
	stored, err := o.Kubernetes.WriteStatus(ctx, read, next)
	if o.late != nil {
		<-o.late
	}
	return stored, err
}

type slowReads struct {
	Cloud
	w *world
}

func (s slowReads) Points(ctx context.Context, i autopilot.Instance, r autopilot.EvidenceRequest) autopilot.Readings {
	s.w.withLock(func() { s.w.now = s.w.now.Add(61 * time.Second) })
	return s.Cloud.Points(ctx, i, r)
}

func TestLargerSizeThatWasNotSentEndsNothing(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.startAlarm(v1alpha1.MetricStorage)
		for range 17 {
			w.mustDecide(c)
			w.now = w.now.Add(time.Minute)
		}
		w.withLock(func() { w.usedGB = 96 })
		live := c.options.Kube
		c.options.Kube = &odd{Kubernetes: live}
		again := w.mustDecide(c)
		if p := w.pending(); p == nil || p.To != "110" || again == 0 {
			t.Errorf("pending %+v, next check in %s", p, again)
		}
		c.options.Kube = live
		if w.mustDecide(c); w.pending() == nil || w.pending().To != "120" {
			t.Errorf("pending %+v", w.pending())
		}
	})
}

// Reads before a decision may take longer than a request may wait.
func TestRequestCountsFromTheEndOfTheReads(t *testing.T) {
	withAlarm(t, func(t *testing.T, w *world, c *Controller) {
		c.options.Cloud = slowReads{c.options.Cloud, w}
		if w.mustDecide(c); len(w.patches) != 1 {
			t.Errorf("%d patches", len(w.patches))
		}
	})
}

func TestOldCacheOfTheRdsReplacesNoFlavor(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.startAlarm(v1alpha1.MetricCPU)
		live := c.options.Kube
		c.options.Kube = &odd{Kubernetes: live, old: live.Target(database.Namespace, database.Name)}
		w.mustDecide(c)
		w.now = w.now.Add(time.Minute)
		w.apply()
		w.withLock(func() { w.inst.VCPUs, w.inst.MemoryGB, w.cpu = 4, 16, 20 })
		for range 2 {
			w.mustDecide(c)
			w.now = w.now.Add(30 * time.Second)
		}
		if ch := w.rap().Status.Changes[0]; ch.State != v1alpha1.StateCompleted {
			t.Errorf("nobody has changed the Rds, but the flavor is %s", ch.State)
		}
	})
}

func TestLateAnswerToArmingFreesNoPlace(t *testing.T) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.startAlarm(v1alpha1.MetricCPU)
		arming, _ := c.newRound(database)
		late, done := make(chan struct{}), make(chan error)
		arming.kube = &odd{Kubernetes: c.options.Kube, late: late}
		go func() {
			done <- arming.update(t.Context(), func(s *v1alpha1.Status) { s.Alarms.Refused = "a text" })
		}()
		synctest.Wait()
		w.mustDecide(c)
		close(late)
		w.must(<-done)
		if c.limiter.reserve(Key{"default", "other"}, 1, w.now) {
			t.Error("two flavors may change, although --max-flavor-changes is 1")
		}
	})
}
