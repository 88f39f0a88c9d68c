// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"

	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// Nth chooses one request exactly. It may be asked by many at a time.
type Nth struct {
	match func(*http.Request) bool
	fault func(*http.Request) *simcloud.Fault

	mu   sync.Mutex
	left int
}

// NewNth returns a choice of the n-th request, from 1, that match is true for. What fault returns goes wrong with it;
// fault is called once.
func NewNth(n int, match func(*http.Request) bool, fault func(*http.Request) *simcloud.Fault) *Nth {
	return &Nth{match: match, fault: fault, left: n}
}

// Fault is the hook: nil for every other request.
func (c *Nth) Fault(r *http.Request) *simcloud.Fault {
	if !c.match(r) {
		return nil
	}
	c.mu.Lock()
	c.left--
	hit := c.left == 0
	c.mu.Unlock()
	if !hit {
		return nil
	}
	return c.fault(r)
}

// Random chooses by chance. What happens to a request depends on the seed, on its name and on how many of that name came
// before it, and on nothing else: goroutines that overtake each other do not change it. It may be asked by many at a time.
type Random struct {
	seed  uint64
	name  func(*http.Request) string
	kinds []simcloud.Fault

	mu    sync.Mutex
	share float64
	seen  map[string]int
	count int
}

// NewRandom returns a choice of no fault at all until Set.
func NewRandom(seed uint64, name func(*http.Request) string, kinds ...simcloud.Fault) *Random {
	return &Random{seed: seed, name: name, kinds: kinds, seen: map[string]int{}}
}

// Set says which share of the requests goes wrong from now on, 0 to 1.
func (d *Random) Set(share float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.share = share
}

// Count is how many requests went wrong so far.
func (d *Random) Count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// Fault is the hook for requests.
func (d *Random) Fault(r *http.Request) *simcloud.Fault {
	how, wrong := d.Next(d.name(r))
	if !wrong {
		return nil
	}
	fault := d.kinds[how.IntN(len(d.kinds))]
	return &fault
}

// Next decides on the next event of a name: where it goes wrong, what it returns chooses how.
func (d *Random) Next(name string) (how *rand.Rand, wrong bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[name]++
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + " " + strconv.Itoa(d.seen[name]))) // never fails
	how = rand.New(rand.NewPCG(d.seed, h.Sum64()))
	if how.Float64() >= d.share {
		return nil, false
	}
	d.count++
	return how, true
}
