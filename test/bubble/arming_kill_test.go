// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/mcsps/rds-autopilot/test/level"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// gate kills the process at its n-th write to the cloud. The cloud carries out that write if applied is set. It answers
// nothing from then on.
type gate struct {
	n       int
	applied bool
	hit     chan struct{} // closed at that write
	dead    chan struct{} // the test closes it once the process has ended

	mu   sync.Mutex
	seen []string
}

func newGate(n int, applied bool) *gate {
	return &gate{n: n, applied: applied, hit: make(chan struct{}), dead: make(chan struct{})}
}

func (g *gate) fault(r *http.Request) *simcloud.Fault {
	service, operation := simcloud.OperationOf(r)
	if service == "iam" { // comes before all else
		return nil
	}
	g.mu.Lock()
	before := len(g.seen)
	if before < g.n && writes(operation) {
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
			return &simcloud.Fault{Apply: true, Hang: true}
		}
	}
	if service == "console" || service == "cert" { // asked by the receiver, which gives up by itself
		return &simcloud.Fault{Hang: true}
	}
	select {
	case <-g.dead:
	case <-r.Context().Done():
	}
	return &simcloud.Fault{Status: http.StatusBadRequest} // to the last goroutines of the dead process
}

// kill ends the process once the gate is hit or the work is done. It returns the write of the gate, or "" if the work was done.
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
	s.until(fmt.Sprintf("write %d is reached", g.n), func() bool { return hit() || done() })
	s.stop()
	close(g.dead)
	s.fault.Store(nil)
	if hit() {
		operation = g.seen[g.n-1]
	}
	return operation
}

// writes reports whether the leader changes something in the cloud by this operation.
func writes(operation string) bool {
	return slices.Contains([]string{"CreateTopic", "DeleteTopic", "Subscribe", "CreateAlarm", "DeleteAlarm"}, operation)
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
	f.until("its finalizer is removed", func() bool {
		a = f.autopilot(ns, "db")
		return len(a.Finalizers) == 0 && a.Status.Alarms.TopicURN == ""
	})
	second.stop()
	if left := f.thingsOf(name(a)); left.count() > 0 {
		t.Errorf("left: %+v", left)
	}
	return operation
}

// TestKilledAtAnyWriteWhileArmingTheNextProcessCompletesIt kills the whole service. Package alarms tests crashes at every call.
func TestKilledAtAnyWriteWhileArmingTheNextProcessCompletesIt(t *testing.T) {
	t.Parallel()
	for _, work := range []struct {
		name   string
		run    func(*fleet, *testing.T, string, *gate) string
		writes []string
	}{
		{"arming", (*fleet).killedArming, []string{"CreateAlarm", "CreateAlarm", "CreateAlarm", "CreateTopic", "Subscribe"}},
		{"disarming", (*fleet).killedDisarming, []string{"DeleteAlarm", "DeleteAlarm", "DeleteAlarm", "DeleteTopic"}},
	} {
		t.Run(work.name, func(t *testing.T) {
			level.InBubble(t, func(t *testing.T) {
				f := newFleet(t, simcloud.Settings{})
				f.runCloud()
				var at []string
				for n := 1; n <= len(work.writes); n++ {
					ns := f.namespace(fmt.Sprintf("%s-%d", work.name, n))
					f.database(ns, "db", plain())
					at = append(at, work.run(f, t, ns, newGate(n, n%2 == 0)))
				}
				if slices.Sort(at); !slices.Equal(at, work.writes) {
					t.Errorf("killed at %v, want %v", at, work.writes)
				}
			})
		})
	}
}
