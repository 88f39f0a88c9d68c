// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"encoding/json"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

const weekNamespace = "week"

// weekKube is the week's Kubernetes as people and tools beside the service use it.
type weekKube struct {
	*simkube.Server
	fleet *fleet

	mu      sync.Mutex
	patched func(weekPatch)               // is called with every patch of an Rds that the service makes
	admit   func(old, patched *otcv1.Rds) // what an admission makes of such a patch
	intents map[string]v1alpha1.Intent    // the pending ones, as they were stored
}

// weekPatch is a patch of an Rds that was applied.
type weekPatch struct {
	rds      *otcv1.Rds // as it was
	volumeGB int        // 0: the flavor is patched
	flavor   string
	intent   v1alpha1.Intent // as it was stored by then
}

func newWeekKube(f *fleet, patched func(weekPatch)) *weekKube {
	k := &weekKube{Server: f.kube, fleet: f, patched: patched, intents: map[string]v1alpha1.Intent{}}
	k.SetAdmit(k.overhear)
	return k
}

// overhear sees every write.
func (k *weekKube) overhear(w simkube.Write) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case w.New.GetKind() == v1alpha1.Kind && w.Subresource == "status":
		a := as[v1alpha1.RdsAutopilot](k.fleet, w.New)
		delete(k.intents, a.Name)
		if a.Status.Pending != nil {
			k.intents[a.Name] = *a.Status.Pending
		}
	case w.New.GetKind() == otcv1.Kind && w.Manager == "rds-autopilot" && w.Old != nil:
		old, next := as[otcv1.Rds](k.fleet, w.Old), as[otcv1.Rds](k.fleet, w.New)
		p := weekPatch{rds: old, intent: k.intents[old.Name]}
		if next.Spec.FlavorRef != old.Spec.FlavorRef {
			p.flavor = next.Spec.FlavorRef
		} else {
			p.volumeGB = int(next.Spec.VolumeSize)
		}
		if k.admit != nil {
			k.admit(old, next)
			spec := content(k.fleet, next)["spec"].(map[string]any)
			for _, field := range []string{"flavorref", "volumesize"} {
				w.New.Object["spec"].(map[string]any)[field] = spec[field]
			}
		}
		k.patched(p)
	}
	return nil
}

// as is an object as one of our types.
func as[T any](f *fleet, u *unstructured.Unstructured) *T {
	f.t.Helper()
	typed := new(T)
	f.must(runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed))
	return typed
}

func content(f *fleet, object any) map[string]any {
	f.t.Helper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	f.must(err)
	return u
}

// create makes an RdsAutopilot with a policy of its own.
func (k *weekKube) create(name string, policy func(*v1alpha1.Spec)) {
	k.fleet.t.Helper()
	a := v1alpha1.RdsAutopilot{Spec: autopilot.DefaultSpec()}
	policy(&a.Spec)
	spec, err := json.Marshal(a.Spec)
	k.fleet.must(err)
	k.fleet.own(weekNamespace, name, string(spec))
}

// changeRds is a write of somebody else: of the operator or of a person.
func (k *weekKube) changeRds(name string, change func(*otcv1.Rds)) {
	k.fleet.t.Helper()
	in, ctx := k.fleet.rdss(weekNamespace), k.fleet.t.Context()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := in.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		rds := as[otcv1.Rds](k.fleet, live)
		change(rds)
		changed := content(k.fleet, rds)
		live.Object["spec"], live.Object["status"] = changed["spec"], changed["status"]
		_, err = in.Update(ctx, live, metav1.UpdateOptions{FieldManager: "somebody"})
		return err
	})
	if ctx.Err() == nil { // else the test is over
		k.fleet.must(err)
	}
}

func (k *weekKube) liveRds() (all []*otcv1.Rds) {
	list, err := k.fleet.rdss(weekNamespace).List(k.fleet.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil // the test is over
	}
	for i := range list.Items {
		all = append(all, as[otcv1.Rds](k.fleet, &list.Items[i]))
	}
	return all
}

func (k *weekKube) Autopilots() (all []*v1alpha1.RdsAutopilot) {
	found := k.fleet.autopilots()
	for i := range found {
		all = append(all, &found[i])
	}
	return all
}
