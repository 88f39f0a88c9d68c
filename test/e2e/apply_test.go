// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// One database is changed by its operator, then by operator and cloud while the operator hangs, and then has no Rds any more. The
// rules stay the same, and after each step the database grows in the new way.
func TestChangeOfTheApplyModeKeepsTheAlarms(t *testing.T) {
	level.Long(t)
	w := start(t, world.Options{})
	ctx := world.Within(t)
	w.MustServe(t, "--allow-apply", "Cloud", "--allowed-instances", w.Namespace+"/*")
	client, err := dynamic.NewForConfig(w.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	db := w.MustAdd(t, world.Database{Name: "my-rds", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Autopilot: true})
	rules := func() (ids []string) {
		for _, r := range w.Cloud.Rules() {
			ids = append(ids, r.ID+" "+r.Name)
		}
		return ids
	}
	if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	armed := rules()
	for _, step := range []struct {
		how, patch string
		do         func() error
		toGB       int // each step is twice the last one, because all are within an hour
	}{
		{"with its operator", `{}`, func() error { return nil }, 110},
		{"by operator and cloud", `{"spec":{"apply":"Cloud"}}`, func() error { w.Operator.Pause(); return nil }, 130},
		{"with its operator again", `{"spec":{"apply":"Operator"}}`, func() error { w.Operator.Resume(); return nil }, 170},
		{"without an Rds", fmt.Sprintf(`{"metadata":{"ownerReferences":null},"spec":{"apply":"Cloud","instanceID":%q}}`, db.ID), func() error {
			w.Operator.Pause()
			rdss := client.Resource(otcv1.GroupVersion().WithResource(otcv1.Resource)).Namespace(w.Namespace)
			return rdss.Delete(ctx, db.Name, metav1.DeleteOptions{})
		}, 250},
	} {
		if err := db.PatchAutopilot(ctx, step.patch); err != nil {
			t.Fatal(err)
		}
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if err := db.SetWorkload(simcloud.Workload{UsedGB: 0.92 * float64(db.Instance().VolumeGB)}); err != nil {
			t.Fatal(err)
		}
		_, err := db.WaitAutopilot(ctx, fmt.Sprintf("it has %d GB %s", step.toGB, step.how), func(a *v1alpha1.RdsAutopilot) bool {
			return len(a.Status.PendingChanges()) == 0 && a.Status.Instance.VolumeGB == int32(step.toGB) && db.Instance().VolumeGB == step.toGB &&
				state(a, v1alpha1.MetricStorage) == v1alpha1.StateOK && world.Armed(a)
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(armed, rules()); diff != "" {
			t.Errorf("%s: other rules than after the first arming:\n%s", step.how, diff)
		}
	}
}
