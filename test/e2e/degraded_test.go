// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
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

// fragile is a world whose cloud can be down.
type fragile struct {
	*world.World
	down atomic.Bool
}

func newFragile(t *testing.T) *fragile {
	t.Helper()
	level.Long(t)
	f := &fragile{}
	o := world.Options{Race: true}
	o.Cloud.Fault = func(r *http.Request) *simcloud.Fault {
		if service, _ := simcloud.OperationOf(r); f.down.Load() && service != "cert" && service != "console" {
			return &simcloud.Fault{Status: http.StatusServiceUnavailable}
		}
		return nil
	}
	f.World = shared.StartAlone(t, o)
	return f
}

// alarm returns a signed message of the storage rule with the number n.
func (f *fragile) alarm(t *testing.T, db *world.DB, n int) []byte {
	t.Helper()
	rule, ok := db.Rule(v1alpha1.MetricStorage)
	if !ok {
		t.Fatal("no rule")
	}
	body, err := f.Cloud.SignedAlarm(fmt.Sprintf("%032x", n), topicOf(f, db), rule.ID, 95)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func topicOf(f *fragile, db *world.DB) string {
	for _, x := range f.Cloud.Topics() {
		if strings.Contains(x.Name, "_"+db.Name+"_") {
			return x.URN
		}
	}
	return ""
}

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

func armedReason(reason string) func(*v1alpha1.RdsAutopilot) bool {
	return func(a *v1alpha1.RdsAutopilot) bool {
		c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed)
		return c != nil && c.Reason == reason
	}
}

func stored(n int) func(*v1alpha1.RdsAutopilot) bool {
	return func(a *v1alpha1.RdsAutopilot) bool {
		for _, s := range a.Status.Intake.Signals {
			if s.MessageID == fmt.Sprintf("%032x", n) {
				return true
			}
		}
		return false
	}
}

func TestServiceRecoversFromOutages(t *testing.T) {
	t.Parallel()
	f := newFragile(t)
	var db *world.DB
	wait := func(t *testing.T, what string, condition func(*v1alpha1.RdsAutopilot) bool) *v1alpha1.RdsAutopilot {
		t.Helper()
		a, err := db.WaitAutopilot(world.Within(t), what, condition)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	post := func(t *testing.T, n, want int) {
		t.Helper()
		if status, text, err := f.Post(world.Within(t), f.alarm(t, db, n)); err != nil || status != want {
			t.Errorf("status %d (%s), %v, want %d", status, strings.TrimSpace(text), err, want)
		}
	}
	if !t.Run("a database is armed", func(t *testing.T) {
		f.MustServe(t)
		db = f.MustAdd(t, world.Database{Name: "shop", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
		wait(t, "it is armed", world.Armed)
	}) {
		return
	}

	t.Run("without the cloud from the start, messages are stored and decided later", func(t *testing.T) {
		f.down.Store(true)
		defer f.down.Store(false)
		p := f.MustServe(t)
		waitStatus(t, p, "/readyz", 200)
		waitMetric(t, p, 0, "rds_autopilot_cloud_logged_in")
		if err := db.SetWorkload(simcloud.Workload{UsedGB: 93}); err != nil {
			t.Fatal(err)
		}
		post(t, 1, 200)
		wait(t, "the signal is stored, and the condition says that nothing is decided", func(a *v1alpha1.RdsAutopilot) bool {
			return len(a.Status.Intake.Signals) > 0 && armedReason("CloudUnreachable")(a)
		})
		waitMetric(t, p, 1, "rds_autopilot_not_armed", "reason=CloudUnreachable")
		// The topic is not in the cache and the project is unknown, so the receiver asks the API server.
		body := f.Cloud.Sign(simcloud.Envelope{
			Type: "Notification", MessageID: strings.Repeat("e", 32), TopicURN: topicOf(f, db) + "x", Message: "{}",
			Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05Z"),
		}).JSON()
		if status, text, err := f.Post(world.Within(t), body); err != nil || status != 200 || strings.TrimSpace(text) != "foreign" {
			t.Errorf("an unknown topic: status %d (%s), %v", status, text, err)
		}
		if rds, err := db.Rds(world.Within(t)); err != nil || rds.Spec.VolumeSize != 100 {
			t.Errorf("changed without the cloud: %d GB, %v", rds.Spec.VolumeSize, err)
		}
		f.down.Store(false)
		wait(t, "it is grown and armed again", func(a *v1alpha1.RdsAutopilot) bool {
			return len(a.Status.Changes) == 1 && a.Status.Changes[0].To == "110" && world.Armed(a)
		})
		waitMetric(t, p, 1, "rds_autopilot_cloud_logged_in")
		waitMetric(t, p, 0, "rds_autopilot_not_armed", "reason=CloudUnreachable")
		f.Cloud.ExpireTokens()
		waitSweeps(t, p, 2) // the service renews the expired token
		waitMetric(t, p, 0, "rds_autopilot_not_armed")
	})

	t.Run("without the API server, messages are answered 503 until it is back", func(t *testing.T) {
		p := f.MustServe(t)
		p.MustLead(t)
		if err := f.Kube.PauseAPIServer(); err != nil {
			t.Fatal(err)
		}
		resume := func() {
			if err := f.Kube.ResumeAPIServer(); err != nil {
				t.Fatal(err)
			}
		}
		post(t, 2, 503)
		waitStatus(t, p, "/readyz", 503)
		waitMetric(t, p, 0, "rds_autopilot_kubernetes_reachable")
		post(t, 3, 503)
		waitStatus(t, p, "/healthz", 200)
		resume()
		waitStatus(t, p, "/readyz", 200)
		post(t, 4, 200)
		wait(t, "the signal is stored", stored(4))
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
