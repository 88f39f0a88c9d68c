// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// newLeader returns a controller with queues, without Kubernetes and cloud.
func newLeader(t *testing.T) *Controller {
	t.Helper()
	c := New(Options{Kube: cachedAutopilots{}, Log: zap.NewNop(), Reg: prometheus.NewRegistry(), Now: time.Now})
	addQueues(t, c)
	return c
}

// addQueues gives a controller empty queues, as a leader has them.
func addQueues(t *testing.T, c *Controller) {
	t.Helper()
	c.queues = newQueues(c.decideMarks)
	t.Cleanup(c.queues.shutDown)
}

func TestDecisionsWithNewsGoFirst(t *testing.T) {
	c := newLeader(t)
	key := func(name string) Key { return Key{"ns", name} }
	for _, name := range []string{"a", "b", "c"} {
		c.enqueueForSweep(key(name), time.Now())
	}
	c.queues.decide.Add(key("recheck"))
	c.enqueue(key("news"))
	c.enqueue(key("c"))                     // a sweep has requested it already
	c.enqueueForSweep(key("c"), time.Now()) // another sweep must not lower its priority
	var order []string
	for c.queues.decide.Len() > 0 {
		k, _ := c.queues.decide.Get()
		order = append(order, k.Name)
		c.queues.decide.Done(k)
	}
	if want := []string{"news", "c", "a", "b", "recheck"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

// An Rds may have events all the time. They must not prevent the checks of the used space and of the alarms by the sweep.
func TestEventKeepsTheMarkOfTheSweep(t *testing.T) {
	c, begin := newLeader(t), time.Unix(100, 0)
	c.enqueueForSweep(database, begin)
	c.enqueue(database)
	if got, want := c.decideMarks.take(database), (mark{isSweep: true, begun: begin, isNews: true}); got != want {
		t.Errorf("decide: %+v, want %+v", got, want)
	}
	if got, want := c.armMarks.take(database), (mark{isSweep: true, begun: begin}); got != want {
		t.Errorf("arm: %+v, want %+v", got, want)
	}
}

// The retry of a sweep's round still reads the used space. Only a conflict is news.
func TestRetryKeepsTheMarkOfItsRound(t *testing.T) {
	begun, notBefore := time.Unix(100, 0), time.Unix(200, 0)
	for name, tc := range map[string]struct {
		taken mark
		err   error
		want  mark
	}{
		"sweep, no answer":          {mark{isSweep: true, begun: begun}, errNoAnswer, mark{isSweep: true, begun: notBefore}},
		"news, no answer":           {mark{isNews: true}, errNoAnswer, mark{}},
		"news, conflict":            {mark{isNews: true}, autopilot.ErrConflict, mark{isNews: true, begun: notBefore}},
		"sweep and news, no answer": {mark{true, begun, true}, errNoAnswer, mark{isSweep: true, begun: notBefore}},
	} {
		m := newMarks()
		m.restore(database, tc.taken, notBefore, tc.err)
		if got := m.take(database); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// The leader writes the status in every round. A round for each of these writes would be a loop.
func TestOwnStatusWriteStartsNoRound(t *testing.T) {
	deleted := metav1.Now()
	for name, tc := range map[string]struct {
		change func(*v1alpha1.RdsAutopilot)
		starts bool
	}{
		"own status": {func(a *v1alpha1.RdsAutopilot) {
			a.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindVolume, To: "110"}}
			a.Status.Decisions = []v1alpha1.DecisionRecord{{Reason: "AlarmInForce"}}
		}, false},
		"signal": {func(a *v1alpha1.RdsAutopilot) {
			a.Status.Intake.Signals = []v1alpha1.Signal{{MessageID: "1"}}
		}, true},
		"policy":         {func(a *v1alpha1.RdsAutopilot) { a.Generation++; a.Spec.Mode = v1alpha1.ModeOff }, true},
		"deletion":       {func(a *v1alpha1.RdsAutopilot) { a.DeletionTimestamp = &deleted }, true},
		"another object": {func(a *v1alpha1.RdsAutopilot) { a.UID = "2" }, true},
	} {
		c := newLeader(t)
		old := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "db", UID: "1", ResourceVersion: "1",
		}}
		now := old.DeepCopy()
		now.ResourceVersion = "2"
		tc.change(now)
		c.AutopilotChanged(old, now)
		if starts := c.queues.decide.Len() == 1; starts != tc.starts {
			t.Errorf("%s: starts a round %t, want %t", name, starts, tc.starts)
		}
	}
}

