// SPDX-License-Identifier: Apache-2.0

package simkube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mcsps/rds-autopilot/test/apiserver"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

var crds = []string{"../../../deploy/crds/rds.yaml", "../../../deploy/crds/autopilot.otc.mcsps.de_rdsautopilots.yaml"}

var shared = apiserver.Shared{Options: apiserver.Options{CRDs: crds}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

var (
	rdss = schema.GroupVersionResource{Group: "otc.mcsps.de", Version: "v1alpha1", Resource: "rdss"}
	raps = schema.GroupVersionResource{Group: "autopilot.otc.mcsps.de", Version: "v1alpha1", Resource: "rdsautopilots"}
)

// transcript sends requests to an API server and records the answers, without the values that differ in each run.
type transcript struct {
	t         *testing.T
	client    *dynamic.DynamicClient
	namespace string
	lines     []string
}

// session has the requests to which both API servers must give the same answers: conflicts, patches that fail, what a write
// changes beside its fields, and the events of a watch.
func session(s *transcript) {
	rdss, raps := s.in(rdss), s.in(raps)
	list, err := rdss.List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	old := rdss.create(rds())
	s.record("twice", rdss.create(rds()))
	s.record("no such object", rdss.get("none"))
	grow := `[{"op":"test","path":"/spec/volumesize","value":100},{"op":"replace","path":"/spec/volumesize","value":110}]`
	s.record("test holds", rdss.patchJSON(grow))
	s.record("test fails", rdss.patchJSON(grow))
	s.record("nothing new", rdss.merge(`{"spec":{"volumesize":110}}`))
	s.record("no subresource", rdss.merge(`{"status":{"id":"x"}}`, "status"))
	s.record("status is a field", rdss.merge(`{"status":{"id":"x"}}`))
	s.record("stale update", rdss.update(old.object))
	old.object.SetResourceVersion("")
	s.record("update without a version", rdss.update(old.object))
	s.record("managers", managers(rdss.get("db")))

	old = raps.create(rap())
	s.record("defaults, pruning and no status", old)
	s.record("spec", raps.merge(`{"spec":{"mode":"Off"},"status":{"observedGeneration":3}}`))
	stale := `{"metadata":{"resourceVersion":"` + old.object.GetResourceVersion() + `"},"spec":{"mode":"Auto"}}`
	s.record("stale", raps.merge(stale))
	s.record("status", raps.merge(`{"spec":{"mode":"Auto"},"status":{"observedGeneration":3,"unknown":1}}`, "status"))
	s.record("a default comes back", raps.merge(`{"spec":{"mode":null,"storage":{"stepGB":null}}}`))

	s.must(rdss.Delete(s.t.Context(), "db", metav1.DeleteOptions{}))
	s.events(rdss.watch(metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}), 4)
	yes := true
	s.events(raps.watch(metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}), 2)
}

func TestMemoryAnswersLikeARealAPIServer(t *testing.T) {
	memory, err := simkube.New(simkube.Options{CRDs: crds})
	if err != nil {
		t.Fatal(err)
	}
	real := shared.Cluster(t)
	got := answersOf(t, memory.Config(), metav1.NamespacePublic)
	if diff := cmp.Diff(answersOf(t, real.Config(), real.Namespace(t)), got); diff != "" || len(got) == 0 {
		t.Errorf("the real API server (-) and the one in memory (+):\n%s", diff)
	}
}

// answersOf returns the answers of an API server to the session.
func answersOf(t *testing.T, config *rest.Config, namespace string) []string {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &transcript{t: t, client: client, namespace: namespace}
	session(s)
	return s.lines
}

// answer is an object or an error.
type answer struct {
	object *unstructured.Unstructured
	err    error
}

// record adds a request and its answer.
func (s *transcript) record(request string, a answer) {
	line := request + ": "
	status := apierrors.APIStatus(nil)
	switch {
	case errors.As(a.err, &status):
		hasCauses := status.Status().Details != nil && len(status.Status().Details.Causes) > 0
		line += fmt.Sprint(status.Status().Code, " ", status.Status().Reason, ", causes ", hasCauses)
	case a.err != nil:
		line += a.err.Error()
	case a.object != nil:
		line += withoutVariables(a.object)
	}
	s.recordText(line)
}

