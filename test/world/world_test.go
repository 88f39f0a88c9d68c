// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	simoperator "github.com/mcsps/rds-autopilot/test/sim/operator"
	"github.com/mcsps/rds-autopilot/test/world"
)

// A whole life: the service arms a database, survives another one that is killed, and nothing is left in the end.
func TestAWorldLeavesNothingBehind(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	acts := make(chan simoperator.Act, 1000)
	w, err := world.Start(ctx, world.Options{Cloud: simcloud.Options{Speed: 600}, OnAct: func(a simoperator.Act) { acts <- a }})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // where the test ended early; else it is the second time

	service, err := w.Serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	killed, err := w.Serve(ctx, "--log-level", "debug")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Ingress.Backends(); !slices.Equal(got, []string{service.WebhookURL, killed.WebhookURL}) {
		t.Errorf("backends %v", got)
	}
	if err := killed.Kill(); err != nil {
		t.Error(err)
	}
	if code, err := killed.Wait(ctx); code != -1 || err != nil {
		t.Errorf("the killed process ended with %d, %v", code, err)
	}
	if _, err := killed.WaitLine(ctx, "it writes a line that it never writes", func(world.Line) bool { return false }); err == nil {
		t.Error("a line of a process that has ended was waited for")
	}

	db, err := w.AddDatabase(ctx, world.Database{Namespace: "team", Name: "db", Flavor: "rds.mysql.n1.large.2.ha", Zones: []string{"eu-de-02", "eu-de-03"}, Autopilot: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	if got := w.Ingress.Backends(); !slices.Equal(got, []string{service.WebhookURL}) {
		t.Errorf("backends %v after one was killed", got)
	}
	checkDatabase(ctx, t, w, db)
	if err := db.PatchRds(ctx, `{"spec":{"volumesize":60}}`); err != nil {
		t.Fatal(err)
	}
	for a := (simoperator.Act{}); a.What != simoperator.Enlarge; {
		select {
		case a = <-acts:
		case <-ctx.Done():
			t.Fatal("the operator did not enlarge the volume")
		}
	}
	checkService(ctx, t, service)
	checkRun(ctx, t, w)

	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error("closed twice:", err)
	}
	if code, err := service.Wait(ctx); code != 0 || err != nil {
		t.Errorf("the service ended with %d, %v", code, err)
	}
	if err := syscall.Kill(service.PID, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process of the service: %v", err)
	}
	left, err := os.ReadDir(temporary)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	if _, err := w.Serve(ctx); err == nil {
		t.Error("a service was started in a world that is closed")
	}
}

func checkDatabase(ctx context.Context, t *testing.T, w *world.World, db *world.DB) {
	t.Helper()
	r, err := db.WaitRds(ctx, "the operator knows the instance", func(r *otcv1.Rds) bool { return r.Status.ID == db.ID })
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Spec; s.AvailabilityZone != "eu-de-02,eu-de-03" || s.VolumeSize != 40 || s.DatastoreType != "MySQL" {
		t.Errorf("Rds %+v", s)
	}
	rule, ok := db.Rule(v1alpha1.MetricStorage)
	if !ok || rule.Metric.MetricName != "rds039_disk_util" {
		t.Errorf("rule %+v, %v", rule, ok)
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second) // within which it has looked
	defer cancel()
	_, err = db.WaitRds(short, "it has 4000 GB", func(r *otcv1.Rds) bool { return r.Spec.VolumeSize == 4000 })
	if err == nil || !strings.Contains(err.Error(), "db: it has 4000 GB") || !strings.Contains(err.Error(), `"volumesize":40`) {
		t.Errorf("waited for what never comes: %v", err)
	}
	if status, _, err := w.Post(ctx, []byte("{")); status != http.StatusBadRequest || err != nil {
		t.Errorf("posted half an object: %d, %v", status, err)
	}
}

func checkService(ctx context.Context, t *testing.T, service *world.Process) {
	t.Helper()
	if status, text, err := service.Get(ctx, "/readyz"); status != http.StatusOK || err != nil {
		t.Errorf("/readyz: %d %s, %v", status, text, err)
	}
	samples, err := service.Metrics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n := samples.Sum("rds_autopilot_notifications_total", "result=malformed"); n != 1 {
		t.Errorf("%v malformed messages", n)
	}
}

// checkRun runs the binary in a way that is to fail.
func checkRun(ctx context.Context, t *testing.T, w *world.World) {
	t.Helper()
	p, err := w.Run(ctx, []string{"serve"}, []string{"RDS_AUTOPILOT_MODE=off"})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(ctx); code != 2 || err != nil {
		t.Errorf("serve without a URL: exit code %d, %v", code, err)
	}
	if lines := p.Lines(); len(lines) != 1 || lines[0].Fields != nil || !strings.Contains(lines[0].Raw, "--public-url") {
		t.Errorf("serve without a URL says %+v", lines)
	}
	if _, err := w.Serve(ctx, "--no-such-flag"); err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("served with an unknown flag: %v", err)
	}
}
