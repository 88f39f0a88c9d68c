// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

// world is one database in Kubernetes and in the cloud. Its processes use the real clients and caches on a Kubernetes
// in memory. Their clock is w.now, which only the tests advance.
type world struct {
	t     *testing.T
	kube  *simkube.Server
	admin dynamic.Interface
	mu    sync.Mutex // decisions and arming run in parallel

	now     time.Time
	steps   []string // writes to Kubernetes and to the cloud, in their order
	patches []string // values that the processes wrote into the Rds
	events  []autopilot.Event

	patchRefusal  string // why the API server refuses patches of the Rds
	topicRefusal  string // why the API server refuses to store the topic
	topicHidden   error  // the answer of the API server to a read of the topic
	statusRefusal string // why the API server refuses the processes' writes to the status
	reverts       bool   // the API server restores the old value of a patch
	onStatus      func() // runs at each write of the status
	onRemove      func() // runs after the rules are removed
	stopWatches   func() // keeps the cache of the last process as it is

	cloudState
}

// database is the key of the only database.
var database = Key{metav1.NamespaceDefault, "db"}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		cloudState: cloudState{usedGB: 50, cpu: 10, states: map[string]autopilot.AlarmState{}, onTopic: noError,
			inst: &autopilot.Instance{
				ID: "in01", Status: autopilot.StatusActive, Engine: "MySQL", Version: "8.0", Mode: "single",
				Flavor: "rds.mysql.n1.large.4", VCPUs: 2, MemoryGB: 8, VolumeGB: 100, Zones: []string{"eu-de-01"},
			}, topic: v1alpha1.Topic{State: v1alpha1.SubscriptionConfirmed}},
	}
	var err error
	w.kube, err = simkube.New(simkube.Options{CRDs: []string{
		"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml",
	}})
	w.must(err)
	w.kube.SetAdmit(w.admit)
	w.admin, err = dynamic.NewForConfig(w.kube.Config())
	w.must(err)
	w.createRds()
	return w
}

func (w *world) createRds() {
	w.t.Helper()
	w.create(w.rdss(), otcv1.GroupVersion(), otcv1.Kind, database.Name, map[string]any{
		"spec": map[string]any{
			"autopilot": true, "volumesize": int64(100), "flavorref": w.inst.Flavor, "datastoretype": "MySQL",
		},
		"status": map[string]any{"id": w.inst.ID},
	})
}

// newCloudWorld returns a world with an RdsAutopilot that names the instance, and without an Rds.
func newCloudWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.remove(w.rdss())
	w.create(w.raps(), v1alpha1.GroupVersion(), v1alpha1.Kind, database.Name,
		map[string]any{"spec": map[string]any{"apply": "Cloud", "instanceID": w.inst.ID}})
	return w
}

func (w *world) create(in dynamic.ResourceInterface, group schema.GroupVersion, kind, name string,
	fields map[string]any) {
	w.t.Helper()
	o := &unstructured.Unstructured{Object: fields}
	o.SetAPIVersion(group.String())
	o.SetKind(kind)
	o.SetName(name)
	_, err := in.Create(w.t.Context(), o, metav1.CreateOptions{})
	w.must(err)
	synctest.Wait()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// process starts a process and returns its controller.
func (w *world) process() *Controller {
	w.t.Helper()
	cluster, err := k8s.Connect(w.t.Context(), w.kube.Config(), k8s.Options{Version: "test", Own: "default", Log: zap.NewNop()})
	w.must(err)
	c := New(Options{
		Kube: eventRecorder{cluster, w}, Cloud: cloud{w}, Mode: v1alpha1.ModeAuto,
		Allowed: autopilot.Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}},
		Sweep:   5 * time.Minute, Recheck: 30 * time.Second, MaxFlavorChanges: 3,
		Log: zap.NewNop(), Reg: prometheus.NewRegistry(), Now: w.clock,
	})
	w.must(cluster.OnTarget(c.TargetChanged))
	w.must(cluster.OnAutopilot(c.AutopilotChanged))
	w.must(cluster.OnTopic(c.TopicChanged))
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(w.t.Context())
	running.Go(func() { _ = cluster.Run(ctx) })
	w.stopWatches = func() { cancel(); running.Wait() }
	w.t.Cleanup(w.stopWatches)
	w.must(cluster.WaitForSync(ctx))
	return c
}