func (s *transcript) recordText(line string) {
	s.lines = append(s.lines, strings.ReplaceAll(line, s.namespace, "NAMESPACE"))
}

// withoutVariables returns an object as JSON without its managed fields and the values that differ in each run.
func withoutVariables(u *unstructured.Unstructured) string {
	u = u.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"} {
		if _, has, _ := unstructured.NestedString(u.Object, "metadata", field); has {
			_ = unstructured.SetNestedField(u.Object, "set", "metadata", field)
		}
	}
	u.SetManagedFields(nil)
	text, err := json.Marshal(u.Object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *transcript) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// resource sends requests for one resource in one namespace.
type resource struct {
	*transcript
	dynamic.ResourceInterface
}

func (s *transcript) in(of schema.GroupVersionResource) resource {
	return resource{s, s.client.Resource(of).Namespace(s.namespace)}
}

func (r resource) create(u *unstructured.Unstructured) answer {
	made, err := r.Create(r.t.Context(), u, metav1.CreateOptions{FieldManager: "maker"})
	return answer{made, err}
}

func (r resource) get(name string) answer {
	u, err := r.Get(r.t.Context(), name, metav1.GetOptions{})
	return answer{u, err}
}

func (r resource) update(u *unstructured.Unstructured) answer {
	u, err := r.Update(r.t.Context(), u, metav1.UpdateOptions{FieldManager: "updater"})
	return answer{u, err}
}

var byPatcher = metav1.PatchOptions{FieldManager: "patcher"}

func (r resource) merge(patch string, subresource ...string) answer {
	u, err := r.Patch(r.t.Context(), "db", types.MergePatchType, []byte(patch), byPatcher, subresource...)
	return answer{u, err}
}

func (r resource) patchJSON(patch string) answer {
	u, err := r.Patch(r.t.Context(), "db", types.JSONPatchType, []byte(patch), byPatcher)
	return answer{u, err}
}

func (r resource) watch(o metav1.ListOptions) watch.Interface {
	r.t.Helper()
	w, err := r.Watch(r.t.Context(), o)
	r.must(err)
	return w
}

// events records the next n events.
func (s *transcript) events(w watch.Interface, n int) {
	s.t.Helper()
	defer w.Stop()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for range n {
		select {
		case e := <-w.ResultChan():
			u, _ := e.Object.(*unstructured.Unstructured)
			if e.Type == watch.Bookmark {
				s.recordText(fmt.Sprint(e.Type, " ", u.GetAnnotations()))
				continue
			}
			s.record(string(e.Type), answer{object: u})
		case <-ctx.Done():
			s.t.Fatal("no event within a minute")
		}
	}
}

// managers returns which managers own which fields of the spec, as the text of an error.
func managers(a answer) answer {
	var lines []string
	for _, e := range a.object.GetManagedFields() {
		var fields struct {
			Spec map[string]any `json:"f:spec"`
		}
		_ = json.Unmarshal([]byte(e.FieldsV1.GetRawString()), &fields)
		for name := range fields.Spec {
			if name == "f:volumesize" || name == "f:flavorref" || name == "f:mode" {
				lines = append(lines, fmt.Sprint(name, " ", e.Manager, " ", e.Operation, " ", e.Subresource))
			}
		}
	}
	slices.Sort(lines)
	return answer{err: errors.New(strings.Join(lines, "; "))}
}

func rds() *unstructured.Unstructured {
	return object("otc.mcsps.de/v1alpha1", "Rds", map[string]any{
		"datastoretype": "MySQL", "datastoreversion": "8.0", "flavorref": "small", "volumesize": int64(100),
		"volumetype": "COMMON", "anything": []any{1.5, "x"},
	})
}

func rap() *unstructured.Unstructured {
	u := object("autopilot.otc.mcsps.de/v1alpha1", "RdsAutopilot", map[string]any{"unknown": int64(1)})
	u.Object["status"] = map[string]any{"observedGeneration": int64(7)}
	return u
}

func object(apiVersion, kind string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "db"}, "spec": spec,
	}}
}
