// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
	"github.com/mcsps/rds-autopilot/test/world/faults"
)

const (
	quarrelSpan = 90 * time.Second // of the wall clock, from the first patch of a database on
	refusal     = "storage is frozen until the audit is over"
)

// restorePolicy puts the old values back inside the API server: the patch is answered 200, and no watch hears of it.
const restorePolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: restore}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [otc.mcsps.de], apiVersions: [v1alpha1], operations: [UPDATE], resources: [rdss]}]
  matchConditions: [{name: one, expression: "request.name.endsWith('-restored')"}]
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "replace", path: "/spec/volumesize", value: oldObject.spec.volumesize},
        JSONPatch{op: "replace", path: "/spec/flavorref", value: oldObject.spec.flavorref}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: restore}
spec: {policyName: restore}
`

// freezePolicy refuses to grow one database.
const freezePolicy = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: freeze}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [otc.mcsps.de], apiVersions: [v1alpha1], operations: [UPDATE], resources: [rdss]}]
  matchConditions: [{name: one, expression: "request.name == 'refused'"}]
  validations: [{expression: "object.spec.volumesize == oldObject.spec.volumesize", message: "` + refusal + `"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: freeze}
spec: {policyName: freeze, validationActions: [Deny]}
`

// hostile is a world in which others undo, or refuse, what the service patches. Databases are told apart by their names.
type hostile struct {
	*world.World
	t      *testing.T
	client dynamic.Interface
	dbs    map[string]*world.DB

	mu       sync.Mutex
	asked    map[string][]ask                    // what the service asked the API server for, by database
	versions map[string][]*v1alpha1.RdsAutopilot // all that were there, by database
	before   map[string]func()                   // the first patch of a database reaches the API server
}

// ask is one patch of an Rds and its answer.
type ask struct {
	at     time.Time
	status int
}

func (a ask) String() string { return a.at.Format("15:04:05.0 ") + strconv.Itoa(a.status) }