// admit records what the processes write. It also refuses and reverts writes.
func (w *world) admit(write simkube.Write) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if write.Manager != "rds-autopilot" {
		return nil
	}
	if write.New.GetKind() == v1alpha1.Kind && write.Subresource == "status" {
		w.steps = append(w.steps, "status")
		if w.onStatus != nil {
			w.onStatus()
		}
		if w.statusRefusal != "" {
			return errors.New(w.statusRefusal)
		}
	}
	if write.New.GetKind() == "ConfigMap" && w.topicRefusal != "" {
		return errors.New(w.topicRefusal)
	}
	if write.New.GetKind() != otcv1.Kind {
		return nil
	}
	if w.patchRefusal != "" {
		return errors.New(w.patchRefusal)
	}
	w.steps = append(w.steps, "patch")
	before, after := write.Old.Object["spec"].(map[string]any), write.New.Object["spec"].(map[string]any)
	for _, field := range []string{"volumesize", "flavorref"} {
		if before[field] == after[field] {
			continue
		}
		w.patches = append(w.patches, fmt.Sprint(after[field]))
		if w.reverts {
			after[field] = before[field]
		}
	}
	return nil
}

// eventRecorder is the real client of Kubernetes. It records events in place of sending them.
type eventRecorder struct {
	*k8s.Cluster
	world *world
}

func (r eventRecorder) Event(_ *autopilot.Target, _ *v1alpha1.RdsAutopilot, e autopilot.Event) {
	r.world.withLock(func() { r.world.events = append(r.world.events, e) })
}

func (r eventRecorder) LiveTopic(ctx context.Context) (v1alpha1.Topic, error) {
	stored, err := r.Cluster.LiveTopic(ctx)
	r.world.withLock(func() { err = errors.Join(err, r.world.topicHidden) })
	return stored, err
}

func (w *world) rdss() dynamic.ResourceInterface {
	return w.admin.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(database.Namespace)
}

func (w *world) raps() dynamic.ResourceInterface {
	return w.admin.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(database.Namespace)
}

// get returns the database's object of that kind, or nil if there is none.
func get[T any](w *world, in dynamic.ResourceInterface) *T {
	w.t.Helper()
	found, err := in.Get(w.t.Context(), database.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	typed := new(T)
	w.must(runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, typed))
	return typed
}

func (w *world) rds() *otcv1.Rds             { return get[otcv1.Rds](w, w.rdss()) }
func (w *world) rap() *v1alpha1.RdsAutopilot { return get[v1alpha1.RdsAutopilot](w, w.raps()) }

// changeRds writes to the Rds as another writer does, and waits until every process has the event.
func (w *world) changeRds(change func(*otcv1.Rds)) {
	w.t.Helper()
	rds := w.rds()
	change(rds)
	w.update(w.rdss(), rds)
	synctest.Wait()
}

// setSwitch writes spec.autopilot; nil removes it.
func (w *world) setSwitch(value *bool) {
	w.t.Helper()
	w.changeRds(func(rds *otcv1.Rds) { rds.Spec.Autopilot = value })
}

// setInstance lets another instance replace the one of the Rds.
func (w *world) setInstance(id string) {
	w.t.Helper()
	w.changeRds(func(rds *otcv1.Rds) { rds.Status.ID = id })
	w.withLock(func() { w.inst.ID = id })
}

// changeRap writes to the RdsAutopilot and to its status, and waits until every process has the event.
func (w *world) changeRap(change func(*v1alpha1.RdsAutopilot)) {
	w.t.Helper()
	w.writeRap(change)
	synctest.Wait()
}

// writeRap is changeRap without the wait.
func (w *world) writeRap(change func(*v1alpha1.RdsAutopilot)) {
	w.t.Helper()
	rap := w.rap()
	change(rap)
	rap.ResourceVersion = w.update(w.raps(), rap)
	w.update(w.raps(), rap, "status")
}

func (w *world) update(in dynamic.ResourceInterface, object any, subresource ...string) (version string) {
	w.t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	w.must(err)
	stored, err := in.Update(w.t.Context(), &unstructured.Unstructured{Object: fields},
		metav1.UpdateOptions{FieldManager: "somebody"}, subresource...)
	w.must(err)
	return stored.GetResourceVersion()
}

// remove deletes an object.
func (w *world) remove(in dynamic.ResourceInterface) {
	w.t.Helper()
	w.must(in.Delete(w.t.Context(), database.Name, metav1.DeleteOptions{}))
	synctest.Wait()
}

// decide runs a round of the decide queue on caches that are up to date.
func (w *world) decide(c *Controller) (again time.Duration, err error) {
	synctest.Wait()
	return c.reconcile(w.t.Context(), database)
}

// mustDecide runs a round that must succeed.
func (w *world) mustDecide(c *Controller) (again time.Duration) {
	w.t.Helper()
	again, err := w.decide(c)
	w.must(err)
	return again
}

// arm checks the topic, and then runs a round of the arm queue.
func (w *world) arm(c *Controller) error {
	synctest.Wait()
	_, topicErr := c.ensureTopic(w.t.Context())
	_, err := c.arm(w.t.Context(), database)
	return errors.Join(topicErr, err)
}

