// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	"github.com/mcsps/rds-autopilot/test/level"
)

// explorer visits each state of a world once, breadth first.
type explorer struct {
	queue       []state
	nodes       []node // of the states that are or were in the queue
	visited     map[uint64]bool
	fields      map[reflect.Type][]int
	transitions int
	broken      string
	events      []string // the shortest way to what is broken
	missing     []string // events of starts that were not possible
}

type state struct {
	world world
	node  int
}

// node says how a state was reached.
type node struct {
	parent, depth int
	event         string
}

// settled is one of how many states from which all faults end.
const settled = 16

// visit does a step and judges the next state. If that is new and there is room, or without a limit, it enters the queue.
// visit returns false once a promise is broken.
func (e *explorer) visit(from state, s step, most int) bool {
	to := from.world
	to.all = slices.Clone(to.all)
	s.do(&to)
	to.judge(&from.world)
	e.transitions++
	f := form{now: to.now, fields: e.fields}
	f.addValue(reflect.ValueOf(to))
	event := s.name
	isNew := !e.visited[f.hash]
	if e.visited[f.hash] = true; isNew && to.broken == "" && f.hash%settled == 0 {
		calm := to
		calm.all = slices.Clone(to.all)
		calm.settle()
		to.broken, event = calm.broken, event+"; then all faults end"
	}
	if to.broken != "" {
		e.broken, e.events = to.broken, []string{event}
		for n := from.node; n > 0; n = e.nodes[n].parent {
			e.events = append(e.events, e.nodes[n].event)
		}
		slices.Reverse(e.events)
		return false
	}
	if isNew && len(e.queue) < most || most == math.MaxInt {
		e.nodes = append(e.nodes, node{from.node, e.nodes[from.node].depth + 1, s.name})
		e.queue = append(e.queue, state{to, len(e.nodes) - 1})
	}
	return true
}

// run follows at most so many states, or ends at the first violation.
func (e *explorer) run(set *settings, most int) {
	e.nodes, e.visited, e.fields = []node{{}}, make(map[uint64]bool), make(map[reflect.Type][]int)
	first := state{newWorld(set), 0}
	e.queue = []state{first}
	for _, start := range set.starts {
		at := first
		for _, event := range start {
			steps := at.world.steps()
			i := slices.IndexFunc(steps, func(s step) bool { return s.name == event })
			if i < 0 {
				e.missing = append(e.missing, event)
				break
			}
			if !e.visit(at, steps[i], math.MaxInt) {
				return
			}
			at = e.queue[len(e.queue)-1]
		}
	}
	for i := 0; i < len(e.queue); i++ {
		from := e.queue[i]
		e.queue[i].world = world{} // free its memory
		for _, s := range from.world.steps() {
			if !e.visit(from, s, most) {
				return
			}
		}
	}
}

func worlds() (all []*settings) {
	join := slices.Concat[[]string]
	busy := []string{"an hour", "the CPU is busy", "a minute"}
	failed := []string{whole, "the job fails", "16 minutes", whole, "an hour", "a minute"}
	spent, flips := busy, join(busy, failed, failed)
	for range 9 {
		spent = join(spent, failed)
	}
	for _, to := range []string{sold()[2].Code, sold()[0].Code, sold()[2].Code, sold()[0].Code} {
		flips = append(flips, "a person requests "+to+" from the cloud", "the job ends", whole)
	}
	for _, hasRds := range []bool{true, false} {
		party, grows, changes := "the cloud", []string{"the job ends"}, []string{"the job ends"}
		if hasRds {
			party, grows, changes = "an operator", []string{"the operator applies the Volume", "the job ends"}, []string{"the operator applies the Flavor", "the job ends"}
		}
		late := func(end string) []string {
			return join(busy, []string{end, "16 minutes", whole, "an hour", "a minute"})
		}
		for name, set := range map[string]settings{
			"volume": {kinds: []v1alpha1.ChangeKind{volume}, starts: [][]string{
				join([]string{"the disk fills", whole}, grows, []string{whole}), {"the disk fills", whole, "the disk is full", "16 minutes"}}},
			"flavor": {kinds: []v1alpha1.ChangeKind{flavor}, starts: [][]string{
				join(busy, []string{whole}, changes, []string{whole}), late(lateRefusal), join(late(noAnswer), changes)}},
			"both": {kinds: []v1alpha1.ChangeKind{volume, flavor}, starts: [][]string{join(busy, []string{"the disk fills"})}},
			"two databases": {kinds: []v1alpha1.ChangeKind{flavor}, databases: 2, starts: [][]string{
				join(busy, []string{"the CPU is busy (2nd database)", "a minute"})}},
		} {
			set.name, set.hasRds, set.databases, set.budget = name+", "+party, hasRds, max(set.databases, 1), 2
			all = append(all, &set)
		}
	}
	kinds := []v1alpha1.ChangeKind{flavor}
	return append(all, &settings{name: "budget of 9", kinds: kinds, databases: 1, budget: 9, starts: [][]string{spent}},
		&settings{name: "others", kinds: kinds, databases: 1, budget: 2, starts: [][]string{append(flips, "16 minutes")}})
}

// In any order of events, no promise is broken, and once all faults end, nothing outlives its reason.
func TestNoOrderOfEventsBreaksAPromise(t *testing.T) {
	most := 1500
	if level.IsSoak(t) {
		most = 50000
	}
	for _, set := range worlds() {
		t.Run(set.name, func(t *testing.T) {
			t.Parallel()
			var e explorer
			e.run(set, most)
			t.Logf("%d states, %d transitions, depth %d", len(e.visited), e.transitions, e.nodes[len(e.nodes)-1].depth+1)
			if e.broken != "" {
				t.Errorf("after %d events: %s\nThe order of events:\n  %s", len(e.events), e.broken, strings.Join(e.events, "\n  "))
			} else if e.missing != nil {
				t.Errorf("the starts have events that are not possible: %q", e.missing)
			}
		})
	}
}
