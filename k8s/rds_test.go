// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mcsps/rds-autopilot/autopilot"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestPatchesTouchNothingButTheirField(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	c := k.connect(t)
	rds := k.createRds(t, c, "shop")
	before := k.stored(t, "shop")

	if read, err := c.PatchRds(t.Context(), rds, toSize(50)); err != nil || read.Wanted.VolumeGB != 50 {
		t.Fatal(read, err)
	}
	if read, err := c.PatchRds(t.Context(), rds, toFlavor("rds.mysql.c2.large")); err != nil || read.Wanted.Flavor != "rds.mysql.c2.large" {
		t.Fatal(read, err)
	}

	after := k.stored(t, "shop")
	ours := map[string]bool{}
	for _, entry := range after.GetManagedFields() {
		if entry.Manager == "rds-autopilot" {
			ours[entry.FieldsV1.GetRawString()] = true
		}
	}
	if want := map[string]bool{`{"f:spec":{"f:flavorref":{},"f:volumesize":{}}}`: true}; !cmp.Equal(want, ours) {
		t.Errorf("field manager rds-autopilot owns %v", ours)
	}

	for path, value := range map[string]any{"volumesize": int64(50), "flavorref": "rds.mysql.c2.large"} {
		if err := unstructured.SetNestedField(before.Object, value, "spec", path); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []*unstructured.Unstructured{before, after} {
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
		o.SetGeneration(0)
	}
	if diff := cmp.Diff(before.Object, after.Object); diff != "" {
		t.Errorf("something else changed (-want +got):\n%s", diff)
	}
}

func TestPatchRdsReturnsConflictWhenTheRdsHasChanged(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	c := k.connect(t)
	rds := k.createRds(t, c, "shop")
	size, flavor := toSize(70), toFlavor("rds.mysql.c2.large")
	anotherObject := func(read *autopilot.Target) { read.UID = "someone-else" }
	anotherInstance := func(read *autopilot.Target) { read.InstanceID = "instance-of-before" }
	for name, tc := range map[string]struct {
		intent autopilotv1.Change
		alter  func(read *autopilot.Target)
		want   error
	}{
		"another size":                      {size, func(read *autopilot.Target) { read.Wanted.VolumeGB = 60 }, autopilot.ErrConflict},
		"another flavor":                    {flavor, func(read *autopilot.Target) { read.Wanted.Flavor = "rds.mysql.c2.small" }, autopilot.ErrConflict},
		"another object of that name, size": {size, anotherObject, autopilot.ErrConflict},
		"another instance, size":            {size, anotherInstance, autopilot.ErrConflict},
		"no such object":                    {size, func(read *autopilot.Target) { read.Name = "nobody" }, autopilot.ErrGone},
	} {
		before := k.stored(t, "shop").GetResourceVersion()
		read := *rds
		tc.alter(&read)
		if _, err := c.PatchRds(t.Context(), &read, tc.intent); !errors.Is(err, tc.want) {
			t.Errorf("%s: error is %v, want %v", name, err, tc.want)
		}
		if after := k.stored(t, "shop").GetResourceVersion(); after != before {
			t.Errorf("%s: it was written", name)
		}
	}
}

// Only a real API server checks values. Its refusal has the same status code as a failed test of a JSON patch.
func TestPatchRdsReturnsARefusalWhenTheSchemaRefusesTheSize(t *testing.T) {
	t.Parallel()
	k := realKube(t)
	c := k.connect(t)
	_, err := c.PatchRds(t.Context(), k.createRds(t, c, "shop"), toSize(4010))
	if refusal, ok := errors.AsType[*autopilot.RefusedError](err); !ok || !strings.Contains(refusal.Message, "spec.volumesize") {
		t.Errorf("error is %v", err)
	}
}

func TestClusterIDIsTheUIDOfTheSystemNamespace(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	object, err := k.as(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := k.connect(t).ClusterID(t.Context()); err != nil || got != string(object.GetUID()) {
		t.Errorf("got %q, %v, want the uid of kube-system, %s", got, err, object.GetUID())
	}
}

func toSize(gb int) autopilotv1.Change {
	return autopilotv1.Change{Kind: autopilotv1.KindVolume, To: strconv.Itoa(gb)}
}

func toFlavor(code string) autopilotv1.Change {
	return autopilotv1.Change{Kind: autopilotv1.KindFlavor, To: code}
}

func (k kube) stored(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := k.rdss(t).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
