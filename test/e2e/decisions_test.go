// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
)

// decisions is a world with one database per row, or two: beside an Rds and without one.
type decisions struct {
	*world.World
	t    *testing.T
	ctx  context.Context //nolint:containedctx // the test's context, for what a row does while it is staged
	raps dynamic.ResourceInterface
	dbs  []*decided

	mu sync.Mutex
	of map[string]*decided // by instance ID
}

// decided is the database of one row.
type decided struct {
	row
	*scene
	*world.DB
	in    *decisions
	test  string // the name in reports
	alone bool   // without an Rds
	first simcloud.Instance
}

// TestDecisionsInTheCloud runs all rows at once in one process with apply: Cloud, beside an Rds whose operator hangs or
// without an Rds, in turn. The soak level runs each row in both ways.
func TestDecisionsInTheCloud(t *testing.T) {
	t.Parallel()
	// The service runs without the race detector, because with it so many databases would take most of two cores.
	d := &decisions{t: t, ctx: t.Context(), of: map[string]*decided{}}
	d.World = shared.Start(t, world.Options{Resync: time.Hour, Cloud: simcloud.Options{
		Speed: 20, Fault: d.fault,
		Settings: simcloud.Settings{EnlargeDuration: time.Minute, ResizeDuration: 2 * time.Minute, RetryInterval: 10 * time.Minute},
	}})
	d.Operator.Pause()
	client, err := dynamic.NewForConfig(d.Kube.Config())
	if err != nil {
		t.Fatal(err)
	}
	d.raps = client.Resource(v1alpha1.GroupVersion().WithResource(v1alpha1.Resource)).Namespace(d.Namespace)
	for i, r := range decisionRows() {
		for _, alone := range []bool{false, true} {
			if r.withRds && alone || !r.withRds && (i%2 == 0) == alone && !level.IsSoak(t) {
				continue
			}
			x := &decided{row: r, scene: quietScene(), in: d, alone: alone}
			x.test = r.name + map[bool]string{false: ", with an Rds", true: ", without an Rds"}[alone]
			x.stage(x.scene)
			x.NoRds, x.Database.Name = alone, fmt.Sprintf("row-%d-%t", i, alone)
			d.dbs = append(d.dbs, x)
		}
	}
	d.each((*decided).add)
	d.run()
	all := d.autopilots()
	for _, x := range d.dbs {
		t.Run(x.test, func(t *testing.T) { d.check(t, x, all[x.Name]) })
	}
}

// run arms the databases, stages each while no service runs, and waits until the service has decided on all.
func (d *decisions) run() {
	t := d.t
	t.Helper()
	flags := []string{"--allow-apply", "Cloud", "--allowed-instances", "*/*", "--sweep-interval", "5s", "--max-flavor-changes", "1000"}
	first := d.MustServe(t, flags...)
	d.until("all are armed", (*decided).unarmed)
	if err := first.Stop(d.ctx); err != nil {
		t.Fatal(err)
	}
	d.each((*decided).arrange)
	p := d.MustServe(t, flags...)
	d.each(func(x *decided) error { return x.SetWorkload(x.workload(x.Instance())) })
	d.until("all rows are decided", (*decided).lacks)
	swept(t, p, 2) // further sweeps must change nothing
	secrets(t, p)
}

