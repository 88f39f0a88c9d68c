// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simkube "github.com/mcsps/rds-autopilot/test/sim/kube"
)

const (
	small = "rds.mysql.n1.large.2"
	large = "rds.mysql.n1.xlarge.2"
)

// world is an operator with one Rds on Kubernetes in memory, and with its instance in a simulated cloud.
type world struct {
	t          *testing.T
	cloud      *simcloud.Cloud
	operator   *Operator
	rdss       dynamic.ResourceInterface
	instanceID string
	hours      atomic.Int64 // that have passed in the cloud
}

// newWorld returns a world whose Rds has this spec. Its instance has the flavor small.
func newWorld(t *testing.T, spec string, volumeGB int) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	now := func() time.Time { return begin.Add(time.Duration(w.hours.Load()) * time.Hour) }
	var err error
	w.cloud, err = simcloud.Start(simcloud.Options{Now: now})
	must(err)
	t.Cleanup(func() { must(w.cloud.Close()) })
	in, err := w.cloud.AddInstance(simcloud.Instance{Name: "db", Flavor: small, VolumeGB: volumeGB})
	must(err)
	w.instanceID = in.ID
	connection, err := Connect(w.cloud.Env(), nil)
	must(err)
	kube, err := simkube.New(simkube.Options{CRDs: []string{"../../../deploy/crds/rds.yaml"}})
	must(err)
	w.operator, err = New(Options{Config: kube.Config(), Cloud: connection})
	must(err)
	w.rdss = w.operator.client.Resource(Resource()).Namespace(metav1.NamespaceDefault)
	body, err := yaml.YAMLToJSON([]byte("{apiVersion: otc.mcsps.de/v1alpha1, kind: Rds, metadata: {name: db}, spec: " + spec + "}"))
	must(err)
	rds := &unstructured.Unstructured{}
	must(rds.UnmarshalJSON(body))
	_, err = w.rdss.Create(t.Context(), rds, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	must(err)
	return w
}

func (w *world) object() *unstructured.Unstructured {
	w.t.Helper()
	u, err := w.rdss.Get(w.t.Context(), "db", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return u
}

func (w *world) snapshot() *Rds {
	w.t.Helper()
	rds, err := snapshot(w.object())
	if err != nil {
		w.t.Fatal(err)
	}
	return rds
}

// apply applies a snapshot, checks whether the operator would retry it, and lets an hour pass, so that jobs end.
func (w *world) apply(snap *Rds, wantRetry bool) {
	w.t.Helper()
	if err := w.operator.apply(w.t.Context(), snap); (err != nil) != wantRetry {
		w.t.Fatalf("error %v, want one: %t", err, wantRetry)
	}
	w.hours.Add(1)
}

func (w *world) instance() simcloud.Instance {
	in, _ := w.cloud.Instance(w.instanceID)
	return in
}

func (w *world) setStatus(status string) {
	w.t.Helper()
	if err := w.cloud.ChangeInstance(w.instanceID, func(in *simcloud.Instance) { in.Status = status }); err != nil {
		w.t.Fatal(err)
	}
}

// The archived operator applies an old flavor again after a newer one, because it retries the snapshot as it was taken.
func TestOperatorRetriesASnapshotWithItsOldSpec(t *testing.T) {
	w := newWorld(t, "{flavorref: "+small+", volumesize: 100}", 100)
	w.setStatus("BACKING UP")
	old := w.snapshot()
	w.apply(old, true)
	w.setStatus("ACTIVE")
	patch := []byte(`{"spec":{"flavorref":"` + large + `"}}`)
	if _, err := w.rdss.Patch(t.Context(), "db", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.apply(w.snapshot(), false)
	if flavor := w.instance().Flavor; flavor != large {
		t.Fatalf("the new spec led to %s", flavor)
	}
	w.apply(old, false)
	if flavor := w.instance().Flavor; flavor != small {
		t.Errorf("the old snapshot led to %s, want %s", flavor, small)
	}
	if flavor := w.snapshot().Spec.FlavorRef; flavor != large {
		t.Errorf("the old snapshot has overwritten spec.flavorref: %s", flavor)
	}
}
