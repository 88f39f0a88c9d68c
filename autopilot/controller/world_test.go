// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

var errCrash = errors.New("the process was killed here")

// steps counts the calls that change something, in Kubernetes and in the cloud, and kills at one of them: before it is
// applied, or after. A process that was killed changes nothing any more.
type steps struct {
	n, killAt int
	applied   bool
	killed    bool
	names     []string
}

func (s *steps) do(name string, apply func() error) error {
	if s.killed {
		return errCrash
	}
	s.n++
	s.names = append(s.names, name)
	s.killed = s.n == s.killAt
	if s.killed && !s.applied {
		return errCrash
	}
	if err := apply(); err != nil {
		return err
	}
	if s.killed {
		return errCrash
	}
	return nil
}

// world is one database in Kubernetes and in the cloud. Its processes use the real clients and caches on a Kubernetes in
// memory; time stands still there, and is w.now for the loop.
type world struct {
	*steps
	t     *testing.T
	kube  *simkube.Server
	admin dynamic.Interface
	mu    sync.Mutex // decisions and arming go on side by side

	inst   *autopilot.Instance
	usedGB float64
	cpu    float64
	state  map[string]AlarmState
	now    time.Time
	gone   bool // cloud unreachable

	noRules    bool                     // the quota allows no rule
	unreadable map[v1alpha1.Metric]bool // Cloud Eye returns no measurements of these metrics
	measured   []v1alpha1.Metric        // whose measurements were read
	series     autopilot.Series         // what tells the cause; nil means no answer
	seriesRead []SeriesRequest
	onSeries   func(context.Context) // what happens while a series is read
	history    []autopilot.Point     // the used space of 14 days
	capReads   int

	listed    map[string]AlarmState // the last listing of rules
	listedAt  time.Time
	listedFor time.Duration
	listings  int

	refusal     string   // of the API server, for patches of the Rds
	putsBack    bool     // something in the API server restores the old value
	offered     []string // the instance's resize list
	resizeLists int      // how often it was read
	noFlavors   bool     // the catalogue cannot be read
	duringCloud func()   // what happens while the round waits for the cloud
	duringAsk   func()   // what happens while the cloud is asked for a change

	patches []string                           // that the API server took
	begun   []string                           // what the cloud was asked for and has begun
	order   []string                           // ids of the instances that the cloud has begun to change
	refuses map[string]*autopilot.RefusedError // by replica id
	growing map[string]bool                    // replicas, by id
	topics  int
	events  []autopilot.Event

	running []func() // ends each of the processes
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		steps: &steps{}, t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), usedGB: 50, cpu: 10, state: map[string]AlarmState{},
		refuses: map[string]*autopilot.RefusedError{}, growing: map[string]bool{},
		inst: &autopilot.Instance{
			ID: "in01", Status: autopilot.StatusActive, Engine: "MySQL", Version: "8.0", Mode: "single", Flavor: "rds.mysql.n1.large.4",
			VCPUs: 2, MemoryGB: 8, VolumeGB: 100, Zones: []string{"eu-de-01"},
		},
	}
	t.Cleanup(w.stop)
	var err error
	w.kube, err = simkube.New(simkube.Options{CRDs: []string{"../../deploy/crds/rds.yaml", "../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}})
	w.must(err)
	w.kube.SetAdmit(w.admit)
	w.admin, err = dynamic.NewForConfig(w.kube.Config())
	w.must(err)
	_, err = w.rdss().Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": otcv1.GroupVersion().String(), "kind": otcv1.Kind, "metadata": map[string]any{"name": database.Name},
		"spec":   map[string]any{"autopilot": true, "volumesize": int64(100), "flavorref": w.inst.Flavor, "datastoretype": "MySQL"},
		"status": map[string]any{"id": w.inst.ID},
	}}, metav1.CreateOptions{})
	w.must(err)
	return w
}

// database is the only one.
var database = Key{metav1.NamespaceDefault, "db"}

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

