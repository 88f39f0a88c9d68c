// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	otcv1 "github.com/mcsps/rds-autopilot/k8s/api/otc/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
	"github.com/mcsps/rds-autopilot/test/world"
	"github.com/mcsps/rds-autopilot/test/world/faults"
)

func TestTwoReplicasConvergeToOneState(t *testing.T) {
	w := start(t, world.Options{})
	w.MustServe(t)
	w.MustServe(t)
	db := w.MustAdd(t, world.Database{Name: "two-replicas", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	if _, err := db.WaitAutopilot(world.Within(t), "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	rule, ok := db.Rule(v1alpha1.MetricStorage)
	if !ok {
		t.Fatal("no rule")
	}
	begin := time.Now()
	message := func(n int) []byte {
		at := begin.Add(time.Duration(n) * time.Second)
		_, text, err := w.Cloud.AlarmMessage(rule.ID, "ok", 10, at.Add(-time.Minute), at)
		if err != nil {
			t.Fatal(err)
		}
		return w.Cloud.Sign(simcloud.Envelope{
			Type: "Notification", MessageID: fmt.Sprintf("%032x", n), TopicURN: w.TopicURN(), Message: text,
			Timestamp: begin.UTC().Format("2006-01-02T15:04:05Z"),
		}).JSON()
	}
	const newest = 10
	var bodies [][]byte
	for n := range newest {
		bodies = append(bodies, message(n+1))
	}
	for range 50 { // the newest one is sent 51 times
		bodies = append(bodies, bodies[newest-1])
	}
	rand.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
	var mu sync.Mutex
	answers := map[string]int{}
	var all sync.WaitGroup
	for _, body := range bodies {
		all.Go(func() {
			for { // as SMN does after a 503
				status, text, err := w.Post(world.Within(t), body)
				if err != nil || status != 200 && status != 503 {
					t.Errorf("status %d (%s), %v", status, text, err)
				}
				if status == 503 && t.Context().Err() == nil {
					continue
				}
				mu.Lock()
				answers[strings.TrimSpace(text)]++
				mu.Unlock()
				return
			}
		})
	}
	all.Wait()
	a, err := db.Autopilot(world.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	found := slices.DeleteFunc(a.Status.Intake.Signals, func(s v1alpha1.Signal) bool { return s.Metric != v1alpha1.MetricStorage })
	if len(found) != 1 || found[0].MessageID != fmt.Sprintf("%032x", newest) {
		t.Errorf("signals %+v, want the newest alone", found)
	}
	if answers["stored"] > newest || answers["stored"]+answers["duplicate"]+answers["stale"] != len(bodies) {
		t.Errorf("answers %v", answers)
	}
}

// patchHolder is a proxy of the API server. It stops the service's process at its first patch of an Rds, and forwards the patch
// after release.
type patchHolder struct {
	*faults.Proxy
	stopped chan error
	release chan struct{}
	late    chan int // the status of the patch
}

func newPatchHolder(t *testing.T, w *world.World, stop func() error) *patchHolder {
	t.Helper()
	i := &patchHolder{stopped: make(chan error, 1), release: make(chan struct{}), late: make(chan int, 1)}
	ours := func(r *http.Request) bool { return faults.KubeName(r) == "patch rdss" }
	hold := faults.NewNth(1, ours, func(*http.Request) *simcloud.Fault {
		i.stopped <- stop()
		<-i.release
		return nil
	})
	var once sync.Once
	var err error
	i.Proxy, err = faults.NewProxy(w.ServiceConfig(), faults.Hooks{Fault: hold.Fault, Answered: func(r *http.Request, _ []byte, status int) {
		if ours(r) {
			once.Do(func() { i.late <- status })
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

// sizes records the values of spec.volumesize.
type sizes struct {
	mu   sync.Mutex
	seen []int32
}

func (s *sizes) record(r *otcv1.Rds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.seen); n == 0 || s.seen[n-1] != r.Spec.VolumeSize {
		s.seen = append(s.seen, r.Spec.VolumeSize)
	}
}

// grownOnce waits until a database has grown and its alarm is over, and fails unless it grew once, from 100 to 110 GB.
func grownOnce(t *testing.T, db *world.DB, history *sizes) {
	t.Helper()
	a, err := db.WaitAutopilot(world.Within(t), "it has grown", func(a *v1alpha1.RdsAutopilot) bool {
		return len(a.Status.Changes) > 0 && a.Status.Pending == nil && state(a, v1alpha1.MetricStorage) == v1alpha1.StateOK
	})
	if err != nil {
		t.Fatal(err)
	}
	if ch := a.Status.Changes; len(ch) != 1 || ch[0].From != "100" || ch[0].To != "110" || ch[0].By != v1alpha1.ByAutopilot {
		t.Errorf("changes %+v, want one to 110", ch)
	}
	history.mu.Lock()
	defer history.mu.Unlock()
	if !slices.Equal(history.seen, []int32{100, 110}) {
		t.Errorf("spec.volumesize was %v, want 100 and then 110", history.seen)
	}
}

// A stopped leader, and its patch, come back after another replica has led and acted.
func TestFrozenLeaderChangesNothingWhenItResumes(t *testing.T) {
	level.Long(t)
	w := start(t, world.Options{})
	ctx := world.Within(t)
	var first *world.Process
	i := newPatchHolder(t, w, func() error { return first.Signal(syscall.SIGSTOP) })
	release := sync.OnceFunc(func() { close(i.release) })
	t.Cleanup(release)
	file := t.TempDir() + "/kubeconfig"
	err := i.WriteKubeconfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if first, err = w.Serve(ctx, "--kubeconfig", file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Kill() })
	first.MustLead(t)
	second := w.MustServe(t)
	db := w.MustAdd(t, world.Database{Name: "frozen", Flavor: "rds.mysql.n1.large.4", VolumeGB: 100, Workload: simcloud.Workload{UsedGB: 10}, Autopilot: true})
	var history sizes
	go db.WatchRds(ctx, history.record)
	if _, err := db.WaitAutopilot(ctx, "it is armed", world.Armed); err != nil {
		t.Fatal(err)
	}
	if err := db.SetWorkload(simcloud.Workload{UsedGB: 93}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-i.stopped:
		if err != nil {
			t.Fatal(err)
		}
	case <-ctx.Done():
		t.Fatal("it does not patch")
	}
	second.MustLead(t)
	grownOnce(t, db, &history)
	release()
	if code := <-i.late; code != http.StatusUnprocessableEntity {
		t.Errorf("the late patch was answered %d", code)
	}
	if err := first.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := first.WaitLine(ctx, "it gives up leading", func(l world.Line) bool { return l.Msg == "leadership" && l.Fields["leading"] == false }); err != nil {
		t.Error(err)
	}
	waitSweeps(t, second, 2)
	grownOnce(t, db, &history)
}
