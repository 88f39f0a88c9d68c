// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/fakeoperator"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// Databases without an Rds, and beside an operator that replays old wishes and then hangs: the real binary asks the cloud itself.
func TestTheCloudIsAskedWithAndWithoutAnRds(t *testing.T) {
	var back atomic.Int64 // times that the operator went back to a smaller flavor
	w := start(t, world.Options{OnAct: func(a fakeoperator.Act) {
		if a.What == fakeoperator.Resize && a.From != "rds.mysql.n1.large.4" {
			back.Add(1)
		}
	}})
	p := w.MustServe(t, "--allow-apply", "Cloud")
	ctx := world.Within(t)
	if _, err := p.WaitLine(ctx, "it warns that every instance may be named", func(l world.Line) bool {
		return l.Level == "warn" && strings.HasPrefix(l.Msg, "--allowed-instances is empty")
	}); err != nil {
		t.Error(err)
	}
	add := func(name, policy string, rds bool, usedGB float64) *world.DB {
		t.Helper()
		db := w.MustAdd(t, world.Database{Name: name, Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: otcsim.Workload{UsedGB: usedGB}, NoRds: !rds, Autopilot: rds})
		id := ""
		if !rds {
			id = fmt.Sprintf(`,"instanceID":%q`, db.ID)
		}
		err := db.CreateAutopilot(ctx, `{"apply":"Cloud"`+id+policy+`}`)
		if rds && err != nil { // the controller was first
			err = db.PatchAutopilot(ctx, `{"spec":{"apply":"Cloud"`+policy+`}}`)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
			t.Fatal(err)
		}
		return db
	}
	const atOnce = `,"flavor":{"cooldownSeconds":0,"maxChangesPerDay":1}`
	stuck := add("stuck", atOnce, false, 98) // STORAGE FULL
	alone := add("alone", atOnce, false, 10)
	beside := add("beside", atOnce, true, 10)
	if err := errors.Join(alone.SetWorkload(otcsim.Workload{UsedGB: 93, CPUDemand: 1.9}), beside.SetWorkload(otcsim.Workload{UsedGB: 93, CPUDemand: 1.9})); err != nil {
		t.Fatal(err)
	}
	w.Operator.Replay(4, 20*time.Millisecond)
	done := func(db *world.DB, changes int) *v1alpha1.RdsAutopilot {
		t.Helper()
		a, err := db.WaitAutopilot(ctx, "its changes are completed", func(a *v1alpha1.RdsAutopilot) bool {
			ours := 0
			for _, ch := range a.Status.Changes {
				if ch.By == v1alpha1.ByAutopilot && ch.Outcome == v1alpha1.OutcomeCompleted {
					ours++
				}
			}
			return a.Status.Pending == nil && ours == changes
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	done(stuck, 1)
	if in := stuck.Instance(); in.VolumeGB != 120 || in.Status != otcsim.StatusActive {
		t.Errorf("the full one has %d GB and is in %s", in.VolumeGB, in.Status)
	}
	done(alone, 2)
	if in := alone.Instance(); in.VolumeGB != 110 || in.VCPUs != 4 {
		t.Errorf("the one without an Rds has %d GB, %s", in.VolumeGB, in.Flavor)
	}
	if _, err := alone.Rds(ctx); err == nil {
		t.Error("it has an Rds by now")
	}
	done(beside, 2)
	w.Operator.Replay(0, 0)
	w.Operator.Pause() // as if it hung
	defer w.Operator.Resume()
	if err := beside.SetWorkload(otcsim.Workload{UsedGB: 102, CPUDemand: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := beside.WaitAutopilot(ctx, "it is grown although its operator hangs", func(a *v1alpha1.RdsAutopilot) bool {
		return a.Status.Pending == nil && beside.Instance().VolumeGB == 120 && a.Status.Instance.VolumeGB == 120
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := beside.WaitRds(ctx, "its Rds asks for what it has", func(r *otcv1.Rds) bool { return r.Spec.VolumeSize == 120 }); err != nil {
		t.Fatal(err)
	}
	a, err := beside.Autopilot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	flavors := 0
	for _, ch := range a.Status.Changes {
		if ch.Kind == v1alpha1.KindFlavor && ch.By == v1alpha1.ByAutopilot {
			flavors++
		}
	}
	if flavors != 1 {
		t.Errorf("its flavor was changed %d times by us (the operator went back %d times): %+v", flavors, back.Load(), a.Status.Changes)
	}
}