// process starts a controller, as after a restart: it remembers nothing.
func (w *world) process() *Controller {
	w.t.Helper()
	w.killed = false
	config := w.kube.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{w, next} })
	cluster, err := k8s.Connect(w.t.Context(), config, k8s.Options{Version: "test", Log: zap.NewNop()})
	w.must(err)
	c := New(Options{
		Kube: recording{cluster, w}, Cloud: cloud{w}, Allowed: autopilot.Allowed{Apply: v1alpha1.ApplyCloud, Instances: []string{"*/*"}}, Mode: v1alpha1.ModeAuto, Sweep: 5 * time.Minute, Recheck: 30 * time.Second, MaxFlavorChanges: 3,
		Log: zap.NewNop(), Reg: prometheus.NewRegistry(), Now: w.clock,
	})
	w.must(cluster.OnTarget(c.TargetChanged))
	w.must(cluster.OnAutopilot(c.AutopilotChanged))
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(w.t.Context())
	running.Go(func() { _ = cluster.Run(ctx) })
	w.running = append(w.running, func() { cancel(); running.Wait() })
	w.must(cluster.WaitForSync(ctx))
	return c
}

// stop ends all processes.
func (w *world) stop() {
	for _, end := range w.running {
		end()
	}
	w.running = nil
}

// counted is the way from a process to the API server, on which it may be killed.
type counted struct {
	*world
	next http.RoundTripper
}

func (c counted) RoundTrip(r *http.Request) (reply *http.Response, err error) {
	if r.Method == http.MethodGet {
		return c.next.RoundTrip(r)
	}
	parts := strings.Split(r.URL.Path, "/")
	name := strings.ToLower(r.Method) + " " + parts[6] // /apis/group/version/namespaces/ns/resource/…
	if parts[len(parts)-1] == "status" {
		name = "status"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.do(name, func() error { reply, err = c.next.RoundTrip(r); return err }); err != nil {
		if reply != nil {
			_ = reply.Body.Close()
		}
		return nil, err
	}
	return reply, nil
}

// admit sees what a process patches, and is the admission policy in its way.
func (w *world) admit(write simkube.Write) error {
	if write.New.GetKind() != otcv1.Kind || write.Manager != "rds-autopilot" {
		return nil
	}
	if w.refusal != "" {
		return errors.New(w.refusal)
	}
	old, now := write.Old.Object["spec"].(map[string]any), write.New.Object["spec"].(map[string]any)
	for _, field := range []string{"volumesize", "flavorref"} {
		if old[field] == now[field] {
			continue
		}
		w.patches = append(w.patches, fmt.Sprint(now[field]))
		if w.putsBack {
			now[field] = old[field]
		}
	}
	return nil
}

// recording is the real client of Kubernetes, but keeps the events.
type recording struct {
	*k8s.Cluster
	world *world
}

func (r recording) Event(_ *autopilot.Target, _ *v1alpha1.RdsAutopilot, e autopilot.Event) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	r.world.events = append(r.world.events, e)
}

func (w *world) rdss() dynamic.ResourceInterface {
	return w.admin.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(database.Namespace)
}

func (w *world) raps() dynamic.ResourceInterface {
	return w.admin.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(database.Namespace)
}

// get reads the database's object of that kind; nil where there is none.
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

// changeRds is a write of somebody else, of which every process hears.
func (w *world) changeRds(change func(*otcv1.Rds)) {
	w.t.Helper()
	rds := w.rds()
	change(rds)
	w.update(w.rdss(), rds)
	synctest.Wait()
}

// changeRap is such a write to the RdsAutopilot and to its status.
func (w *world) changeRap(change func(*v1alpha1.RdsAutopilot)) {
	w.t.Helper()
	w.writeRap(change)
	synctest.Wait()
}

// writeRap does not wait until they have heard.
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
	stored, err := in.Update(w.t.Context(), &unstructured.Unstructured{Object: fields}, metav1.UpdateOptions{FieldManager: "somebody"}, subresource...)
	w.must(err)
	return stored.GetResourceVersion()
}

func (w *world) create(in dynamic.ResourceInterface, kind string, object any) {
	w.t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	w.must(err)
	o := &unstructured.Unstructured{Object: fields}
	o.SetAPIVersion(otcv1.GroupVersion().String())
	o.SetKind(kind)
	_, err = in.Create(w.t.Context(), o, metav1.CreateOptions{})
	w.must(err)
	synctest.Wait()
}

// remove deletes an object; one that has a finalizer stays until that is gone.
func (w *world) remove(in dynamic.ResourceInterface) {
	w.t.Helper()
	w.must(in.Delete(w.t.Context(), database.Name, metav1.DeleteOptions{}))
	synctest.Wait()
}
