// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/mcsps/rds-autopilot/internal/level"
	"github.com/mcsps/rds-autopilot/internal/otcsim"
)

// gate kills the process at its n-th call of the cloud: nothing from then on is answered, nor carried out but that call,
// where it is to be.
type gate struct {
	n int
	moment
	hit  chan struct{} // closed at that call
	dead chan struct{} // to be closed once nothing of the process is left

	mu   sync.Mutex
	seen []string
}

// moment is when the process dies.
type moment struct {
	writes  bool     // only the leader's calls that change something count
	confirm bool     // only the receiver's confirmation counts: it runs beside the leader's calls, in no given order
	only    []string // operations that count; all if nil
	applied bool     // that call is carried out
}

func (m moment) counts(operation string) bool {
	switch {
	case m.only != nil:
		return slices.Contains(m.only, operation)
	case m.confirm:
		return operation == "Confirm"
	case m.writes:
		return operation != "Confirm" && writes(operation)
	}
	return true
}

func newGate(n int, m moment) *gate {
	return &gate{n: n, moment: m, hit: make(chan struct{}), dead: make(chan struct{})}
}

func (g *gate) fault(r *http.Request) *otcsim.Fault {
	service, operation := otcsim.OperationOf(r)
	if service == "iam" { // comes before all else
		return nil
	}
	g.mu.Lock()
	before := len(g.seen)
	if before < g.n && g.counts(operation) {
		g.seen = append(g.seen, operation)
	}
	at := len(g.seen)
	g.mu.Unlock()
	switch {
	case at < g.n:
		return nil
	case before < at:
		close(g.hit)
		if g.applied {
			return &otcsim.Fault{Apply: true, Hang: true}
		}
	}
	if service == "console" || service == "cert" { // asked by the receiver, which gives up by itself
		return &otcsim.Fault{Hang: true}
	}
	select {
	case <-g.dead:
	case <-r.Context().Done():
	}
	return &otcsim.Fault{Status: http.StatusBadRequest} // to the last goroutines of the dead
}

// kill waits until the gate is hit or the work is done, ends the process and tells at which call; empty if it was done.
func (s *service) kill(g *gate, done func() bool) (operation string) {
	s.t.Helper()
	hit := func() bool {
		select {
		case <-g.hit:
			return true
		default:
			return false
		}
	}
	s.until(fmt.Sprintf("call %d is reached", g.n), func() bool { return hit() || done() })
	s.stop()
	close(g.dead)
	s.fault.Store(nil)
	if hit() {
		operation = g.seen[g.n-1]
	}
	return operation
}

// writes are the calls that change something: of the others it does not matter whether they were carried out.
func writes(operation string) bool {
	return slices.Contains([]string{"CreateTopic", "UpdateTopic", "DeleteTopic", "Subscribe", "DeleteSubscription", "CreateAlarm", "UpdateAlarm",
		"SwitchAlarm", "DeleteAlarm", "Confirm"}, operation)
}

// killedArming arms a database of its own in a process that is killed, and in another one.
func (f *fleet) killedArming(t *testing.T, ns string, g *gate) (operation string) {
	f.breaks(g.fault)
	only := flags{namespaces: []string{ns}}
	operation = f.start(only).kill(g, func() bool {
		a := f.autopilot(ns, "db")
		return a != nil && isArmed(a)
	})
	second := f.start(only)
	a := f.armedNow(ns, "db")
	second.stop()
	f.whole(t, a)
	return operation
}

// killedDisarming does that with false.
func (f *fleet) killedDisarming(t *testing.T, ns string, g *gate) (operation string) {
	only := flags{namespaces: []string{ns}}
	first := f.start(only)
	f.whole(t, f.armedNow(ns, "db"))
	first.rest()
	f.breaks(g.fault)
	f.patch(f.rdss(ns), "db", `{"spec":{"autopilot":false}}`)
	operation = first.kill(g, func() bool { return len(f.autopilot(ns, "db").Finalizers) == 0 })
	second := f.start(only)
	a := f.says(ns, "db", false, "NotEnabled")
	f.until("it is let go of", func() bool {
		a = f.autopilot(ns, "db")
		return len(a.Finalizers) == 0 && a.Status.Alarms.TopicURN == ""
	})
	second.stop()
	if left := f.thingsOf(name(a)); left.count() > 0 {
		t.Errorf("left: %+v", left)
	}
	return operation
}

func TestKilledAtAnyCallThereIsOneOfEachOrNone(t *testing.T) {
	t.Parallel()
	for _, work := range []struct {
		name     string
		run      func(*fleet, *testing.T, string, *gate) string
		writes   []string
		confirms []string
	}{
		{"arming", (*fleet).killedArming, []string{"CreateAlarm", "CreateAlarm", "CreateAlarm", "CreateTopic", "Subscribe"}, []string{"Confirm"}},
		{"disarming", (*fleet).killedDisarming, []string{"DeleteAlarm", "DeleteAlarm", "DeleteAlarm", "DeleteTopic"}, nil},
	} {
		for when, m := range map[string]moment{
			"at-any-call": {}, "before-a-write": {writes: true}, "after-a-write": {writes: true, applied: true},
			"before-confirming": {confirm: true}, "after-confirming": {confirm: true, applied: true},
		} {
			t.Run(work.name+"-"+when, func(t *testing.T) {
				level.InBubble(t, func(t *testing.T) {
					f := newFleet(t, otcsim.Settings{})
					f.runCloud()
					var at []string
					for n := 1; ; n++ {
						ns := f.namespace(fmt.Sprintf("%s-%s-%d", work.name, when, n))
						f.database(ns, "db", plain())
						operation := work.run(f, t, ns, newGate(n, m))
						if t.Failed() || n > 60 {
							t.Fatalf("killed at call %d, %s", n, operation)
						}
						if operation == "" {
							break
						}
						at = append(at, operation)
					}
					t.Log("killed at", at)
					slices.Sort(at)
					want := slices.Concat(work.writes, work.confirms)
					switch {
					case m.confirm:
						want = work.confirms
					case m.writes:
						want = work.writes
					}
					if (m.writes || m.confirm) && !slices.Equal(at, want) || len(at) < len(want) {
						t.Errorf("killed at %v, want %v", at, want)
					}
				})
			})
		}
	}
}
