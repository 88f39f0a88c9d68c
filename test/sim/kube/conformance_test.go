// SPDX-License-Identifier: Apache-2.0

package simkube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	rdss       = schema.GroupVersionResource{Group: "otc.mcsps.de", Version: "v1alpha1", Resource: "rdss"}
	raps       = schema.GroupVersionResource{Group: "autopilot.otc.mcsps.de", Version: "v1alpha1", Resource: "rdsautopilots"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// transcript sends requests to an API server and records the answers, without the values that differ in each run.
type transcript struct {
	t         *testing.T
	client    *dynamic.DynamicClient
	namespace string
	lines     []string
}

// sessions are the requests to which both API servers must give the same answers.
var sessions = map[string]func(*transcript){
	"create": func(s *transcript) {
		in := s.in(rdss)
		s.record("a database", in.create(rds("db", nil)))
		s.record("twice", in.create(rds("db", nil)))
		s.record("with a version", in.create(rds("other", map[string]any{"metadata": map[string]any{"name": "other", "resourceVersion": "1"}})))
		s.record("without a name", in.create(rds("", nil)))
		s.record("no such namespace", s.at(rdss, "nowhere").create(rds("db", nil)))
		s.record("no such object", in.get("none"))
		s.record("no such resource", s.in(schema.GroupVersionResource{Group: "otc.mcsps.de", Version: "v1alpha1", Resource: "none"}).get("x"))
		s.record("defaults, pruning and no status", s.in(raps).create(rap("db", map[string]any{
			"spec":   map[string]any{"mode": "Recommend", "flavor": map[string]any{"window": map[string]any{"start": "01:00", "end": "05:00"}}, "unknown": int64(1)},
			"status": map[string]any{"observedGeneration": int64(7)}, "more": "x",
		})))
		s.record("nothing in it", s.in(raps).create(rap("empty", nil)))
	},
	"merge patch": func(s *transcript) {
		in := s.in(raps)
		old := in.create(rap("db", nil))
		s.record("spec", in.merge("db", `{"spec":{"mode":"Off"},"status":{"observedGeneration":3}}`))
		s.record("nothing new", in.merge("db", `{"spec":{"mode":"Off"}}`))
		s.record("stale", in.merge("db", `{"metadata":{"resourceVersion":"`+version(old)+`"},"spec":{"mode":"Auto"}}`))
		s.record("fresh", in.merge("db", `{"metadata":{"resourceVersion":"`+version(in.get("db"))+`","labels":{"a":"b"}}}`))
		s.record("status", in.merge("db", `{"spec":{"mode":"Auto"},"status":{"observedGeneration":3,"unknown":1}}`, "status"))
		s.record("status stale", in.merge("db", `{"metadata":{"resourceVersion":"`+version(old)+`"},"status":{"observedGeneration":4}}`, "status"))
		s.record("null removes", in.merge("db", `{"status":{"observedGeneration":null},"metadata":{"labels":null}}`, "status"))
		s.record("a default comes back", in.merge("db", `{"spec":{"mode":null,"storage":{"stepGB":null}}}`))
		s.record("no such object", in.merge("none", `{"spec":{"mode":"Off"}}`))
		s.record("not JSON", in.merge("db", `{`))
		s.record("managers", managers(in.get("db")))
		no := s.in(rdss)
		no.create(rds("db", nil))
		s.record("no subresource", no.merge("db", `{"status":{"id":"x"}}`, "status"))
		s.record("status is a field", no.merge("db", `{"status":{"id":"x"}}`))
	},
	"JSON patch": func(s *transcript) {
		in := s.in(rdss)
		in.create(rds("db", nil))
		s.record("test holds", in.patchJSON("db", `[{"op":"test","path":"/spec/volumesize","value":100},{"op":"replace","path":"/spec/volumesize","value":110}]`))
		s.record("test fails", in.patchJSON("db", `[{"op":"test","path":"/spec/volumesize","value":100},{"op":"replace","path":"/spec/volumesize","value":120}]`))
		s.record("no such path", in.patchJSON("db", `[{"op":"test","path":"/spec/none","value":100}]`))
		s.record("not a patch", in.patchJSON("db", `{}`))
		s.record("managers", managers(in.get("db")))
	},
	"update": func(s *transcript) {
		in := s.in(rdss)
		old := in.create(rds("db", nil)).object
		next := old.DeepCopy()
		next.Object["spec"].(map[string]any)["volumesize"] = int64(120)
		s.record("on top", in.update(next))
		next.Object["spec"].(map[string]any)["volumesize"] = int64(130)
		s.record("stale", in.update(next))
		next.SetResourceVersion("")
		s.record("without a version", in.update(next))
		next.SetName("other")
		s.record("what is not there", in.update(next))
		next = in.get("db").object
		s.record("nothing new", in.update(next))
		next.SetUID("00000000-0000-0000-0000-000000000000")
		s.record("another uid", in.update(next))
	},
	"delete": func(s *transcript) {
		in := s.in(raps)
		in.create(rap("db", map[string]any{"metadata": map[string]any{"name": "db", "finalizers": []any{"example.com/hold"}}}))
		wrong := types.UID("wrong")
		s.record("another uid", in.delete("db", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}))
		s.record("held", in.delete("db", metav1.DeleteOptions{}))
		s.record("held again", in.delete("db", metav1.DeleteOptions{}))
		s.record("as it is", in.get("db"))
		s.record("finalizers cannot come", in.merge("db", `{"metadata":{"labels":{"a":"b"}}}`))
		s.record("let go", in.merge("db", `{"metadata":{"finalizers":null}}`))
		s.record("gone", in.get("db"))
		s.record("twice", in.delete("db", metav1.DeleteOptions{}))
		first := in.create(rap("db", nil))
		in.delete("db", metav1.DeleteOptions{})
		s.record("another one", isAnother(first, in.create(rap("db", nil))))
	},
	"watch": func(s *transcript) {
		in := s.in(rdss)
		in.create(rds("before", nil))
		list, err := in.List(s.t.Context(), metav1.ListOptions{})
		s.must(err)
		from := in.watch(metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		in.create(rds("db", nil))
		in.merge("db", `{"spec":{"volumesize":110}}`)
		in.merge("db", `{"spec":{"volumesize":110}}`) // no event
		in.merge("db", `{"metadata":{"finalizers":["example.com/hold"]}}`)
		in.delete("db", metav1.DeleteOptions{})
		in.merge("db", `{"metadata":{"finalizers":[]}}`)
		s.events(from, 5)
		s.events(in.watch(metav1.ListOptions{}), 1)
		yes := true
		s.events(in.watch(metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}), 2)
		seconds := int64(1)
		for range in.watch(metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: &seconds}).ResultChan() {
			s.recordText("until its time is up")
		}
	},
}

