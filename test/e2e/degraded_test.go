// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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

// fragile is a world of its own, whose cloud can be down.
type fragile struct {
	*world.World
	down atomic.Bool
	deaf atomic.Bool // no notification arrives
}

func newFragile(t *testing.T) *fragile {
	t.Helper()
	level.Long(t)
	f := &fragile{}
	o := world.Options{Race: true}
	o.Cloud.DeliveryFault = func(d simcloud.Delivery) simcloud.DeliveryFault {
		return simcloud.DeliveryFault{Drop: f.deaf.Load() && d.Type == "Notification"}
	}
	o.Cloud.Fault = func(r *http.Request) *simcloud.Fault {
		if service, _ := simcloud.OperationOf(r); f.down.Load() && service != "cert" && service != "console" {
			return &simcloud.Fault{Status: http.StatusServiceUnavailable}
		}
		return nil
	}
	f.World = shared.StartAlone(t, o)
	return f
}

// alarm is a signed message of the storage rule, new each time.
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

// shows waits until a metric of a process has a value.
func shows(t *testing.T, p *world.Process, want float64, name string, labels ...string) {
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

// says waits until a process answers a path of its admin address with a status.
func says(t *testing.T, p *world.Process, path string, want int) {
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
	if !t.Run("all is well", func(t *testing.T) {
		f.MustServe(t)
		db = f.MustAdd(t, world.Database{Name: "shop", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
		wait(t, "it is armed", world.Armed)
	}) {
		return
	}

	t.Run("the cloud is away from the start on", func(t *testing.T) {
		f.down.Store(true)
		defer f.down.Store(false)
		p := f.MustServe(t)
		says(t, p, "/readyz", 200)
		shows(t, p, 0, "rds_autopilot_cloud_logged_in")
		if err := db.SetWorkload(simcloud.Workload{UsedGB: 93}); err != nil {
			t.Fatal(err)
		}
		post(t, 1, 200)
		wait(t, "the signal is stored, and the condition says that nothing is decided", func(a *v1alpha1.RdsAutopilot) bool {
			return len(a.Status.Intake.Signals) > 0 && armedReason("CloudUnreachable")(a)
		})
		shows(t, p, 1, "rds_autopilot_not_armed", "reason=CloudUnreachable")
		// Not in the cache, and nobody knows our project: the API server is asked before it counts as foreign.
		body := f.Cloud.Sign(simcloud.Envelope{
			Type: "Notification", MessageID: strings.Repeat("e", 32), TopicURN: topicOf(f, db) + "x", Message: "{}",
			Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05Z"),
		}).JSON()
		if status, text, err := f.Post(world.Within(t), body); err != nil || status != 200 || strings.TrimSpace(text) != "foreign" {
			t.Errorf("a topic that nobody has: status %d (%s), %v", status, text, err)
		}
		if rds, err := db.Rds(world.Within(t)); err != nil || rds.Spec.VolumeSize != 100 {
			t.Errorf("decided without the cloud: %d GB, %v", rds.Spec.VolumeSize, err)
		}
		f.down.Store(false)
		wait(t, "it is grown and armed again", func(a *v1alpha1.RdsAutopilot) bool {
			return len(a.Status.Changes) == 1 && a.Status.Changes[0].To == "110" && world.Armed(a)
		})
		shows(t, p, 1, "rds_autopilot_cloud_logged_in")
		shows(t, p, 0, "rds_autopilot_not_armed", "reason=CloudUnreachable")
		f.Cloud.ExpireTokens()
		swept(t, p, 2) // a token that ended is renewed on the way
		shows(t, p, 0, "rds_autopilot_not_armed")
	})

	t.Run("no message arrives", func(t *testing.T) {
		f.deaf.Store(true)
		defer f.deaf.Store(false)
		p := f.MustServe(t)
		swept(t, p, 1)
		if err := db.SetWorkload(simcloud.Workload{UsedGB: 105}); err != nil {
			t.Fatal(err)
		}
		a := wait(t, "it is grown", func(a *v1alpha1.RdsAutopilot) bool { return a.Status.Pending == nil && len(a.Status.Changes) == 2 })
		if a.Status.Changes[0].To != "130" {
			t.Errorf("changes %+v, want the last to 130: the second growth within the hour doubles", a.Status.Changes)
		}
		shows(t, p, 0, "rds_autopilot_notifications_total", "type=Notification")
	})

	t.Run("the API server is away", func(t *testing.T) {
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
		says(t, p, "/readyz", 503)
		shows(t, p, 0, "rds_autopilot_kubernetes_reachable")
		post(t, 3, 503)
		says(t, p, "/healthz", 200)
		resume()
		says(t, p, "/readyz", 200)
		post(t, 4, 200)
		wait(t, "the signal is stored", stored(4))
	})

	t.Run("the Secret is changed", func(t *testing.T) {
		dir := t.TempDir()
		file := cloudsFile(t, dir, f)
		p, err := f.ServeIn(world.Within(t), []string{
			"OS_CLIENT_CONFIG_FILE=" + file, "OS_CLOUD=otc", "OS_AUTH_URL=", "OS_USERNAME=", "OS_PASSWORD=", "OS_USER_DOMAIN_NAME=",
			"OS_DOMAIN_NAME=", "OS_PROJECT_NAME=", "OS_TENANT_NAME=", "OS_REGION_NAME=",
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.Stop(world.Within(t)) }()
		swept(t, p, 1)
		f.Operator.Pause() // its credentials are the same, and nobody changes them
		f.Cloud.RenewCredentials()
		shows(t, p, 0, "rds_autopilot_cloud_logged_in")
		wait(t, "the condition says so", armedReason("CloudUnreachable"))
		cloudsFile(t, dir, f)
		shows(t, p, 1, "rds_autopilot_cloud_logged_in")
		wait(t, "it is armed again", world.Armed)
		swept(t, p, 1)
		secrets(t, p)
	})
}

// swept waits until a process has swept so many times more.
func swept(t *testing.T, p *world.Process, n float64) {
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

// cloudsFile writes the credentials of now as kubelet mounts a Secret: the file is a link into a folder that is swapped.
func cloudsFile(t *testing.T, dir string, f *fragile) string {
	t.Helper()
	at := map[string]string{}
	for _, pair := range f.Cloud.Env() {
		k, v, _ := strings.Cut(pair, "=")
		at[k] = v
	}
	text := fmt.Sprintf("clouds: {otc: {region_name: %q, auth: {auth_url: %q, project_name: %q, user_domain_name: %q, username: %q, password: %q}}}\n",
		at["OS_REGION_NAME"], at["OS_AUTH_URL"], at["OS_PROJECT_NAME"], at["OS_USER_DOMAIN_NAME"], at["OS_USERNAME"], at["OS_PASSWORD"])
	version, err := os.MkdirTemp(dir, "..version")
	if err != nil {
		t.Fatal(err)
	}
	next, file := filepath.Join(dir, "..next"), filepath.Join(dir, "clouds.yaml")
	if err := errors.Join(
		os.WriteFile(filepath.Join(version, "clouds.yaml"), []byte(text), 0o600),
		os.Symlink(version, next), os.Rename(next, filepath.Join(dir, "..data")),
	); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..data", "clouds.yaml"), file); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	return file
}
