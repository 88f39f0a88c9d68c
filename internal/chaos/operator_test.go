package chaos_test

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/internal/faults"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
	"github.com/mcsps/rds-autopilot/internal/world"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
)

// Storage calls for more, and CPU while that is pending. The operator is frozen for minutes of the cloud when it is
// asked, then applies every snapshot that queued up, and those that found the instance busy again and again, old
// flavors included, and writes whole objects between our writes. It is asked once for each all the same.
func TestAnOperatorAtItsWorstIsAskedOnceForEach(t *testing.T) {
	h := newHouse(t, "worst")
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
	}}, "--leader-elect=false")
	h.armed()
	if err := h.PatchAutopilot(h.within(), `{"spec":{"flavor":{"cooldownSeconds":0,"alarm":{"count":1}}}}`); err != nil {
		t.Fatal(err)
	}
	h.world.Operator.Pause()
	defer h.world.Operator.Resume()
	h.alarm()
	if _, err := h.WaitRds(h.within(), "50 GB are asked for", func(r *otcv1.Rds) bool { return r.Spec.VolumeSize == 50 }); err != nil {
		t.Fatal(err)
	}
	if err := h.SetWorkload(otcsim.Workload{UsedGB: 33, CPUDemand: 1.9}); err != nil {
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
