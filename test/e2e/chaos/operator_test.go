// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
	"github.com/mcsps/rds-autopilot/test/world/faults"
)

// Storage calls for more, and CPU while that is pending. The operator is frozen for minutes of the cloud when it is
// asked, then applies every snapshot that queued up, and those that found the instance busy again and again, old
// flavors included, and writes whole objects between our writes. It is asked once for each all the same.
//
// Where the autopilot asks the cloud itself, it does not wait for the operator, and asks for each once as well.
func TestWorstOperatorGetsOnePatchPerChange(t *testing.T) {
	for _, apply := range []v1alpha1.Apply{v1alpha1.ApplyOperator, v1alpha1.ApplyCloud} {
		t.Run(string(apply), func(t *testing.T) { atItsWorst(t, apply) })
	}
}

func atItsWorst(t *testing.T, apply v1alpha1.Apply) {
	h := newInstallation(t)
	var mu sync.Mutex
	asked := map[string]int{}
	history := newHistory()
	h.proxied(faults.Hooks{Answered: func(r *http.Request, body []byte, status int) {
		history.answered(r, body, status)
		mu.Lock()
		defer mu.Unlock()
		clear(asked)
		history.mu.Lock()
		defer history.mu.Unlock()
		for _, x := range history.asked {
			asked[x.field]++
		}
	}}, "--leader-elect=false", "--allow-apply=Cloud", "--allowed-instances=*/*")
	h.armed()
	if err := h.PatchAutopilot(h.within(), `{"spec":{"apply":"`+string(apply)+`","flavor":{"cooldownSeconds":0,"alarm":{"count":1}}}}`); err != nil {
		t.Fatal(err)
	}
	h.world.Operator.Pause()
	defer h.world.Operator.Resume()
	h.alarm()
	if _, err := h.WaitRds(h.within(), "50 GB are asked for", func(r *otcv1.Rds) bool { return r.Spec.VolumeSize == 50 }); err != nil {
		t.Fatal(err)
	}
	if err := h.SetWorkload(simcloud.Workload{UsedGB: 33, CPUDemand: 1.9}); err != nil {
		t.Fatal(err)
	}
	frozen := time.NewTimer(h.world.Span(12 * time.Minute)) // the cloud's minutes: CPU's alarm comes, and storage's again
	<-frozen.C
	h.world.Operator.Resume()
	a, err := h.WaitAutopilot(h.within(), "both are completed", func(a *v1alpha1.RdsAutopilot) bool {
		return a.Status.Pending == nil && count(a.Status.Changes, func(ch v1alpha1.Change) bool { return ch.By == v1alpha1.ByAutopilot }) >= 2
	})
	if err != nil {
		t.Fatal(err)
	}
	err = world.Eventually(h.within(), "the cloud has what the Rds asks for", func(ctx context.Context) (bool, error) {
		r, err := h.Rds(ctx)
		in := h.Instance()
		return err == nil && int(r.Spec.VolumeSize) == in.VolumeGB && r.Spec.FlavorRef == in.Flavor && in.VolumeGB == 50 && shapeOf(in.Flavor).vcpus == 4, err
	})
	if err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := map[string]int{"volumesize": 1, "flavorref": 1}; !maps.Equal(asked, want) {
		t.Errorf("it was asked for %v, want %v; changes %+v", asked, want, a.Status.Changes)
	}
	if len(history.wrong) > 0 {
		t.Error(history.wrong)
	}
}

// The archived operator applies old flavors again after a backup: back and forth, while the Rds has ours all the while.
// That is seen and said, and no larger flavor is asked for on top of it.
func TestRolledBackFlavorBlocksFlavorsForADay(t *testing.T) {
	h := newInstallation(t)
	var mu sync.Mutex
	asked := 0
	h.proxied(faults.Hooks{Answered: func(r *http.Request, body []byte, status int) {
		if r.Method == http.MethodPatch && status == http.StatusOK && bytes.Contains(body, []byte(`"replace"`)) && bytes.Contains(body, []byte("/spec/flavorref")) {
			mu.Lock()
			defer mu.Unlock()
			asked++
		}
	}}, "--leader-elect=false")
	h.armed()
	if err := h.PatchAutopilot(h.within(), `{"spec":{"flavor":{"cooldownSeconds":0,"maxChangesPerDay":10,"memory":{"enabled":false},"alarm":{"count":1}}}}`); err != nil {
		t.Fatal(err)
	}
	h.world.Operator.Replay(6, 20*time.Millisecond)
	defer h.world.Operator.Replay(0, 0)
	id := h.Instance().ID
	status := func(s string) {
		if err := h.world.Cloud.ChangeInstance(id, func(in *simcloud.Instance) { in.Status = s }); err != nil {
			t.Fatal(err)
		}
	}
	status("BACKING UP") // and the operator postpones what it has
	if err := h.SetWorkload(simcloud.Workload{UsedGB: 10, CPUDemand: 7.8}); err != nil {
		t.Fatal(err)
	}
	frozen := time.NewTimer(h.world.Span(10 * time.Minute))
	<-frozen.C
	status(simcloud.StatusActive)
	a, err := h.WaitAutopilot(h.within(), "the roll-back is said", func(a *v1alpha1.RdsAutopilot) bool {
		c := meta.FindStatusCondition(a.Status.Conditions, v1alpha1.ConditionContested)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == "RolledBack"
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(a.Status.Changes, func(ch v1alpha1.Change) bool { return ch.Outcome == v1alpha1.OutcomeRolledBack }) {
		t.Errorf("changes %+v", a.Status.Changes)
	}
	rest := time.NewTimer(h.world.Span(40 * time.Minute)) // the alarm goes on, and the cloud is at our flavor again
	<-rest.C
	mu.Lock()
	defer mu.Unlock()
	if asked != 1 {
		t.Errorf("flavors were asked for %d times, want once; changes %+v", asked, a.Status.Changes)
	}
}