func TestMemoryAnswersLikeARealAPIServer(t *testing.T) {
	t.Parallel()
	for name, session := range sessions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory, err := simkube.New(simkube.Options{CRDs: crds})
			if err != nil {
				t.Fatal(err)
			}
			const namespace = "of-the-memory"
			admin, err := dynamic.NewForConfig(memory.Config())
			if err != nil {
				t.Fatal(err)
			}
			of := object("v1", "Namespace", namespace)
			if _, err := admin.Resource(namespaces).Create(t.Context(), of, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			got := answersTo(t, session, memory.Config(), namespace)
			real := shared.Cluster(t)
			if diff := cmp.Diff(answersTo(t, session, real.Config(), real.Namespace(t)), got); diff != "" || len(got) == 0 {
				t.Errorf("the real API server (-) and the one in memory (+):\n%s", diff)
			}
		})
	}
}

// answersTo returns the answers of an API server to a session.
func answersTo(t *testing.T, session func(*transcript), config *rest.Config, namespace string) []string {
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

func (s *transcript) at(of schema.GroupVersionResource, namespace string) resource {
	return resource{s, s.client.Resource(of).Namespace(namespace)}
}

func (s *transcript) in(of schema.GroupVersionResource) resource { return s.at(of, s.namespace) }

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

func (r resource) merge(name, patch string, subresource ...string) answer {
	u, err := r.Patch(r.t.Context(), name, types.MergePatchType, []byte(patch), byPatcher, subresource...)
	return answer{u, err}
}

func (r resource) patchJSON(name, patch string) answer {
	u, err := r.Patch(r.t.Context(), name, types.JSONPatchType, []byte(patch), byPatcher)
	return answer{u, err}
}

func (r resource) delete(name string, o metav1.DeleteOptions) answer {
	return answer{err: r.Delete(r.t.Context(), name, o)}
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

func version(a answer) string { return a.object.GetResourceVersion() }

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

// isAnother returns whether two objects have different UIDs, as the text of an error.
func isAnother(a, b answer) answer {
	x, y := a.object.GetUID(), b.object.GetUID()
	return answer{err: fmt.Errorf("another uid: %t", x != y && x[:8] != y[:8])}
}

func rds(name string, more map[string]any) *unstructured.Unstructured {
	return object("otc.mcsps.de/v1alpha1", "Rds", name, map[string]any{"spec": map[string]any{
		"datastoretype": "MySQL", "datastoreversion": "8.0", "flavorref": "small", "volumesize": int64(100), "volumetype": "COMMON", "anything": []any{1.5, "x"},
	}}, more)
}

func rap(name string, more map[string]any) *unstructured.Unstructured {
	return object("autopilot.otc.mcsps.de/v1alpha1", "RdsAutopilot", name, map[string]any{"spec": map[string]any{}}, more)
}

func object(apiVersion, kind, name string, fields ...map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
	for _, more := range fields {
		maps.Copy(u.Object, more)
	}
	return u
}
