// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// sweeps waits until two sweeps have ended: the second one began after now.
func sweeps(t *testing.T, p *world.Process) {
	t.Helper()
	const counter = "rds_autopilot_sweep_duration_seconds_count"
	ended := func(ctx context.Context) (float64, error) {
		m, err := p.Metrics(ctx)
		return m.Sum(counter), err
	}
	before, err := ended(world.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	err = world.Eventually(world.Within(t), "two sweeps have ended", func(ctx context.Context) (bool, error) {
		now, err := ended(ctx)
		return now >= before+2, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func autopilots(t *testing.T, w *world.World) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(w.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(w.Namespace)
}

// ours counts what exists in the cloud for a database.
func ours(w *world.World, name string) int {
	n := 0
	for _, x := range w.Cloud.Topics() {
		if strings.Contains(x.Name, "_"+name+"_") {
			n++
		}
	}
	for _, x := range w.Cloud.Subscriptions() {
		if strings.Contains(x.TopicURN, "_"+name+"_") {
			n++
		}
	}
	for _, x := range w.Cloud.Rules() {
		if strings.Contains(x.Name, "_"+name+"_") {
			n++
		}
	}
	return n
}

// gone waits until the cloud has nothing of a database any more, and Kubernetes no autopilot.
func gone(t *testing.T, w *world.World, db *world.DB) {
	t.Helper()
	err := world.Eventually(world.Within(t), db.Name+": nothing is left", func(ctx context.Context) (bool, error) {
		_, err := autopilots(t, w).Get(ctx, db.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) && ours(w, db.Name) == 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dropped waits until the operator has taken spec.autopilot away.
func dropped(t *testing.T, db *world.DB) {
	t.Helper()
	if _, err := db.WaitRds(world.Within(t), "the operator drops spec.autopilot", func(r *otcv1.Rds) bool { return r.Spec.Autopilot == nil && r.Status.ID != "" }); err != nil {
		t.Fatal(err)
	}
}

func TestTheWordOutlivesTheFieldThatTheOperatorDrops(t *testing.T) {
	level.Short(t)
	w := start(t, world.Options{})
	p := w.MustServe(t)
	ctx := world.Within(t)
	db := w.MustAdd(t, world.Database{Name: "word", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Autopilot: true})
	armed := func(when string) *v1alpha1.RdsAutopilot {
		t.Helper()
		a, err := db.WaitAutopilot(ctx, "it is armed "+when, world.Armed)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	say := func(word string) {
		t.Helper()
		if err := db.PatchRds(ctx, `{"spec":{"autopilot":`+word+`}}`); err != nil {
			t.Fatal(err)
		}
	}
	first := armed("at first")
	dropped(t, db)
	sweeps(t, p)
	if a := armed("when the field is gone"); a.UID != first.UID || a.Status.Alarms.TopicURN != first.Status.Alarms.TopicURN || ours(w, db.Name) != 5 {
		t.Errorf("it is another one: %+v, with %d things in the cloud", a.Status.Alarms, ours(w, db.Name))
	}

	say("false")
	if _, err := db.WaitAutopilot(ctx, "it is let go of", func(a *v1alpha1.RdsAutopilot) bool { return len(a.Finalizers) == 0 }); err != nil {
		t.Fatal(err)
	}
	dropped(t, db)
	sweeps(t, p)
	a, err := db.Autopilot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if world.Armed(a) || ours(w, db.Name) != 0 || !strings.Contains(message(a), "said false") {
		t.Fatalf("after false: %q, %d things in the cloud", message(a), ours(w, db.Name))
	}

	say("true")
	armed("again")
	dropped(t, db)

	// Another process has only the status to go by.
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	p = w.MustServe(t)
	sweeps(t, p)
	armed("by another process")
	if ours(w, db.Name) != 5 {
		t.Errorf("%d things in the cloud", ours(w, db.Name))
	}

	if err := autopilots(t, w).Delete(ctx, db.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	gone(t, w, db)
	sweeps(t, p)
	gone(t, w, db)
}

// message is what Armed says.
func message(a *v1alpha1.RdsAutopilot) string {
	for _, c := range a.Status.Conditions {
		if c.Type == v1alpha1.ConditionArmed {
			return c.Message
		}
	}
	return ""
}

func TestDeletedByHandWhileTrueItIsMadeAgain(t *testing.T) {
	level.Short(t)
	w := start(t, world.Options{})
	w.MustServe(t)
	ctx := world.Within(t)
	db := w.MustAdd(t, world.Database{Name: "again", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100})
	if _, err := db.WaitRds(ctx, "it has an instance", func(r *otcv1.Rds) bool { return r.Status.ID != "" }); err != nil {
		t.Fatal(err)
	}
	w.Operator.Pause() // or the field would be gone
	defer w.Operator.Resume()
	if err := db.PatchRds(ctx, `{"spec":{"autopilot":true}}`); err != nil {
		t.Fatal(err)
	}
	first, err := db.WaitAutopilot(ctx, "it is armed", world.Armed)
	if err != nil {
		t.Fatal(err)
	}
	if err := autopilots(t, w).Delete(ctx, db.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.WaitAutopilot(ctx, "it is made again and armed", func(a *v1alpha1.RdsAutopilot) bool {
		return a.UID != first.UID && world.Armed(a)
	}); err != nil {
		t.Fatal(err)
	}
	if n := ours(w, db.Name); n != 5 {
		t.Errorf("%d things in the cloud, want those of the new one only", n)
	}
}