// The real binary on a real API server, beside people, tools and policies that want it otherwise. All of it at once, for
// the times are those of the wall clock.
func TestPatchesThatOthersRevertOrReject(t *testing.T) {
	h := newHostile(t)
	p := h.MustServe(t)
	ctx := world.Within(t)
	loads := map[string]simcloud.Workload{
		"size-reset": {UsedGB: 91}, "nearly-reset": {UsedGB: 94}, "size-restored": {UsedGB: 91}, "nearly-restored": {UsedGB: 94},
		"flavor-reset": {UsedGB: 10, CPUDemand: 2}, "flavor-restored": {UsedGB: 10, CPUDemand: 2},
		"refused": {UsedGB: 91}, "exchanged": {UsedGB: 91},
	}
	for name := range loads {
		h.dbs[name] = h.MustAdd(t, world.Database{Name: name, Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	}
	for _, db := range h.dbs {
		if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
			t.Fatal(err)
		}
		if err := db.PatchAutopilot(ctx, quick); err != nil {
			t.Fatal(err)
		}
	}
	h.Operator.Pause() // it would apply what it sees, for as long as it is there
	h.policies(ctx)
	for _, name := range []string{"size-reset", "nearly-reset", "flavor-reset"} {
		h.takeBack(name)
	}
	for name := range loads {
		h.watch(name)
	}
	h.mu.Lock()
	h.before["exchanged"] = func() {
		if err := h.dbs["exchanged"].PatchRds(ctx, `{"status":{"id":"`+strings.Repeat("0", 32)+`in01"}}`); err != nil {
			t.Error(err)
		}
	}
	h.mu.Unlock()
	for name, load := range loads {
		if err := h.dbs[name].SetWorkload(load); err != nil {
			t.Fatal(err)
		}
	}
	h.waitAsked(ctx, "refused")
	h.checkRefused(ctx)
	h.delete("validatingadmissionpolicybindings", "freeze")
	last := time.Time{}
	for name := range loads {
		if at := h.waitAsked(ctx, name); at.After(last) {
			last = at
		}
	}
	time.Sleep(time.Until(last.Add(quarrelSpan)))

	for _, tc := range []struct {
		name  string
		least int // patches in all, however long that takes on this machine
		most  int // patches in the span
	}{
		{"size-reset", 1, 4}, {"nearly-reset", 3, 4}, {"size-restored", 1, 4}, {"nearly-restored", 3, 4}, {"flavor-reset", 1, 2}, {"flavor-restored", 1, 2},
	} {
		t.Run(tc.name, func(t *testing.T) { h.checkQuarrel(t, tc.name, tc.least, tc.most) })
	}
	t.Run("refused, and then allowed", h.checkAllowed)
	t.Run("another instance while the patch is on its way", func(t *testing.T) {
		asked := h.askedFor("exchanged")
		if len(asked) != 1 || asked[0].status < 400 {
			t.Errorf("the patches and their answers are %v, want one that is refused: status.id changed before it came", asked)
		}
	})
	metrics, err := p.Metrics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Three that were taken back after they had been there, and the one that was allowed in the end.
	if n := metrics.Sum("rds_autopilot_alarm_to_patch_seconds_count"); n != 4 {
		t.Errorf("alarm_to_patch_seconds was observed %v times, want 4", n)
	}
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	level.Long(t)
	t.Parallel()
	h := &hostile{
		t: t, dbs: map[string]*world.DB{}, asked: map[string][]ask{}, versions: map[string][]*v1alpha1.RdsAutopilot{}, before: map[string]func(){},
	}
	h.World = shared.StartAlone(t, world.Options{Race: true, Kube: faults.Hooks{
		Fault: func(r *http.Request) *simcloud.Fault {
			if faults.KubeName(r) == "patch rdss" {
				h.mu.Lock()
				name := path.Base(r.URL.Path)
				before := h.before[name]
				delete(h.before, name)
				h.mu.Unlock()
				if before != nil {
					before()
				}
			}
			return nil
		},
		Answered: func(r *http.Request, body []byte, status int) {
			if faults.KubeName(r) == "patch rdss" && bytes.Contains(body, []byte("/spec/")) {
				h.mu.Lock()
				defer h.mu.Unlock()
				name := path.Base(r.URL.Path)
				h.asked[name] = append(h.asked[name], ask{time.Now(), status})
			}
		},
	}})
	var err error
	if h.client, err = dynamic.NewForConfig(h.Kube.Config()); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hostile) rdss() dynamic.ResourceInterface {
	return h.client.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(metav1.NamespaceDefault)
}

// policies puts both policies into force.
func (h *hostile) policies(ctx context.Context) {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "policies.yaml")
	if err := os.WriteFile(file, []byte(restorePolicy+"---"+freezePolicy), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := h.Apply(ctx, file); err != nil {
		h.t.Fatal(err)
	}
	for name, inForce := range map[string]func(*unstructured.Unstructured, error) bool{
		"size-restored": func(u *unstructured.Unstructured, err error) bool {
			size, _, _ := unstructured.NestedInt64(u.Object, "spec", "volumesize")
			return err == nil && size == 100
		},
		"refused": func(_ *unstructured.Unstructured, err error) bool {
			return err != nil && strings.Contains(err.Error(), refusal)
		},
	} {
		err := world.Eventually(ctx, "the policy for "+name+" is in force", func(ctx context.Context) (bool, error) {
			u, err := h.rdss().Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"volumesize":110}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return inForce(u, err), nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *hostile) delete(resource, name string) {
	h.t.Helper()
	if err := h.client.Resource(admissionv1.SchemeGroupVersion.WithResource(resource)).Delete(h.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// takeBack is a tool that puts size and flavor back in the instant in which it hears of another one.
func (h *hostile) takeBack(name string) {
	db := h.dbs[name]
	go db.WatchRds(h.t.Context(), func(rds *otcv1.Rds) {
		if rds.Spec.VolumeSize != 100 || rds.Spec.FlavorRef != "rds.mysql.n1.large.4" {
			_ = db.PatchRds(h.t.Context(), `{"spec":{"volumesize":100,"flavorref":"rds.mysql.n1.large.4"}}`) // fails only at the end
		}
	})
}

// watch keeps every version of an RdsAutopilot.
func (h *hostile) watch(name string) {
	h.t.Helper()
	in := h.client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(metav1.NamespaceDefault)
	versions, err := in.Watch(h.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(versions.Stop)
	go func() {
		for e := range versions.ResultChan() {
			u, ok := e.Object.(*unstructured.Unstructured)
			a := &v1alpha1.RdsAutopilot{}
			if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, a) != nil {
				continue
			}
			h.mu.Lock()
			h.versions[name] = append(h.versions[name], a)
			h.mu.Unlock()
		}
	}()
}

func (h *hostile) askedFor(name string) []ask {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked[name])
}

func (h *hostile) seen(name string) []*v1alpha1.RdsAutopilot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.versions[name])
}

// waitAsked returns when the service first asked for a change of a database.
func (h *hostile) waitAsked(ctx context.Context, name string) (first time.Time) {
	h.t.Helper()
	err := world.Eventually(ctx, name+" is patched", func(context.Context) (bool, error) {
		asked := h.askedFor(name)
		if len(asked) > 0 {
			first = asked[0].at
		}
		return len(asked) > 0, nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return first
}

// events on the objects of a name.
func (h *hostile) events(t *testing.T, name string) []eventsv1.Event {
	t.Helper()
	client, err := kubernetes.NewForConfig(h.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name != name })
}

func hasEvent(events []eventsv1.Event, kind, reason, words string) bool {
	return slices.ContainsFunc(events, func(e eventsv1.Event) bool {
		return e.Type == kind && e.Reason == reason && strings.Contains(e.Note, words)
	})
}

func hasRecord(a *v1alpha1.RdsAutopilot, reason, words string) bool {
	return slices.ContainsFunc(a.Status.Decisions, func(d v1alpha1.DecisionRecord) bool {
		return d.Reason == reason && strings.Contains(d.Message, words)
	})
}

// checkRefused: while it is refused, nothing says that it was done.
func (h *hostile) checkRefused(ctx context.Context) {
	t := h.t
	t.Helper()
	const name = "refused"
	_, err := h.dbs[name].WaitAutopilot(ctx, "a record says Refused with the API server's words", func(a *v1alpha1.RdsAutopilot) bool {
		return hasRecord(a, "Refused", refusal)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = world.Eventually(ctx, "a Warning says so too", func(context.Context) (bool, error) {
		return hasEvent(h.events(t, name), "Warning", "Refused", refusal), nil
	})
	if err != nil {
		t.Error(err)
	}
	if asked := h.askedFor(name); slices.ContainsFunc(asked, func(a ask) bool { return a.status < 400 }) {
		t.Errorf("%s: asked %v, and not refused each time", name, asked)
	}
	for _, a := range h.seen(name) {
		if meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionProgressing) {
			t.Errorf("%s: Progressing is True at version %s, though nothing was accepted: %+v", name, a.ResourceVersion, a.Status.Conditions)
			break
		}
	}
	for _, a := range h.seen(name) {
		if hasRecord(a, "AlarmInForce", "") {
			t.Errorf("%s: a record tells of a change at version %s, though nothing was accepted: %+v", name, a.ResourceVersion, a.Status.Decisions)
			break
		}
	}
	if hasEvent(h.events(t, name), "Normal", "GrowVolume", "") {
		t.Errorf("%s: an event tells of GrowVolume, though nothing was accepted", name)
	}
}

// checkAllowed: once the policy is gone it is grown, once.
func (h *hostile) checkAllowed(t *testing.T) {
	const name = "refused"
	ctx, db := t.Context(), h.dbs[name]
	accepted := slices.DeleteFunc(h.askedFor(name), func(a ask) bool { return a.status >= 400 })
	rds, err := db.Rds(ctx)
	if err != nil || len(accepted) != 1 || rds.Spec.VolumeSize != 110 {
		t.Fatalf("%v: %d patches are accepted, and spec.volumesize is %d; want one to 110", err, len(accepted), rds.Spec.VolumeSize)
	}
	if !hasEvent(h.events(t, name), "Normal", "GrowVolume", "110") {
		t.Error("no event tells of GrowVolume")
	}
	if err := h.Cloud.ChangeInstance(db.ID, func(in *simcloud.Instance) { in.VolumeGB = 110 }); err != nil {
		t.Fatal(err)
	}
	a, err := db.WaitAutopilot(ctx, "it is completed", func(a *v1alpha1.RdsAutopilot) bool { return len(a.Status.Changes) > 0 && a.Status.Pending == nil })
	if err != nil {
		t.Fatal(err)
	}
	if ch := a.Status.Changes; len(ch) != 1 || ch[0].By != v1alpha1.ByAutopilot || ch[0].Outcome != v1alpha1.OutcomeCompleted {
		t.Errorf("the changes are %+v, want one of ours, completed", ch)
	}
}

// checkQuarrel: it is asked for a few times, and an event names the writer that does not want it.
func (h *hostile) checkQuarrel(t *testing.T, name string, least, most int) {
	err := world.Eventually(world.Within(t), fmt.Sprintf("it is patched %d times", least), func(context.Context) (bool, error) {
		return len(h.askedFor(name)) >= least, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := h.askedFor(name)
	n := len(slices.DeleteFunc(slices.Clone(asked), func(a ask) bool { return a.at.Sub(asked[0].at) > quarrelSpan }))
	if n > most {
		t.Errorf("patched %d times in %v, want at most %d", n, quarrelSpan, most)
	}
	a, err := h.dbs[name].WaitAutopilot(world.Within(t), "Contested is True", func(a *v1alpha1.RdsAutopilot) bool {
		return meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionContested)
	})
	if err != nil {
		t.Fatal(err)
	}
	events := h.events(t, name)
	if !hasEvent(events, "Warning", "Contested", "") {
		t.Error("no Warning says Contested")
	}
	if strings.HasSuffix(name, "-restored") && (hasEvent(events, "Normal", "GrowVolume", "") || hasEvent(events, "Normal", "ChangeFlavor", "")) {
		t.Error("an event tells of a change that the API server never made")
	}
	if len(a.Status.Decisions) > 10 { // of 20, before the others are flooded out
		t.Errorf("%d records of one quarrel: %+v", len(a.Status.Decisions), a.Status.Decisions)
	}
}