// each calls do for each database.
func (d *decisions) each(do func(*decided) error) {
	d.t.Helper()
	err := each(8, len(d.dbs), func(i int) error {
		if err := do(d.dbs[i]); err != nil {
			return fmt.Errorf("%s: %w", d.dbs[i].test, err)
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

func (x *decided) add() error {
	var err error
	if x.DB, err = x.in.AddDatabase(x.in.ctx, x.Database); err != nil {
		return err
	}
	x.in.mu.Lock()
	x.in.of[x.ID] = x
	x.in.mu.Unlock()
	if x.alone {
		x.spec.InstanceID = x.ID
	} else if err = x.PatchRds(x.in.ctx, fmt.Sprintf(`{"status":{"id":%q}}`, x.ID)); err != nil {
		return err
	}
	spec, err := json.Marshal(x.spec)
	if err != nil {
		return err
	}
	return x.CreateAutopilot(x.in.ctx, string(spec))
}

// unarmed returns what is missing until the service would notice an alarm of the database.
func (x *decided) unarmed(a *v1alpha1.RdsAutopilot) string {
	switch {
	case a == nil:
		return "there is no RdsAutopilot"
	case a.Spec.Mode == v1alpha1.ModeOff, world.Armed(a):
		return ""
	}
	return fmt.Sprintf("not armed: %+v", a.Status.Conditions)
}

// arrange puts the database into the situation of its row, while the service is stopped.
func (x *decided) arrange() error {
	if x.alter != nil {
		if err := x.in.Cloud.ChangeInstance(x.ID, x.alter); err != nil {
			return err
		}
	}
	x.first = x.Instance()
	x.complete(x.first)
	before, err := json.Marshal(map[string]any{"status": x.status})
	if err != nil {
		return err
	}
	if _, err = x.in.raps.Patch(x.in.ctx, x.Name, types.MergePatchType, before, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}, "status"); err != nil {
		return err
	}
	if !x.alone && x.asks != nil {
		asked, err := json.Marshal(map[string]any{"spec": x.asks})
		if err != nil {
			return err
		}
		if err := x.PatchRds(x.in.ctx, string(asked)); err != nil {
			return err
		}
	}
	if x.more != nil {
		return x.more(x.in, x.DB)
	}
	return nil
}

// fault answers requests about the instance of a row whose cloud refuses an operation.
func (d *decisions) fault(r *http.Request) *simcloud.Fault {
	_, operation := simcloud.OperationOf(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.of[r.PathValue("instance")]; x != nil {
		if f, ok := x.fault[operation]; ok {
			return &f
		}
	}
	return nil
}

// until waits until no database lacks anything.
func (d *decisions) until(what string, lacks func(*decided, *v1alpha1.RdsAutopilot) string) {
	d.t.Helper()
	var open []string
	err := world.Eventually(d.ctx, what, func(context.Context) (bool, error) {
		time.Sleep(time.Second) //nolint:forbidigo // between two looks at all of them
		all := d.autopilots()
		open = nil
		for _, x := range d.dbs {
			if wrong := lacks(x, all[x.Name]); wrong != "" {
				open = append(open, x.test+": "+wrong)
			}
		}
		return len(open) == 0, nil
	})
	if err != nil {
		d.t.Fatalf("%v\n%s", err, strings.Join(open, "\n"))
	}
}

// autopilots returns all RdsAutopilots by name.
func (d *decisions) autopilots() map[string]*v1alpha1.RdsAutopilot {
	d.t.Helper()
	list, err := listAutopilots(d.ctx, d.raps)
	if err != nil {
		d.t.Fatal(err)
	}
	all := make(map[string]*v1alpha1.RdsAutopilot, len(list))
	for i := range list {
		all[list[i].Name] = &list[i]
	}
	return all
}

// lacks returns which expected result of the row is still missing.
func (x *decided) lacks(a *v1alpha1.RdsAutopilot) string {
	if a == nil {
		return "there is no RdsAutopilot"
	}
	if x.reason != "" && !x.reported(a) {
		return fmt.Sprintf("want %s %s; decisions %+v, conditions %+v", x.metric, x.reason, a.Status.Decisions, a.Status.Conditions)
	}
	for _, to := range x.to {
		if !slices.ContainsFunc(a.Status.Changes, func(ch v1alpha1.Change) bool {
			return ch.To == to && ch.By == v1alpha1.ByAutopilot && ch.Outcome == v1alpha1.OutcomeCompleted
		}) {
			return fmt.Sprintf("want %s; changes %+v, pending %+v", to, a.Status.Changes, a.Status.Pending)
		}
	}
	return ""
}

func (x *decided) reported(a *v1alpha1.RdsAutopilot) bool {
	if x.metric == "" {
		armed := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionArmed)
		return armed != nil && armed.Status == metav1.ConditionFalse && armed.Reason == x.reason
	}
	return slices.ContainsFunc(a.Status.Decisions, func(r v1alpha1.DecisionRecord) bool {
		return r.Metric == x.metric && r.Reason == x.reason && r.Message != ""
	})
}

// check compares the cloud, the status and the Rds with the row.
func (d *decisions) check(t *testing.T, x *decided, a *v1alpha1.RdsAutopilot) {
	if wrong := x.lacks(a); wrong != "" {
		t.Fatal(wrong)
	}
	volumeGB, flavor := x.first.VolumeGB, x.first.Flavor
	for _, to := range x.to {
		if gb, err := strconv.Atoi(to); err == nil {
			volumeGB = gb
		} else {
			flavor = to
		}
	}
	in := x.Instance()
	if in.ID != "" && (in.VolumeGB != volumeGB || in.Flavor != flavor) {
		t.Errorf("the cloud has %d GB and %s, want %d GB and %s", in.VolumeGB, in.Flavor, volumeGB, flavor)
	}
	if asked, begun := d.asked(x.ID); len(x.fault) == 0 && (begun != len(x.to)+x.first.FailingJobs || asked > 0 && len(x.to) == 0) {
		t.Errorf("the cloud was asked for %d changes and has begun %d, want %d", asked, begun, len(x.to)+x.first.FailingJobs)
	}
	if (a.Status.Pending != nil || a.Status.Overtaken != nil) && !x.unsolved {
		t.Errorf("pending %+v, overtaken %+v", a.Status.Pending, a.Status.Overtaken)
	}
	if x.reason != "Stalled" && slices.ContainsFunc(a.Status.Decisions, func(r v1alpha1.DecisionRecord) bool { return r.Reason == "Stalled" }) {
		t.Errorf("something has stalled: %+v", a.Status.Decisions)
	}
	rds, err := x.Rds(d.ctx)
	if x.alone != (err != nil) {
		t.Errorf("without an Rds %t, and %v", x.alone, err)
	}
	if !x.alone && len(x.to) > 0 && !x.unsolved && (int(rds.Spec.VolumeSize) != in.VolumeGB || rds.Spec.FlavorRef != in.Flavor) {
		t.Errorf("the Rds asks for %d GB and %s, the cloud has %d GB and %s", rds.Spec.VolumeSize, rds.Spec.FlavorRef, in.VolumeGB, in.Flavor)
	}
}

// asked returns how many changes of an instance the cloud was asked for, and how many of them it has begun.
func (d *decisions) asked(id string) (asked, begun int) {
	for _, r := range d.Cloud.Requests() {
		if r.Method == http.MethodPost && r.Service == "rds" && strings.Contains(r.URI, id) {
			asked++
			if r.Status == http.StatusAccepted {
				begun++
			}
		}
	}
	return asked, begun
}
