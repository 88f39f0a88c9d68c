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
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// waitMetric waits until a metric of a process has a value.
func waitMetric(t *testing.T, p *world.Process, want float64, name string, labels ...string) {
	t.Helper()
	var got float64
	err := world.Eventually(world.Within(t), fmt.Sprintf("%s %v is %g", name, labels, want), func(ctx context.Context) (bool, error) {
		m, err := p.Metrics(ctx)
		got = m.Sum(name, labels...)
		return err == nil && got == want, err
	})
	if err != nil {
		t.Fatalf("%v; it is %g", err, got)
	}
}

// waitStatus waits until a path of a process's admin address answers with a status.
func waitStatus(t *testing.T, p *world.Process, path string, want int) {
	t.Helper()
	err := world.Eventually(world.Within(t), fmt.Sprintf("%s is %d", path, want), func(ctx context.Context) (bool, error) {
		status, _, err := p.Get(ctx, path)
		return status == want, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestServiceRecoversFromOutages(t *testing.T) {
	level.Long(t)
	t.Parallel()
	var isDown atomic.Bool // the cloud
	o := world.Options{Race: true}
	o.Cloud.Fault = func(r *http.Request) *simcloud.Fault {
		if service, _ := simcloud.OperationOf(r); isDown.Load() && service != "cert" && service != "console" {
			return &simcloud.Fault{Status: http.StatusServiceUnavailable}
		}
		return nil
	}
	w := shared.StartAlone(t, o)
	first := w.MustServe(t)
	db := w.MustAdd(t, world.Database{Name: "shop", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	wait := func(t *testing.T, what string, condition func(*v1alpha1.RdsAutopilot) bool) *v1alpha1.RdsAutopilot {
		t.Helper()
		a, err := db.WaitAutopilot(world.Within(t), what, condition)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	alarms := wait(t, "it is armed", world.Armed).Status.Alarms
	post := func(t *testing.T, n, want int) {
		t.Helper()
		body, err := w.Cloud.SignedAlarm(fmt.Sprintf("%032x", n), w.TopicURN(), alarms.Rules[0].AlarmID, 95)
		if err != nil {
			t.Fatal(err)
		}
		if status, text, err := w.Post(world.Within(t), body); err != nil || status != want {
			t.Errorf("status %d (%s), %v, want %d", status, strings.TrimSpace(text), err, want)
		}
	}

	t.Run("without the cloud from the start, messages are stored and decided later", func(t *testing.T) {
		isDown.Store(true)
		defer isDown.Store(false)
		if err := first.Stop(world.Within(t)); err != nil {
			t.Fatal(err)
		}
		p := w.MustServe(t)
		waitStatus(t, p, "/readyz", 200)
		waitMetric(t, p, 0, "rds_autopilot_cloud_logged_in")
		if err := db.SetWorkload(simcloud.Workload{UsedGB: 93}); err != nil {
			t.Fatal(err)
		}
		post(t, 1, 200)
		wait(t, "the signal is stored, and the condition says that nothing is decided", func(a *v1alpha1.RdsAutopilot) bool {
			armed := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed)
			return len(a.Status.Intake.Signals) > 0 && armed != nil && armed.Reason == "CloudUnreachable"
		})
		waitMetric(t, p, 1, "rds_autopilot_autopilots", "armed=false")
		// The topic has another name.
		body := w.Cloud.Sign(simcloud.Envelope{
			Type: "Notification", MessageID: strings.Repeat("e", 32), TopicURN: w.TopicURN() + "x", Message: "{}",
			Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05Z"),
		}).JSON()
		if status, text, err := w.Post(world.Within(t), body); err != nil || status != 200 || strings.TrimSpace(text) != "foreign" {
			t.Errorf("an unknown topic: status %d (%s), %v", status, text, err)
		}
		if rds, err := db.Rds(world.Within(t)); err != nil || rds.Spec.VolumeSize != 100 {
			t.Errorf("changed without the cloud: %d GB, %v", rds.Spec.VolumeSize, err)
		}
		isDown.Store(false)
		wait(t, "it has grown and is armed again", func(a *v1alpha1.RdsAutopilot) bool {
			return len(a.Status.Changes) == 1 && a.Status.Changes[0].To == "110" && world.Armed(a)
		})
		waitMetric(t, p, 1, "rds_autopilot_cloud_logged_in")
		waitMetric(t, p, 0, "rds_autopilot_autopilots", "armed=false")
		w.Cloud.ExpireTokens()
		waitSweeps(t, p, 2) // the service renews the expired token
		waitMetric(t, p, 0, "rds_autopilot_autopilots", "armed=false")
	})

	t.Run("without the API server, messages are answered 503 until it is back", func(t *testing.T) {
		p := w.MustServe(t)
		p.MustLead(t)
		if err := w.Kube.PauseAPIServer(); err != nil {
			t.Fatal(err)
		}
		post(t, 2, 503)
		waitStatus(t, p, "/readyz", 503)
		post(t, 3, 503)
		waitStatus(t, p, "/healthz", 200)
		if err := w.Kube.ResumeAPIServer(); err != nil {
			t.Fatal(err)
		}
		waitStatus(t, p, "/readyz", 200)
		post(t, 4, 200)
		wait(t, "the signal is stored", func(a *v1alpha1.RdsAutopilot) bool {
			return slices.ContainsFunc(a.Status.Intake.Signals, func(s v1alpha1.Signal) bool { return s.MessageID == fmt.Sprintf("%032x", 4) })
		})
	})
}

// waitSweeps waits for n further sweeps of a process.
func waitSweeps(t *testing.T, p *world.Process, n float64) {
	t.Helper()
	begin := -1.0
	err := world.Eventually(world.Within(t), "it has swept", func(ctx context.Context) (bool, error) {
		m, err := p.Metrics(ctx)
		if err != nil {
			return false, err
		}
		now := m.Sum("rds_autopilot_sweep_duration_seconds_count")
		if begin < 0 {
			begin = now
		}
		return now >= begin+n, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
