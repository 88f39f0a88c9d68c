// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

func TestPatchesTouchNothingButTheirField(t *testing.T) {
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	rds := createRds(t, c, ns, "shop")
	before := stored(t, ns, "shop")

	if stored, err := c.PatchRds(t.Context(), rds, toSize(50)); err != nil || stored.Wanted.VolumeGB != 50 {
		t.Fatal(stored, err)
	}
	if stored, err := c.PatchRds(t.Context(), rds, toFlavor("rds.mysql.c2.large")); err != nil || stored.Wanted.Flavor != "rds.mysql.c2.large" {
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
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	rds := createRds(t, c, ns, "shop")

	large := toFlavor("rds.mysql.c2.large")
	same := func(*autopilot.Target) {}
	another := func(was *autopilot.Target) { was.UID = "someone-else" }
	anotherInstance := func(was *autopilot.Target) { was.InstanceID = "instance-of-before" }
	for _, tc := range []struct {
		name   string
		intent autopilotv1.Intent
		alter  func(read *autopilot.Target)
		want   error // nil: a RefusedError
	}{
		{"another size", toSize(70), func(was *autopilot.Target) { was.Wanted.VolumeGB = 60 }, autopilot.ErrConflict},
		{"another flavor", large, func(was *autopilot.Target) { was.Wanted.Flavor = "rds.mysql.c2.small" }, autopilot.ErrConflict},
		{"another object of that name, size", toSize(50), another, autopilot.ErrConflict},
		{"another object of that name, flavor", large, another, autopilot.ErrConflict},
		{"another instance, size", toSize(50), anotherInstance, autopilot.ErrConflict},
		{"another instance, flavor", large, anotherInstance, autopilot.ErrConflict},
		{"a size that the schema refuses", toSize(4010), same, nil},
		{"no such object", toSize(50), func(was *autopilot.Target) { was.Name = "nobody" }, autopilot.ErrGone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := stored(t, ns, "shop").GetResourceVersion()
			read := *rds
			tc.alter(&read)
			_, err := c.PatchRds(t.Context(), &read, tc.intent)
			if refusal, ok := errors.AsType[*autopilot.RefusedError](err); ok != (tc.want == nil) {
				t.Errorf("error is %v", err)
			} else if ok && !strings.Contains(refusal.Message, "spec.volumesize") {
				t.Errorf("refused with %q", refusal.Message)
			} else if !ok && !errors.Is(err, tc.want) {
				t.Errorf("error is %v, not %v", err, tc.want)
			}
			if after := stored(t, ns, "shop").GetResourceVersion(); after != before {
				t.Error("it was written")
			}
		})
	}
}

func TestReadingAnRdsLeavesItsSecretsBehind(t *testing.T) {
	t.Parallel()
	c, ns := connect(t), shared.Cluster(t).Namespace(t)
	rds := createRds(t, c, ns, "shop")
	if text := encoded(t, rds); strings.Contains(text, secret) {
		t.Errorf("holds a password: %s", text)
	}
	if rds.Wanted.VolumeGB != 40 || rds.Switch != autopilotv1.SwitchOn || rds.InstanceID != "instance-shop" {
		t.Errorf("read %s", encoded(t, rds))
	}
	if _, err := c.LiveTarget(t.Context(), ns, "nobody"); !errors.Is(err, autopilot.ErrGone) {
		t.Errorf("no such Rds: %v", err)
	}
}

// TestClusterIDIsThatOfTheSystemNamespace also checks that the lease of the claims is there.
func TestClusterIDIsThatOfTheSystemNamespace(t *testing.T) {
	t.Parallel()
	id, err := connect(t).ClusterID(t.Context())
	if err != nil || len(id) != 36 {
		t.Errorf("got %q, %v", id, err)
	}
	ns := shared.Cluster(t).Namespace(t)
	c, err := k8s.Connect(t.Context(), shared.Cluster(t).Config(), k8s.Options{Version: "test", SystemNamespace: ns, Log: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kubernetes.NewForConfig(shared.Cluster(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	object, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.ClusterID(t.Context()); err != nil || got != string(object.UID) || got == id {
		t.Errorf("got %q, %v, want the uid of %s, %s", got, err, ns, object.UID)
	}
	if err := c.WithClaim(t.Context(), k8s.Claim{Release: ns + "/rds-autopilot", Namespaces: []string{ns}}, func(context.Context) {}); err != nil {
		t.Error(err)
	}
	if _, err := client.CoordinationV1().Leases(ns).Get(t.Context(), "rds-autopilot", metav1.GetOptions{}); err != nil {
		t.Errorf("the lease of the claims: %v", err)
	}
}

func toSize(gb int) autopilotv1.Intent {
	return autopilotv1.Intent{Kind: autopilotv1.KindVolume, To: strconv.Itoa(gb)}
}

func toFlavor(code string) autopilotv1.Intent {
	return autopilotv1.Intent{Kind: autopilotv1.KindFlavor, To: code}
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
