// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// doctorsName is that of the RdsAutopilot with which doctor rehearses.
const doctorsName = "rds-autopilot-doctor"

// The doctor is the real binary, as a process of its own, with the shipped rights where the API server knows any.
func TestDoctorSucceedsAndLeavesNothingAfterAnySignal(t *testing.T) {
	level.Long(t)
	t.Parallel()
	w := shared.Start(t, world.Options{})
	w.MustServe(t).MustLead(t)
	ctx := world.Within(t)
	load := simcloud.Workload{UsedGB: 40, CPUDemand: 0.6}
	db := w.MustAdd(t, world.Database{Name: "db", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: load, Autopilot: true})
	if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Cloud.AddInstance(simcloud.Instance{Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: load}); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(w.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	succeed := func() {
		t.Helper()
		p, err := w.Run(ctx, w.DoctorArgs(), nil)
		if err != nil {
			t.Fatal(err)
		}
		code, err := p.Wait(ctx)
		if err != nil || code != 0 || !strings.Contains(logOf(p), "ok       decision") {
			t.Errorf("exit code %d, %v:\n%s", code, err, logOf(p))
		}
	}
	leavesNothing := func(after string) {
		t.Helper()
		// An interrupted run may end while the service still creates the rules of its object, which it then removes.
		err := world.Eventually(ctx, "no rule is left", func(context.Context) (bool, error) {
			return !slices.ContainsFunc(w.Cloud.Rules(), func(r simcloud.Rule) bool { return strings.Contains(r.Name, doctorsName) }), nil
		})
		if err != nil {
			t.Errorf("after %s: %v", after, err)
		}
		_, err = client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(w.Namespace).Get(ctx, doctorsName, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("after %s, the RdsAutopilot is left: %v", after, err)
		}
	}
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		p, err := w.Begin(ctx, w.DoctorArgs()) // the bubble interrupts it at other steps
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.WaitLine(ctx, "created", func(l world.Line) bool { return strings.HasPrefix(l.Raw, "ok       created") }); err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(sent); err != nil {
			t.Fatal(err)
		}
		if code, err := p.Wait(ctx); err != nil || code == 0 {
			t.Errorf("%v: exit code %d, %v:\n%s", sent, code, err, logOf(p))
		}
		if sent == syscall.SIGKILL {
			succeed() // the next run removes what is left
		}
		leavesNothing(sent.String())
	}
}
