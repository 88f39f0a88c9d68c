package k8s_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mcsps/rds-autopilot/k8s"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

func TestPatchesTouchNothingButTheirField(t *testing.T) {
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	rds := createRds(t, c, ns, "shop")
	before := stored(t, ns, "shop")

	if stored, err := c.PatchVolumeSize(t.Context(), rds, 50); err != nil || stored.Spec.VolumeSize != 50 {
		t.Fatal(stored, err)
	}
	if stored, err := c.PatchFlavorRef(t.Context(), rds, "rds.mysql.c2.large"); err != nil || stored.Spec.FlavorRef != "rds.mysql.c2.large" {
		t.Fatal(stored, err)
	}

	after := stored(t, ns, "shop")
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

func TestPatchIsForWhatWasDecidedOn(t *testing.T) {
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	rds := createRds(t, c, ns, "shop")

	read := func(alter func(*otcv1.Rds)) *otcv1.Rds {
		was := rds.DeepCopy()
		alter(was)
		return was
	}
	volume := func(to int32, alter func(*otcv1.Rds)) func() error {
		return func() error { _, err := c.PatchVolumeSize(t.Context(), read(alter), to); return err }
	}
	flavor := func(alter func(*otcv1.Rds)) func() error {
		return func() error { _, err := c.PatchFlavorRef(t.Context(), read(alter), "rds.mysql.c2.large"); return err }
	}
	another := func(was *otcv1.Rds) { was.UID = "someone-else" }
	anotherInstance := func(was *otcv1.Rds) { was.Status.ID = "instance-of-before" }
	for _, tc := range []struct {
		name  string
		patch func() error
		want  error
	}{
		{"another size", volume(70, func(was *otcv1.Rds) { was.Spec.VolumeSize = 60 }), k8s.ErrChanged},
		{"another flavor", flavor(func(was *otcv1.Rds) { was.Spec.FlavorRef = "rds.mysql.c2.small" }), k8s.ErrChanged},
		{"another object of that name, size", volume(50, another), k8s.ErrChanged},
		{"another object of that name, flavor", flavor(another), k8s.ErrChanged},
		{"another instance, size", volume(50, anotherInstance), k8s.ErrChanged},
		{"another instance, flavor", flavor(anotherInstance), k8s.ErrChanged},
		{"a size that the schema refuses", volume(4010, func(*otcv1.Rds) {}), k8s.ErrRefused},
		{"no such object", volume(50, func(was *otcv1.Rds) { was.Name = "nobody" }), k8s.ErrGone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := stored(t, ns, "shop").GetResourceVersion()
			err := tc.patch()
			if !errors.Is(err, tc.want) {
				t.Errorf("error is %v, not %v", err, tc.want)
			}
			if after := stored(t, ns, "shop").GetResourceVersion(); after != before {
				t.Error("it was written")
			}
		})
	}
}

func TestReadingAnRdsLeavesItsSecretsBehind(t *testing.T) {
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	rds := createRds(t, c, ns, "shop")
	if text := encoded(t, rds); strings.Contains(text, secret) {
		t.Errorf("holds a password: %s", text)
	}
	if rds.Spec.VolumeSize != 40 || rds.Spec.Autopilot == nil || !*rds.Spec.Autopilot || rds.Status.ID != "instance-shop" ||
		rds.Annotations["autopilot.otc.mcsps.de/note"] != "ours" {
		t.Errorf("read %s", encoded(t, rds))
	}
	if _, err := c.GetRds(t.Context(), ns, "nobody"); !errors.Is(err, k8s.ErrGone) {
		t.Errorf("no such Rds: %v", err)
	}
}

func TestClusterIDIsThatOfKubeSystem(t *testing.T) {
	id, err := connect(t).ClusterID(t.Context())
	if err != nil || len(id) != 36 {
		t.Errorf("got %q, %v", id, err)
	}
}

func stored(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := rdss(t, namespace).Get(t.Context(), name, metav1.GetOptions{})
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
