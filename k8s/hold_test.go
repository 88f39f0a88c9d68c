// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s"
	"github.com/mcsps/rds-autopilot/test/apiserver"
)

// held is a connection with a hold, and the hold as others see it.
type held struct {
	t *testing.T
	kube
	*k8s.Cluster
	holds dynamic.ResourceInterface
	name  string
}

func newHeld(t *testing.T, k kube, log *zap.Logger) held {
	t.Helper()
	ns := cmp.Or(installation.namespace, k.namespace)
	h := held{t: t, kube: k, name: k8s.HoldName("rds-autopilot"),
		holds: k.as(t, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns)}
	c, err := k8s.Connect(t.Context(), k.service, k8s.Options{Version: "test", Namespaces: []string{k.namespace}, Log: log,
		Hold: types.NamespacedName{Namespace: ns, Name: h.name}})
	if err != nil {
		t.Fatal(err)
	}
	h.Cluster = c
	return h
}

func newHeldRefusing(t *testing.T, log *zap.Logger) (held, *refusing) {
	t.Helper()
	k := newKubeInMemory(t)
	api := &refusing{next: k.service.Transport}
	api.set(in(0))
	k.service.Transport = api
	return newHeld(t, k, log), api
}

func (h held) exists() bool {
	h.t.Helper()
	_, err := h.holds.Get(h.t.Context(), h.name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		h.t.Fatal(err)
	}
	return err == nil
}

func (h held) check(want bool, when string) {
	h.t.Helper()
	if got := h.exists(); got != want {
		h.t.Errorf("%s: the hold exists: %v", when, got)
	}
}

func (h held) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h held) setFinalizer(name string) {
	h.t.Helper()
	_, err := h.SetFinalizer(h.t.Context(), h.live(h.t, h.Cluster, name))
	h.must(err)
}

func (h held) removeFinalizer(name string) {
	h.must(h.RemoveFinalizer(h.t.Context(), h.live(h.t, h.Cluster, name)))
}

func TestHoldExistsWhileAnObjectHasTheFinalizer(t *testing.T) {
	t.Parallel()
	h := newHeld(t, newKube(t), zap.NewNop())
	run(t, h.Cluster)
	h.must(h.SyncHold(t.Context()))
	h.check(false, "without databases")
	h.createAutopilot(t, h.Cluster, "orders")
	h.check(true, "with one")
	h.createAutopilot(t, h.Cluster, "billing")
	h.removeFinalizer("orders")
	h.check(true, "with one of two")
	h.removeFinalizer("billing")
	h.check(false, "with none of two")
	h.setFinalizer("orders")
	h.check(true, "turned on again")
	if apiserver.Real() {
		_, err := h.holds.Patch(t.Context(), h.name, types.MergePatchType, []byte(`{"data":{"databases-need-the-service":"no"}}`), metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("changed by another: %v", err)
		}
	}

	h.must(h.holds.Delete(t.Context(), h.name, metav1.DeleteOptions{}))
	eventually(t, "a sync creates what a person has deleted", func() bool {
		h.must(h.SyncHold(t.Context()))
		return h.exists()
	})
	_, err := h.rdsAutopilots(t).Patch(t.Context(), "orders", types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`), metav1.PatchOptions{})
	h.must(err)
	eventually(t, "a sync deletes what no finalizer needs", func() bool {
		h.must(h.SyncHold(t.Context()))
		return !h.exists()
	})
}

// TestHoldStaysForAFinalizerThatIsBeingSet removes the only finalizer at the moment at which another one is stored.
func TestHoldStaysForAFinalizerThatIsBeingSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, api := newHeldRefusing(t, zap.NewNop())
		defer h.Close()
		orders := h.createAutopilot(t, h.Cluster, "orders")
		billing := h.createRds(t, h.Cluster, "billing")
		done := make(chan error, 1)
		api.set(func(r *http.Request) int {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/rdsautopilots") {
				go func() { done <- h.RemoveFinalizer(t.Context(), orders) }()
				synctest.Wait()
			}
			return 0
		})
		h.must(h.CreateAutopilot(t.Context(), billing))
		h.must(<-done)
		h.check(true, "billing has the finalizer")
	})
}

func TestFinalizersDoNotDependOnTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, log := observer.New(zap.WarnLevel)
		h, api := newHeldRefusing(t, zap.New(core))
		defer h.Close()
		api.set(in(http.StatusForbidden, "/configmaps"))
		h.createAutopilot(t, h.Cluster, "orders")
		api.set(in(http.StatusInternalServerError, "/configmaps"))
		h.createAutopilot(t, h.Cluster, "billing")
		api.set(in(http.StatusForbidden, "/configmaps"))
		h.createAutopilot(t, h.Cluster, "stock")
		h.removeFinalizer("stock")
		if n := log.FilterMessageSnippet("helm uninstall").Len(); n != 2 {
			t.Errorf("there are %d warnings, want one of the missing right and one of the failure: %v", n, log.All())
		}
		h.removeFinalizer("orders")

		api.set(in(0))
		h.setFinalizer("orders")
		h.removeFinalizer("billing")
		api.set(func(r *http.Request) int {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/rdsautopilots") {
				return http.StatusInternalServerError
			}
			return 0
		})
		h.removeFinalizer("orders")
		h.check(true, "while the API server lists nothing")
		api.set(in(0))
		h.must(h.SyncHold(t.Context()))
		h.check(false, "once it does")
	})
}