func TestOwnPatchStartsNoRound(t *testing.T) {
	patch := &v1alpha1.Change{Kind: v1alpha1.KindVolume, From: "100", To: "110"}
	at := func(version, instance string, gb int) *autopilot.Target {
		return &autopilot.Target{
			Namespace: database.Namespace, Name: database.Name, ResourceVersion: version, InstanceID: instance,
			Wanted: autopilot.Wanted{VolumeGB: gb},
		}
	}
	for name, tc := range map[string]struct {
		old, now *autopilot.Target
		patch    *v1alpha1.Change
		isOwn    bool
	}{
		"our patch":                  {at("1", "a", 100), at("2", "a", 110), patch, true},
		"patch of others":            {at("1", "a", 100), at("2", "a", 110), nil, false},
		"our value was reverted":     {at("2", "a", 110), at("3", "a", 100), patch, false},
		"another instance as well":   {at("1", "a", 100), at("2", "b", 110), patch, false},
		"seen for the first time":    {nil, at("2", "a", 110), patch, false},
		"deleted":                    {at("1", "a", 110), nil, patch, false},
		"another value than patched": {at("1", "a", 100), at("2", "a", 120), patch, false},
	} {
		c := &Controller{memories: map[Key]*memory{database: {patched: tc.patch}}}
		if got := c.isOwnPatch(database, tc.old, tc.now); got != tc.isOwn {
			t.Errorf("%s: own patch %t, want %t", name, got, tc.isOwn)
		}
	}
}

func TestFlavorLimiterReservesPlacesUntilReleased(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	key := func(name string) Key { return Key{"ns", name} }
	l := newFlavorLimiter(cachedAutopilots{})
	first, second, third := l.reserve(key("a"), 2, now), l.reserve(key("b"), 2, now), l.reserve(key("c"), 2, now)
	if !first || !second || third || !l.reserve(key("a"), 2, now) {
		t.Errorf("reserved %t, %t, %t; want the two places for the first two", first, second, third)
	}
	l.release(key("b"))
	if !l.reserve(key("c"), 2, now) {
		t.Error("a released place is not free")
	}
}

// The table of the book says which changes hold a place. The watch may lag by minutes while a flavor changes.
func TestFlavorLimiterCountsWhatIsStoredAlthoughTheCacheIsOld(t *testing.T) {
	now, key := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Key{"ns", "a"}
	cached := &v1alpha1.RdsAutopilot{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	stored := cached.DeepCopy()
	at := metav1.NewMicroTime(now)
	stored.Status.Changes = []v1alpha1.Change{{Kind: v1alpha1.KindFlavor, By: v1alpha1.ByAutopilot, State: v1alpha1.StateRequested, RequestTime: &at}}
	l := newFlavorLimiter(cachedAutopilots{autopilots: []*v1alpha1.RdsAutopilot{cached}})
	check := func(when string, has bool) {
		t.Helper()
		other := Key{"ns", "b"}
		if free := l.reserve(other, 1, now); free == has {
			t.Errorf("%s: has its place %t, want %t", when, !free, has)
		}
		l.release(other)
	}
	check("without a change", false)
	l.store(stored)
	check("stored", true)
	if !l.reserve(key, 1, now) {
		t.Error("its own change counts against it")
	}
	l.release(key)
	check("after its round", true)
	l.store(cached)
	check("after the change", false)
	*cached = *stored
	l.drop(key)
	check("in the cache alone", true)
}

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
