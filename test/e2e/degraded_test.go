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
	p := w.MustServe(t)
	db := w.MustAdd(t, world.Database{Name: "shop", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	wait := func(what string, condition func(*v1alpha1.RdsAutopilot) bool) {
		t.Helper()
		if _, err := db.WaitAutopilot(world.Within(t), what, condition); err != nil {
			t.Fatal(err)
		}
	}
	waitStatus := func(path string, want int) {
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
	isStored := func(n int) func(*v1alpha1.RdsAutopilot) bool {
		return func(a *v1alpha1.RdsAutopilot) bool {
			return slices.ContainsFunc(a.Status.Intake.Signals, func(s v1alpha1.Signal) bool { return s.MessageID == fmt.Sprintf("%032x", n) })
		}
	}

	// Without the cloud from the start, messages are stored.
	isDown.Store(true)
	if err := p.Stop(world.Within(t)); err != nil {
		t.Fatal(err)
	}
	p = w.MustServe(t)
	waitStatus("/readyz", 200)
	post(1, 200)
	wait("the signal is stored", isStored(1))
	isDown.Store(false)

	// While the API server is frozen, messages are answered with 503.
	if err := w.Kube.PauseAPIServer(); err != nil {
		t.Fatal(err)
	}
	post(2, 503)
	waitStatus("/readyz", 503)
	waitStatus("/healthz", 200)
	if err := w.Kube.ResumeAPIServer(); err != nil {
		t.Fatal(err)
	}
	waitStatus("/readyz", 200)
	post(3, 200)
	wait("the signal is stored", isStored(3))
}
