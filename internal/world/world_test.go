package world_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

func TestAFullDiskGrows(t *testing.T) {
	ctx := t.Context()
	w, err := world.Start(ctx, world.Options{Cloud: otcsim.Options{Speed: 600}, OnLine: func(_ *world.Process, l world.Line) { t.Log(l.Raw) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	start := time.Now()
	service, err := w.Serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	db, err := w.AddDatabase(ctx, world.Database{Name: "orders", Flavor: "rds.mysql.n1.large.2", Autopilot: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	t.Log("armed", time.Since(start))
	if err := db.SetWorkload(otcsim.Workload{UsedGB: 33}); err != nil {
		t.Fatal(err)
	}
	if _, err = db.WaitRds(ctx, "50 GB are asked for", func(r *otcv1.Rds) bool { return r.Spec.VolumeSize == 50 }); err != nil {
		t.Fatal(err)
	}
	t.Log("patched", time.Since(start))
	if status, _, err := service.Get(ctx, "/readyz"); err != nil || status != http.StatusOK {
		t.Error(status, err)
	}
}