// check runs a round of the decide queue, and then one of the arm queue.
func (w *world) check(c *Controller) error {
	_, err := w.decide(c)
	return errors.Join(err, w.arm(c))
}

// settle runs checks for eight minutes. Every change that needs no other event ends within that time.
func (w *world) settle(c *Controller) {
	w.t.Helper()
	for range 8 {
		w.now = w.now.Add(time.Minute)
		if err := w.check(c); err != nil && !errors.Is(err, autopilot.ErrConflict) {
			w.t.Fatalf("check: %v", err)
		}
	}
}

// apply applies the Rds to the cloud as the operator does.
func (w *world) apply() {
	wanted := w.rds().Spec
	w.withLock(func() {
		w.inst.VolumeGB, w.inst.Flavor = max(w.inst.VolumeGB, int(wanted.VolumeSize)), wanted.FlavorRef
	})
}

// raise sets the alarm of a metric, with a measurement above its threshold.
func (w *world) raise(m v1alpha1.Metric) {
	w.withLock(func() {
		w.usedGB, w.cpu = 92, 95
		w.states["al-"+string(m)] = autopilot.AlarmState{State: v1alpha1.StateAlarm, Since: w.now}
	})
}

// startAlarm returns a controller whose database is armed and has an alarm.
func (w *world) startAlarm(m v1alpha1.Metric) *Controller {
	w.t.Helper()
	c := w.process()
	w.settle(c)
	if !w.armed() {
		w.t.Fatalf("not armed: %+v", w.rap())
	}
	if m == v1alpha1.MetricCPU {
		w.now = w.now.Add(15 * time.Minute) // a flavor changes only if the instance has been ACTIVE for 15 minutes
	}
	w.raise(m)
	w.steps, w.events = nil, nil
	return c
}

func (w *world) armed() bool {
	rap := w.rap()
	return rap != nil && meta.IsStatusConditionTrue(rap.Status.Conditions, v1alpha1.ConditionArmed)
}

func (w *world) checkCondition(what, kind string, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	rap := w.rap()
	got := meta.FindStatusCondition(rap.Status.Conditions, kind)
	if got == nil || got.Status != status || got.Reason != reason || got.ObservedGeneration != rap.Generation {
		w.t.Errorf("%s: %s is %+v, want %s, %s", what, kind, got, status, reason)
	}
}

// countEvents returns the numbers of warnings and of other events with a reason.
func (w *world) countEvents(reason string) (warnings, normal int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		switch {
		case e.Reason == reason && e.Warning:
			warnings++
		case e.Reason == reason:
			normal++
		}
	}
	return warnings, normal
}

// run lets the controller lead, on the bubble's clock, until the test ends.
func (w *world) run(c *Controller) {
	c.options.Now, c.options.Chance = time.Now, func() float64 { return 0.5 } // a sweep every five minutes
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	w.t.Cleanup(func() { stop(); <-ended })
}

// withLock changes or reads the world while a controller runs.
func (w *world) withLock(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// advance advances the clock of the bubble, and with it that of the world.
func (w *world) advance(d time.Duration) {
	time.Sleep(d)
	w.withLock(func() { w.now = time.Now() })
	synctest.Wait()
}

// whenArmed runs a test in a bubble, with a controller whose database is armed.
func whenArmed(t *testing.T, test func(*testing.T, *world, *Controller)) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.process()
		w.settle(c)
		test(t, w, c)
	})
}

// withAlarm runs a test in a bubble, with a controller whose database is armed and has a storage alarm.
func withAlarm(t *testing.T, test func(*testing.T, *world, *Controller)) {
	level.InBubble(t, func(t *testing.T) {
		w := newWorld(t)
		test(t, w, w.startAlarm(v1alpha1.MetricStorage))
	})
}

// inBubble runs a subtest in a bubble of its own.
func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { level.InBubble(t, test) })
}

// oldTargets is a cache of Rds whose watch is behind.
type oldTargets struct {
	Kubernetes
	last *autopilot.Target
}

func (o oldTargets) Target(string, string) *autopilot.Target { return o.last }

// oldAutopilots is a cache of RdsAutopilots whose watch is behind.
type oldAutopilots struct {
	Kubernetes
	last *v1alpha1.RdsAutopilot
}

func (o oldAutopilots) Autopilot(string, string) (*v1alpha1.RdsAutopilot, bool) { return o.last, true }

// freezeAutopilots stops the watch of the controller, so that its cache keeps the RdsAutopilot as it is now.
func (w *world) freezeAutopilots(c *Controller) (last *v1alpha1.RdsAutopilot) {
	synctest.Wait()
	last, _ = c.options.Kube.Autopilot(database.Namespace, database.Name)
	c.options.Kube = oldAutopilots{c.options.Kube, last}
	return last
}
