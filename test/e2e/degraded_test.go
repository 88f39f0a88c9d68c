// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

func TestServiceRecoversFromOutages(t *testing.T) {
	level.Long(t)
	t.Parallel()
	var isDown atomic.Bool // the cloud
	w := shared.StartAlone(t, world.Options{Race: true, Cloud: simcloud.Options{Fault: func(r *http.Request) *simcloud.Fault {
		if service, _ := simcloud.OperationOf(r); isDown.Load() && service != "cert" && service != "console" {
			return &simcloud.Fault{Status: http.StatusServiceUnavailable}
		}
		return nil
	}}})
	first := w.MustServe(t)
	db := w.MustAdd(t, world.Database{Name: "shop", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	wait := func(what string, condition func(*v1alpha1.RdsAutopilot) bool) {
		t.Helper()
		if _, err := db.WaitAutopilot(world.Within(t), what, condition); err != nil {
			t.Fatal(err)
		}
	}
	waitStatus := func(p *world.Process, path string, want int) {
		t.Helper()
		err := world.Eventually(world.Within(t), fmt.Sprintf("%s is %d", path, want), func(ctx context.Context) (bool, error) {
			status, _, err := p.Get(ctx, path)
			return status == want, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	wait("it is armed", world.Armed)
	rule, _ := db.Rule(v1alpha1.MetricStorage)
	post := func(n, want int) {
		t.Helper()
		body, err := w.Cloud.SignedAlarm(fmt.Sprintf("%032x", n), w.TopicURN(), rule.ID, 95)
		if err != nil {
			t.Fatal(err)
		}
		if status, text, err := w.Post(world.Within(t), body); err != nil || status != want {
			t.Errorf("status %d (%s), %v, want %d", status, strings.TrimSpace(text), err, want)
		}
	}

	// Without the cloud from the start, messages are stored and decided later.
	isDown.Store(true)
	if err := first.Stop(world.Within(t)); err != nil {
		t.Fatal(err)
	}
	p := w.MustServe(t)
	p.MustLead(t)
	waitStatus(p, "/readyz", 200)
	if err := db.SetWorkload(simcloud.Workload{UsedGB: 93}); err != nil {
		t.Fatal(err)
	}
	post(1, 200)
	wait("the signal is stored, and the condition says that nothing is decided", func(a *v1alpha1.RdsAutopilot) bool {
		armed := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed)
		return len(a.Status.Intake.Signals) > 0 && armed != nil && armed.Reason == "CloudUnreachable"
	})
	if rds, err := db.Rds(world.Within(t)); err != nil || rds.Spec.VolumeSize != 100 {
		t.Errorf("changed without the cloud: %d GB, %v", rds.Spec.VolumeSize, err)
	}
	isDown.Store(false)
	wait("it has grown and is armed again", func(a *v1alpha1.RdsAutopilot) bool {
		return len(a.Status.Changes) == 1 && a.Status.Changes[0].To == "110" && world.Armed(a)
	})

	// A frozen API server: messages are answered 503 until it is back.
	if err := w.Kube.PauseAPIServer(); err != nil {
		t.Fatal(err)
	}
	post(2, 503)
	waitStatus(p, "/readyz", 503)
	post(3, 503)
	waitStatus(p, "/healthz", 200)
	if err := w.Kube.ResumeAPIServer(); err != nil {
		t.Fatal(err)
	}
	waitStatus(p, "/readyz", 200)
	post(4, 200)
	wait("the signal is stored", func(a *v1alpha1.RdsAutopilot) bool {
		return slices.ContainsFunc(a.Status.Intake.Signals, func(s v1alpha1.Signal) bool { return s.MessageID == fmt.Sprintf("%032x", 4) })
	})
}
