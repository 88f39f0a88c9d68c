// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/fakeoperator"
	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
)

// The operator has every fault that the stand-in knows: it is frozen while the alarms come, then applies all that queued up, the
// oldest first, goes back and forth between flavors, and writes whole objects between our writes. Asked itself, the cloud makes
// one change for one evidence, and nobody but the operator goes back and forth.
func TestBesideTheOperatorAtItsWorstEachChangeIsMadeOnce(t *testing.T) {
	level.Long(t)
	var mu sync.Mutex
	back := map[string]int{} // times that the operator went back to the first flavor, by database
	w := start(t, world.Options{Cloud: otcsim.Options{Settings: otcsim.Settings{ResizeDuration: 3 * time.Minute}}, OnAct: func(a fakeoperator.Act) {
		mu.Lock()
		defer mu.Unlock()
		if a.What == fakeoperator.Resize && a.To == former {
			back[a.Name]++
		}
	}})
	p := w.MustServe(t, "--allow-apply", "Cloud")
	ctx := world.Within(t)
	w.Operator.Replay(6, 20*time.Millisecond)
	loads := []otcsim.Workload{ // too much for the first flavor, and in alarm whenever the operator is back at it
		{UsedGB: 10, CPUDemand: 1.9}, {UsedGB: 93, CPUDemand: 1.9}, {UsedGB: 93, MemoryDemandGB: 7.8},
	}
	var dbs []*world.DB
	for i := range loads {
		db := w.MustAdd(t, world.Database{Name: fmt.Sprintf("db-%d", i), Flavor: former, VolumeGB: 100, Workload: otcsim.Workload{UsedGB: 10}, Autopilot: true})
		if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
			t.Fatal(err)
		}
		if err := db.PatchAutopilot(ctx, `{"spec":{"apply":"Cloud","flavor":{"cooldownSeconds":0,"maxChangesPerDay":10,"alarm":{"periodSeconds":1,"count":1}}}}`); err != nil {
			t.Fatal(err)
		}
		dbs = append(dbs, db)
	}
	evidence := newEvidenceSeen()
	for _, db := range dbs {
		go db.WatchAutopilot(ctx, evidence.look)
	}
	w.Operator.Pause()
	defer w.Operator.Resume()
	queued := time.NewTimer(3 * time.Second) // it looks at each Rds every second
	<-queued.C
	for i, db := range dbs {
		if err := db.SetWorkload(loads[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, db := range dbs {
		if _, err := db.WaitAutopilot(ctx, "the cloud has what was asked for, and the operator knows nothing of it", func(a *v1alpha1.RdsAutopilot) bool {
			return a.Status.Pending == nil && a.Status.Overtaken == nil && db.Instance().Flavor != former && (loads[i].UsedGB < 90 || db.Instance().VolumeGB == 110)
		}); err != nil {
			t.Fatal(err)
		}
	}
	w.Operator.Resume()
	for _, db := range dbs {
		if _, err := db.WaitAutopilot(ctx, "it says that the flavor was taken back", func(a *v1alpha1.RdsAutopilot) bool {
			return slices.ContainsFunc(a.Status.Decisions, func(r v1alpha1.DecisionRecord) bool { return r.Reason == "RolledBack" || r.Reason == "Contested" })
		}); err != nil {
			t.Fatal(err)
		}
	}
	tempted := time.NewTimer(w.Span(15 * time.Minute)) // the operator goes back and forth, and each time back there is an alarm
	<-tempted.C

	for i, db := range dbs {
		want := []string{"Flavor"}
		if loads[i].UsedGB > 90 {
			want = []string{"Volume", "Flavor"}
		}
		var begun []string
		for _, l := range p.Lines() {
			if l.Msg == "the cloud has begun" && l.Field("name") == db.Name {
				begun = append(begun, l.Field("kind"))
			}
		}
		slices.Sort(want)
		slices.Sort(begun)
		if !slices.Equal(begun, want) {
			t.Errorf("%s: the cloud was made to change %v, want %v", db.Name, begun, want)
		}
		mu.Lock()
		if back[db.Name] == 0 {
			t.Errorf("%s: the operator never went back: this shows nothing", db.Name)
		}
		mu.Unlock()
	}
	evidence.mustDiffer(t)
}

// evidenceSeen are the changes of ours by the evidence that asked for them.
type evidenceSeen struct {
	mu   sync.Mutex
	to   map[string]map[string]bool
	seen int
}

func newEvidenceSeen() *evidenceSeen { return &evidenceSeen{to: map[string]map[string]bool{}} }

// look notes what one version of a status tells of.
func (e *evidenceSeen) look(a *v1alpha1.RdsAutopilot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	note := func(kind v1alpha1.ChangeKind, evidence time.Time, to string) {
		key := fmt.Sprint(a.Name, " ", kind, " ", evidence)
		if e.to[key] == nil {
			e.to[key] = map[string]bool{}
		}
		e.to[key][to] = true
		e.seen++
	}
	for _, ch := range a.Status.Changes {
		if ch.By == v1alpha1.ByAutopilot && ch.EvidenceTime != nil {
			note(ch.Kind, ch.EvidenceTime.Time, ch.To)
		}
	}
	for _, i := range a.Status.Intents() {
		note(i.Kind, i.EvidenceTime.Time, i.To)
	}
}

func (e *evidenceSeen) mustDiffer(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen == 0 {
		t.Error("no change was seen")
	}
	for key, to := range e.to {
		if len(to) > 1 {
			t.Errorf("%s asked for %v", key, to)
		}
	}
}
