// SPDX-License-Identifier: Apache-2.0

package simoperator

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	acts       []Act
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
	w.operator, err = New(Options{
		Config: kube.Config(), Cloud: connection, Report: func(a Act) { w.acts = append(w.acts, a) },
	})
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

func TestTypesHaveEveryFieldOfTheArchivedCRD(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/testdata/rds-original.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Versions []struct {
			Schema struct {
				OpenAPIV3Schema struct {
					Properties map[string]struct {
						Properties map[string]struct{ Type string }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	values := map[string]any{
		"string": "x", "integer": int64(7), "boolean": true, "array": []any{"x"},
	}
	object := map[string]any{"metadata": map[string]any{"name": "x"}}
	for part, fields := range definition.Versions[0].Schema.OpenAPIV3Schema.Properties {
		filled := map[string]any{}
		for field, property := range fields.Properties {
			filled[field] = values[property.Type]
		}
		object[part] = filled
	}
	spec := object["spec"].(map[string]any)
	if len(spec) < 20 {
		t.Fatalf("the definition was not read: %v", spec)
	}
	spec["users"] = []any{map[string]any{"name": "n", "host": "h", "password": "p", "privileges": []any{"g"}}}
	rds, err := snapshot(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	written, err := rds.unstructured()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"spec", "status"} {
		if diff := cmp.Diff(object[part], written.Object[part]); diff != "" {
			t.Errorf("%s (-read +written):\n%s", part, diff)
		}
	}
}

func TestUpdateDropsUnknownFieldsAndIsMadeOnce(t *testing.T) {
	w := newWorld(t, "{autopilot: true, flavorref: "+small+", volumesize: 40, port: '3307', backupkeepdays: 0, databases: [a]}", 40)
	before := w.object()
	if _, has, _ := unstructured.NestedBool(before.Object, "spec", "autopilot"); !has {
		t.Fatal("the Rds lacks the field that the update should drop")
	}
	w.apply(w.snapshot(), false)
	after := w.snapshot()
	written := strings.Join([]string{after.Spec.FlavorRef, after.Spec.Port, after.Status.ID, after.Status.IP, after.Status.Status}, " ")
	if want := small + " 3307 " + w.instanceID + " 192.168.0.10 ACTIVE"; written != want {
		t.Errorf("written %q, want %q", written, want)
	}
	if _, has, _ := unstructured.NestedBool(w.object().Object, "spec", "autopilot"); has {
		t.Error("the update has kept spec.autopilot")
	}
	w.apply(w.snapshot(), false)
	if now := w.object().GetResourceVersion(); now != after.ResourceVersion {
		t.Error("an update without a difference was stored")
	}
}

func TestOperatorAppliesSpecChanges(t *testing.T) {
	const medium = "rds.mysql.n1.medium.2"
	for name, tc := range map[string]struct {
		flavor   string
		volumeGB string
		act      string // empty for none
		want     simcloud.Instance
		then     string // the flavor after a retry; empty if there is none
	}{
		"nothing new":                {small, "100", "", simcloud.Instance{Flavor: small, VolumeGB: 100}, ""},
		"larger volume":              {small, "110", Enlarge, simcloud.Instance{Flavor: small, VolumeGB: 110}, ""},
		"smaller volume":             {small, "90", "", simcloud.Instance{Flavor: small, VolumeGB: 100}, ""},
		"larger flavor":              {large, "100", Resize, simcloud.Instance{Flavor: large, VolumeGB: 100}, ""},
		"smaller flavor":             {medium, "100", Resize, simcloud.Instance{Flavor: medium, VolumeGB: 100}, ""},
		"larger volume, then flavor": {large, "110", Enlarge, simcloud.Instance{Flavor: small, VolumeGB: 110}, large},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "{flavorref: "+tc.flavor+", volumesize: "+tc.volumeGB+"}", 100)
			snap := w.snapshot()
			w.apply(snap, tc.then != "")
			act := ""
			if len(w.acts) > 0 {
				act = w.acts[0].What
			}
			if in := w.instance(); act != tc.act || in.Flavor != tc.want.Flavor || in.VolumeGB != tc.want.VolumeGB {
				t.Errorf("act %q, then %s and %d GB; want %q, %+v", act, in.Flavor, in.VolumeGB, tc.act, tc.want)
			}
			if tc.then == "" {
				return
			}
			w.apply(snap, false)
			if in := w.instance(); in.Flavor != tc.then {
				t.Errorf("the retry led to %s, want %s", in.Flavor, tc.then)
			}
		})
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
