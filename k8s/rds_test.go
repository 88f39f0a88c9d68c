package k8s_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/k8s"
)

func TestPatchesTouchNothingButTheirField(t *testing.T) {
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	rds := createRds(t, c, ns, "shop")
	before := stored(t, ns, "shop")

	if err := c.PatchVolumeSize(t.Context(), ns, "shop", rds.UID, 40, 50); err != nil {
		t.Fatal(err)
	}
	if err := c.PatchFlavorRef(t.Context(), ns, "shop", rds.UID, "rds.mysql.c2.medium", "rds.mysql.c2.large"); err != nil {
		t.Fatal(err)
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
	errRefused := errors.New("any other error")
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	rds := createRds(t, c, ns, "shop")

	volume := func(name string, uid types.UID, from, to int32) func() error {
		return func() error { return c.PatchVolumeSize(t.Context(), ns, name, uid, from, to) }
	}
	flavor := func(name string, uid types.UID, from, to string) func() error {
		return func() error { return c.PatchFlavorRef(t.Context(), ns, name, uid, from, to) }
	}
	for _, tc := range []struct {
		name  string
		patch func() error
		want  error
	}{
		{"another size", volume("shop", rds.UID, 60, 70), k8s.ErrChanged},
		{"another flavor", flavor("shop", rds.UID, "rds.mysql.c2.small", "rds.mysql.c2.large"), k8s.ErrChanged},
		{"another object of that name, size", volume("shop", "someone-else", 40, 50), k8s.ErrChanged},
		{"another object of that name, flavor", flavor("shop", "someone-else", "rds.mysql.c2.medium", "rds.mysql.c2.large"), k8s.ErrChanged},
		{"a size that the schema refuses", volume("shop", rds.UID, 40, 4010), errRefused},
		{"no such object", volume("nobody", rds.UID, 40, 50), k8s.ErrGone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := stored(t, ns, "shop").GetResourceVersion()
			err := tc.patch()
			if errors.Is(tc.want, errRefused) {
				if err == nil || errors.Is(err, k8s.ErrChanged) || !strings.Contains(err.Error(), "4010") {
					t.Errorf("error is %v", err)
				}
			} else if !errors.Is(err, tc.want) {
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
