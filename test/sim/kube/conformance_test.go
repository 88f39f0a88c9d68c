// SPDX-License-Identifier: Apache-2.0

package simkube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
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
	leases     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// script does things to a server and writes down what came of them, without what differs from run to run.
type script struct {
	t         *testing.T
	config    *rest.Config
	client    *dynamic.DynamicClient
	namespace string
	seen      []string
}

// the fake and the real API server must give the same account of each.
var scripts = map[string]func(*script){
	"create": func(s *script) {
		in := s.in(rdss)
		s.note("a database", in.create(rds("db", nil)))
		s.note("twice", in.create(rds("db", nil)))
		s.note("with a version", in.create(rds("other", map[string]any{"metadata": map[string]any{"name": "other", "resourceVersion": "1"}})))
		s.note("without a name", in.create(rds("", nil)))
		s.note("no such namespace", s.at(rdss, "nowhere").create(rds("db", nil)))
		s.note("no such object", in.get("none"))
		s.note("no such resource", s.in(schema.GroupVersionResource{Group: "otc.mcsps.de", Version: "v1alpha1", Resource: "none"}).get("x"))
		s.note("defaults, pruning and no status", s.in(raps).create(rap("db", map[string]any{
			"spec":   map[string]any{"mode": "Recommend", "flavor": map[string]any{"window": map[string]any{"start": "01:00", "end": "05:00"}}, "unknown": int64(1)},
			"status": map[string]any{"observedGeneration": int64(7)}, "more": "x",
		})))
		s.note("nothing in it", s.in(raps).create(rap("empty", nil)))
	},
	"merge patch": func(s *script) {
		in := s.in(raps)
		old := in.create(rap("db", nil))
		s.note("spec", in.patch("db", types.MergePatchType, `{"spec":{"mode":"Off"},"status":{"observedGeneration":3}}`))
		s.note("nothing new", in.patch("db", types.MergePatchType, `{"spec":{"mode":"Off"}}`))
		s.note("stale", in.patch("db", types.MergePatchType, `{"metadata":{"resourceVersion":"`+version(old)+`"},"spec":{"mode":"Auto"}}`))
		s.note("fresh", in.patch("db", types.MergePatchType, `{"metadata":{"resourceVersion":"`+version(in.get("db"))+`","labels":{"a":"b"}}}`))
		s.note("status", in.patch("db", types.MergePatchType, `{"spec":{"mode":"Auto"},"status":{"observedGeneration":3,"unknown":1}}`, "status"))
		s.note("status stale", in.patch("db", types.MergePatchType, `{"metadata":{"resourceVersion":"`+version(old)+`"},"status":{"observedGeneration":4}}`, "status"))
		s.note("null removes", in.patch("db", types.MergePatchType, `{"status":{"observedGeneration":null},"metadata":{"labels":null}}`, "status"))
		s.note("a default comes back", in.patch("db", types.MergePatchType, `{"spec":{"mode":null,"storage":{"stepGB":null}}}`))
		s.note("no such object", in.patch("none", types.MergePatchType, `{"spec":{"mode":"Off"}}`))
		s.note("not JSON", in.patch("db", types.MergePatchType, `{`))
		s.note("managers", managers(in.get("db")))
		no := s.in(rdss)
		no.create(rds("db", nil))
		s.note("no subresource", no.patch("db", types.MergePatchType, `{"status":{"id":"x"}}`, "status"))
		s.note("status is a field", no.patch("db", types.MergePatchType, `{"status":{"id":"x"}}`))
	},
	"metadata alone": func(s *script) {
		s.in(raps).create(rap("db", nil))
		config := rest.CopyConfig(s.config)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return metadataAlone{next} })
		client, err := dynamic.NewForConfig(config)
		s.must(err)
		in := place{s, client.Resource(raps).Namespace(s.namespace)}
		s.note("get", in.get("db"))
		s.note("patch", in.patch("db", types.MergePatchType, `{"metadata":{"finalizers":["example.com/hold"]}}`))
		s.note("status", in.patch("db", types.MergePatchType, `{"status":{"observedGeneration":3}}`, "status"))
		s.note("no such object", in.patch("none", types.MergePatchType, `{"spec":{"mode":"Off"}}`))
	},
	"JSON patch": func(s *script) {
		in := s.in(rdss)
		in.create(rds("db", nil))
		s.note("test holds", in.patch("db", types.JSONPatchType, `[{"op":"test","path":"/spec/volumesize","value":100},{"op":"replace","path":"/spec/volumesize","value":110}]`))
		s.note("test fails", in.patch("db", types.JSONPatchType, `[{"op":"test","path":"/spec/volumesize","value":100},{"op":"replace","path":"/spec/volumesize","value":120}]`))
		s.note("no such path", in.patch("db", types.JSONPatchType, `[{"op":"test","path":"/spec/none","value":100}]`))
		s.note("not a patch", in.patch("db", types.JSONPatchType, `{}`))
		s.note("managers", managers(in.get("db")))
	},
	"update": func(s *script) {
		in := s.in(rdss)
		old := in.create(rds("db", nil)).object
		next := old.DeepCopy()
		next.Object["spec"].(map[string]any)["volumesize"] = int64(120)
		s.note("on top", in.update(next))
		next.Object["spec"].(map[string]any)["volumesize"] = int64(130)
		s.note("stale", in.update(next))
		next.SetResourceVersion("")
		s.note("without a version", in.update(next))
		next.SetName("other")
		s.note("what is not there", in.update(next))
		next = in.get("db").object
		s.note("nothing new", in.update(next))
		next.SetUID("00000000-0000-0000-0000-000000000000")
		s.note("another uid", in.update(next))
	},
	"server-side apply": func(s *script) {
		in := s.in(rdss)
		in.create(rds("db", nil))
		s.note("conflict", in.apply("db", `{"spec":{"volumesize":100,"flavorref":"large"}}`, false))
		s.note("forced", in.apply("db", `{"spec":{"flavorref":"large"}}`, true))
		s.note("managers", managers(in.get("db")))
		s.note("what is not there", in.apply("new", `{"spec":{"volumesize":40}}`, false))
	},
	"delete": func(s *script) {
		in := s.in(raps)
		in.create(rap("db", map[string]any{"metadata": map[string]any{"name": "db", "finalizers": []any{"example.com/hold"}}}))
		other, wrong := metav1.DeletePropagationForeground, types.UID("wrong")
		s.note("another uid", in.delete("db", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}}))
		s.note("held", in.delete("db", metav1.DeleteOptions{}))
		s.note("held again", in.delete("db", metav1.DeleteOptions{}))
		s.note("as it is", in.get("db"))
		s.note("finalizers cannot come", in.patch("db", types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`))
		s.note("let go", in.patch("db", types.MergePatchType, `{"metadata":{"finalizers":null}}`))
		s.note("gone", in.get("db"))
		s.note("twice", in.delete("db", metav1.DeleteOptions{}))
		first := in.create(rap("db", nil))
		in.delete("db", metav1.DeleteOptions{})
		s.note("another one", result{err: cmpUID(first, in.create(rap("db", nil)))})
		s.note("in the foreground", in.delete("db", metav1.DeleteOptions{PropagationPolicy: &other}))
		s.note("as it is", in.get("db"))
	},
	"list": func(s *script) {
		in := s.in(rdss)
		for _, name := range []string{"c", "a", "e", "b", "d"} {
			in.create(rds(name, nil))
		}
		var names []string
		next := ""
		for {
			page, err := in.List(s.t.Context(), metav1.ListOptions{Limit: 2, Continue: next})
			s.must(err)
			names = append(names, fmt.Sprint(len(page.Items)))
			for _, o := range page.Items {
				names = append(names, o.GetName())
			}
			if next = page.GetContinue(); next == "" {
				break
			}
		}
		s.note(strings.Join(names, " "), result{})
		all, err := s.client.Resource(rdss).List(s.t.Context(), metav1.ListOptions{})
		s.must(err)
		mine := slices.DeleteFunc(all.Items, func(u unstructured.Unstructured) bool { return u.GetNamespace() != s.namespace })
		s.note(fmt.Sprint(all.GetKind(), " ", len(mine)), result{})
	},
	"watch": func(s *script) {
		in := s.in(rdss)
		in.create(rds("before", nil))
		list, err := in.List(s.t.Context(), metav1.ListOptions{})
		s.must(err)
		from := in.watch(metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		in.create(rds("db", nil))
		in.patch("db", types.MergePatchType, `{"spec":{"volumesize":110}}`)
		in.patch("db", types.MergePatchType, `{"spec":{"volumesize":110}}`) // no event
		in.patch("db", types.MergePatchType, `{"metadata":{"finalizers":["example.com/hold"]}}`)
		in.delete("db", metav1.DeleteOptions{})
		in.patch("db", types.MergePatchType, `{"metadata":{"finalizers":[]}}`)
		s.events(from, 5)
		s.events(in.watch(metav1.ListOptions{}), 1)
		yes := true
		s.events(in.watch(metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}), 2)
		seconds := int64(1)
		for range in.watch(metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), TimeoutSeconds: &seconds}).ResultChan() {
			s.note("until its time is up", result{})
		}
	},
	"leases and namespaces": func(s *script) {
		in := s.in(leases)
		lease := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": map[string]any{"name": "lock"}, "spec": map[string]any{"holderIdentity": "a"},
		}}
		old := in.create(lease)
		s.note("lease", old)
		next := old.object.DeepCopy()
		next.Object["spec"] = map[string]any{"holderIdentity": "b"}
		s.note("taken", in.update(next))
		s.note("too late", in.update(next))
		system, err := s.client.Resource(namespaces).Get(s.t.Context(), "kube-system", metav1.GetOptions{})
		s.must(err)
		s.note(fmt.Sprint("kube-system has a uid: ", system.GetUID() != ""), result{})
	},
}

func TestFakeAnswersLikeTheRealAPIServer(t *testing.T) {
	t.Parallel()
	for name, run := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake, err := simkube.New(simkube.Options{CRDs: crds})
			if err != nil {
				t.Fatal(err)
			}
			const space = "of-the-fake"
			admin, err := dynamic.NewForConfig(fake.Config())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := admin.Resource(namespaces).Create(t.Context(), object("v1", "Namespace", space), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			of := account(t, fake.Config(), space, run)
			real := shared.Cluster(t)
			if diff := cmp.Diff(account(t, real.Config(), real.Namespace(t), run), of); diff != "" || len(of) == 0 {
				t.Errorf("the real API server (-) and the fake (+):\n%s", diff)
			}
		})
	}
}

func account(t *testing.T, config *rest.Config, namespace string, run func(*script)) []string {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, config: config, client: client, namespace: namespace}
	run(s)
	return s.seen
}

// result is what came of a request.
type result struct {
	object *unstructured.Unstructured
	err    error
}

// note writes a result down.
func (s *script) note(what string, r result) {
	line := what + ": "
	status := apierrors.APIStatus(nil)
	switch {
	case errors.As(r.err, &status):
		causes := 0
		if d := status.Status().Details; d != nil {
			causes = len(d.Causes)
		}
		line += fmt.Sprint(status.Status().Code, " ", status.Status().Reason, ", causes ", causes > 0)
	case r.err != nil:
		line += r.err.Error()
	case r.object != nil:
		line += plainly(r.object)
	}
	s.seen = append(s.seen, strings.ReplaceAll(line, s.namespace, "here"))
}

// plainly is an object without what differs from run to run, or who wrote it.
func plainly(u *unstructured.Unstructured) string {
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

func (s *script) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// place is one resource in one namespace.
type place struct {
	*script
	dynamic.ResourceInterface
}

func (s *script) at(of schema.GroupVersionResource, namespace string) place {
	return place{s, s.client.Resource(of).Namespace(namespace)}
}

func (s *script) in(of schema.GroupVersionResource) place { return s.at(of, s.namespace) }

func (p place) create(u *unstructured.Unstructured) result {
	made, err := p.Create(p.t.Context(), u, metav1.CreateOptions{FieldManager: "maker"})
	return result{made, err}
}

func (p place) get(name string) result {
	u, err := p.Get(p.t.Context(), name, metav1.GetOptions{})
	return result{u, err}
}

func (p place) update(u *unstructured.Unstructured) result {
	u, err := p.Update(p.t.Context(), u, metav1.UpdateOptions{FieldManager: "updater"})
	return result{u, err}
}

func (p place) patch(name string, of types.PatchType, patch string, sub ...string) result {
	u, err := p.Patch(p.t.Context(), name, of, []byte(patch), metav1.PatchOptions{FieldManager: "patcher"}, sub...)
	return result{u, err}
}

func (p place) apply(name, body string, force bool) result {
	full := `{"apiVersion":"otc.mcsps.de/v1alpha1","kind":"Rds","metadata":{"name":"` + name + `"},` + body[1:]
	u, err := p.Patch(p.t.Context(), name, types.ApplyPatchType, []byte(full), metav1.PatchOptions{FieldManager: "applier", Force: &force})
	return result{u, err}
}

func (p place) delete(name string, o metav1.DeleteOptions) result {
	return result{err: p.Delete(p.t.Context(), name, o)}
}

func (p place) watch(o metav1.ListOptions) watch.Interface {
	p.t.Helper()
	w, err := p.Watch(p.t.Context(), o)
	p.must(err)
	return w
}

// events writes down the next n events.
func (s *script) events(w watch.Interface, n int) {
	s.t.Helper()
	defer w.Stop()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for range n {
		select {
		case e := <-w.ResultChan():
			u, _ := e.Object.(*unstructured.Unstructured)
			if e.Type == watch.Bookmark {
				s.note(fmt.Sprint(e.Type, " ", u.GetAnnotations()), result{})
				continue
			}
			s.note(string(e.Type), result{object: u})
		case <-ctx.Done():
			s.t.Fatal("waited for an event in vain")
		}
	}
}

// metadataAlone asks for the metadata of objects.
type metadataAlone struct{ next http.RoundTripper }

func (m metadataAlone) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
	return m.next.RoundTrip(r)
}

func version(r result) string { return r.object.GetResourceVersion() }

// managers are who wrote which fields of the spec.
func managers(r result) result {
	var lines []string
	for _, e := range r.object.GetManagedFields() {
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
	return result{err: errors.New(strings.Join(lines, "; "))}
}

func cmpUID(a, b result) error {
	return fmt.Errorf("another uid: %v", a.object.GetUID() != b.object.GetUID() && a.object.GetUID()[:8] != b.object.GetUID()[:8])
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
