package chaos_test

import (
	"bytes"
	"context"
	"math/rand/v2"
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

func sweeps(h *installation, p *world.Process) float64 {
	h.t.Helper()
	m, err := p.Metrics(h.within())
	if err != nil {
		h.t.Fatal(err)
	}
	return m.Sum("rds_autopilot_sweep_duration_seconds_count")
}

func TestWithEveryMessageLostAnAlarmIsActedOnWithinOneSweep(t *testing.T) {
	h := newInstallation(t, "all-lost")
	h.mute()
	p := h.serve("--leader-elect=false")
	h.armed()
	h.alarm()
	ctx := h.within()
	err := world.Eventually(ctx, "Cloud Eye says alarm", func(context.Context) (bool, error) {
		rule, ok := h.Rule(v1alpha1.MetricStorage)
		return ok && rule.State == otcsim.StateAlarm, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before := sweeps(h, p)
	if _, err := h.WaitRds(ctx, "50 GB are asked for", func(r *otcv1.Rds) bool { return r.Spec.VolumeSize == 50 }); err != nil {
		t.Fatal(err)
	}
	// One that had begun before the alarm, the one that sees it, and one that may be over by the time it is counted.
	if took := sweeps(h, p) - before; took > 3 {
		t.Errorf("%g sweeps went by before it was acted on", took)
	}
	h.grownOnce()
	a, err := h.Autopilot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Status.Intake.Signals) > 0 {
		t.Errorf("signals %+v, although every message was to be lost", a.Status.Intake.Signals)
	}
}

func TestEveryMessageThreeTimesAndInAnyOrderIsAsGoodAsOnce(t *testing.T) {
	h := newInstallation(t, "tripled")
	h.triple = rand.New(rand.NewPCG(1, 1))
	p := h.serve("--leader-elect=false")
	h.armed()
	h.alarm()
	h.grownOnce()
	h.mu.Lock()
	left := h.copies
	h.copies = nil
	h.mu.Unlock()
	for _, body := range left { // alarms after the ok that ended them
		if status := h.bring(h.within(), body); status != http.StatusOK {
			t.Errorf("a copy was answered %d", status)
		}
	}
	h.grownOnce()
	m, err := p.Metrics(h.within())
	if err != nil {
		t.Fatal(err)
	}
	again := m.Sum("rds_autopilot_notifications_total", "type=Notification", "result=duplicate") +
		m.Sum("rds_autopilot_notifications_total", "type=Notification", "result=stale")
	if again < 2 {
		t.Errorf("%g copies were known as such: too few to show anything", again)
	}
}

func TestTheSameMessageFiftyTimesAtTwoReplicasIsOneSignal(t *testing.T) {
	h := newInstallation(t, "fifty")
	h.mute()
	ps := []*world.Process{h.serve(), h.serve()}
	h.armed()
	rule, ok := h.Rule(v1alpha1.MetricStorage)
	if !ok {
		t.Fatal("no rule")
	}
	a, err := h.Autopilot(h.within())
	if err != nil {
		t.Fatal(err)
	}
	const id = "00000000000000000000000000000050"
	body, err := h.world.Cloud.SignedAlarm(id, a.Status.Alarms.TopicURN, rule.ID, 82.5)
	if err != nil {
		t.Fatal(err)
	}
	h.alarm()
	var posts sync.WaitGroup
	for i := range 50 {
		posts.Go(func() {
			r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, ps[i%2].WebhookURL+"/smn", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			_ = res.Body.Close() // nothing in it is of interest
			if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("answered %d", res.StatusCode)
			}
		})
	}
	posts.Wait()
	stored, duplicates := 0.0, 0.0
	for _, p := range ps {
		m, err := p.Metrics(h.within())
		if err != nil {
			t.Fatal(err)
		}
		stored += m.Sum("rds_autopilot_notifications_total", "type=Notification", "result=stored")
		duplicates += m.Sum("rds_autopilot_notifications_total", "type=Notification", "result=duplicate")
	}
	if stored != 1 || duplicates < 25 {
		t.Errorf("stored %g times and known %g times, want once, and most of the others", stored, duplicates)
	}
	if a, err = h.Autopilot(h.within()); err != nil {
		t.Fatal(err)
	}
	if s := a.Status.Intake.Signals; len(s) != 1 || s[0].MessageID != id {
		t.Errorf("signals %+v, want that one", s)
	}
	h.grownOnce()
}

// The leader dies between the intent and the patch. How long the other one takes is the lease's 15 s and its retry.
func TestALeaderThatDiesInItsDecisionIsFollowedByOneThatEndsIt(t *testing.T) {
	h := newInstallation(t, "followed")
	leader := make(chan *world.Process, 1)
	killed := make(chan time.Time, 1)
	mortal := faults.NewNth(1, func(r *http.Request) bool { return writeOf(r) == writePatch }, func(*http.Request) *otcsim.Fault {
		_ = (<-leader).Kill() // never fails
		killed <- time.Now()
		return &otcsim.Fault{Hang: true}
	})
	first := h.proxied(faults.Hooks{Fault: mortal.Fault})
	leader <- first
	leads := func(l world.Line) bool { return l.Msg == "leadership" && l.Fields["leading"] == true }
	if _, err := first.WaitLine(h.within(), "it leads", leads); err != nil {
		t.Fatal(err)
	}
	second := h.serve()
	h.armed()
	h.alarm()
	var at time.Time
	select {
	case at = <-killed:
	case <-h.within().Done():
		t.Fatal("the leader never patched")
	}
	a, err := h.Autopilot(h.within())
	if err != nil {
		t.Fatal(err)
	}
	if a.Status.Pending == nil || a.Status.Pending.To != "50" {
		t.Errorf("it died with the intent %+v", a.Status.Pending)
	}
	line, err := second.WaitLine(h.within(), "the other one leads", leads)
	if err != nil {
		t.Fatal(err)
	}
	h.grownOnce()
	t.Logf("the follower led %s after the kill", line.Time.Sub(at).Round(100*time.Millisecond))
	if n := count(second.Lines(), func(l world.Line) bool { return l.Fields["action"] == "GrowVolume" }); n != 1 {
		t.Errorf("the follower patched %d times", n)
	}
}
