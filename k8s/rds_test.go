// SPDX-License-Identifier: Apache-2.0

package k8s_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s"
	autopilotv1 "github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/apiserver"
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
		must(t, unstructured.SetNestedField(before.Object, value, "spec", path))
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

func toSize(gb int) autopilotv1.Change {
	return autopilotv1.Change{Kind: autopilotv1.KindVolume, To: strconv.Itoa(gb)}
}

func toFlavor(code string) autopilotv1.Change {
	return autopilotv1.Change{Kind: autopilotv1.KindFlavor, To: code}
}

func (k kube) stored(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := k.rdss(t).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	return o
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}

func TestCreatedAutopilotHasAnOwnerAndNoFinalizer(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	c := k.connect(t)
	k.createAutopilot(t, c, "shop")
	object, err := k.rdsAutopilots(t).Get(t.Context(), "shop", metav1.GetOptions{})
	must(t, err)
	a := k.live(t, c, "shop")
	rds, err := c.LiveTarget(t.Context(), k.namespace, "shop")
	must(t, err)
	no := false
	want := []metav1.OwnerReference{{
		APIVersion: "otc.mcsps.de/v1alpha1", Kind: "Rds", Name: "shop", UID: rds.UID, Controller: &no, BlockOwnerDeletion: &no,
	}}
	if diff := cmp.Diff(want, object.GetOwnerReferences()); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	if !cmp.Equal(object.GetLabels(), labels) {
		t.Errorf("labels %v", object.GetLabels())
	}
	if len(object.GetFinalizers()) > 0 {
		t.Errorf("its deletion would wait for %v", object.GetFinalizers())
	}
	if err := c.CreateAutopilot(t.Context(), rds); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if again := k.live(t, c, "shop"); again.UID != a.UID || again.ResourceVersion != a.ResourceVersion {
		t.Errorf("after the second time: %v", again)
	}
}

func intake(id string) autopilotv1.Intake {
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	return autopilotv1.Intake{Signals: []autopilotv1.Signal{{
		Metric: autopilotv1.MetricCPU, AlarmID: "al1", State: autopilotv1.StateAlarm, AlarmTime: now, MessageID: id, ReceivedTime: now,
	}}}
}

func TestLeaderAndReceiverWriteOnlyTheirPartOfTheStatus(t *testing.T) {
	t.Parallel()
	k := newKube(t)
	c := k.connect(t)
	a := k.createAutopilot(t, c, "shop")
	both := autopilotv1.Status{
		ObservedGeneration: 3, Instance: &autopilotv1.Instance{ID: "i", VolumeGB: 40, Zones: []string{"eu-de-01"}}, Intake: intake("m1"),
	}
	byLeader, err := c.WriteStatus(t.Context(), a, both)
	must(t, err)
	if _, err := c.WriteStatus(t.Context(), a, autopilotv1.Status{}); !errors.Is(err, autopilot.ErrConflict) {
		t.Errorf("the leader, with an old version: %v", err)
	}
	if err := c.WriteIntake(t.Context(), a, intake("m0")); !errors.Is(err, autopilot.ErrConflict) {
		t.Errorf("the receiver, with an old version: %v", err)
	}
	if byLeader.Status.ObservedGeneration != 3 || byLeader.Status.Instance.VolumeGB != 40 || byLeader.Status.Intake.Signals != nil {
		t.Errorf("leader wrote %s", encoded(t, byLeader.Status))
	}
	if diff := cmp.Diff(k.live(t, c, "shop"), byLeader, cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
		t.Errorf("what WriteStatus returns (-stored +returned):\n%s", diff)
	}
	must(t, c.WriteIntake(t.Context(), byLeader, both.Intake))
	byReceiver := k.live(t, c, "shop")
	if byReceiver.Status.ObservedGeneration != 3 || len(byReceiver.Status.Intake.Signals) != 1 {
		t.Errorf("receiver wrote %s", encoded(t, byReceiver.Status))
	}

	byLeader, err = c.WriteStatus(t.Context(), byReceiver, autopilotv1.Status{Instance: &autopilotv1.Instance{ID: "i"}})
	must(t, err)
	want := autopilotv1.Status{Instance: &autopilotv1.Instance{ID: "i"}, Intake: byReceiver.Status.Intake}
	if diff := cmp.Diff(want, byLeader.Status, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("removed fields (-want +got):\n%s", diff)
	}
	same, err := c.WriteStatus(t.Context(), byLeader, byLeader.Status)
	if err != nil || same != byLeader { // the object that was read, because nothing was sent
		t.Errorf("nothing to write: %v, %v", err, same)
	}
}

// An older CRD would drop an intent that it does not know, and then nobody could repeat the change after a crash.
func TestWriteStatusReturnsAnErrorWhenAnOlderCRDLacksTheField(t *testing.T) {
	t.Parallel()
	cluster := apiserver.Own(t, apiserver.Options{CRDs: crds})
	c, err := k8s.Connect(t.Context(), cluster.Config(), k8s.Options{Version: "test", Own: "default", Log: zap.NewNop()})
	must(t, err)
	must(t, c.CreateAutopilot(t.Context(), &autopilot.Target{Name: "shop", Namespace: "default", UID: "1"}))
	definitions := kube{admin: cluster.Config()}.as(t, schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	const drop = `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/maxGB"}]`
	if _, err := definitions.Patch(t.Context(), "rdsautopilots.autopilot.otc.mcsps.de", types.JSONPatchType, []byte(drop),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a field that the schema does not have is refused", func() bool {
		a, err := c.LiveAutopilot(t.Context(), "default", "shop")
		must(t, err)
		with := a.Status
		with.MaxGB = 200
		written, err := c.WriteStatus(t.Context(), a, with)
		if err == nil && written.Status.MaxGB == 0 {
			t.Fatal("the field was dropped without an error")
		}
		return err != nil && strings.Contains(err.Error(), "status.maxGB")
	})
}
