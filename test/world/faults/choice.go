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

// Nth chooses exactly one request. It may be used by several goroutines.
type Nth struct {
	match func(*http.Request) bool
	fault func(*http.Request) *simcloud.Fault

	mu   sync.Mutex
	left int
}

// NewNth chooses the n-th request, from 1, for which match returns true. It calls fault once, for the fault of that request.
func NewNth(n int, match func(*http.Request) bool, fault func(*http.Request) *simcloud.Fault) *Nth {
	return &Nth{match: match, fault: fault, left: n}
}

// Fault is the hook for requests. It returns nil for every request that is not chosen.
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

// Random chooses requests at random. The choice depends only on the seed, the name of a request, and the number of earlier requests
// of that name. So the order of goroutines does not change it. It may be used by several goroutines.
type Random struct {
	seed  uint64
	name  func(*http.Request) string
	kinds []simcloud.Fault

	mu    sync.Mutex
	share float64
	seen  map[string]int
	count int
}

// NewRandom returns a Random that chooses no request until Set.
func NewRandom(seed uint64, name func(*http.Request) string, kinds ...simcloud.Fault) *Random {
	return &Random{seed: seed, name: name, kinds: kinds, seen: map[string]int{}}
}

// Set sets the share of requests that get a fault, 0 to 1.
func (d *Random) Set(share float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.share = share
}

// Count returns the number of requests that got a fault.
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

// Next decides on the next request of a name. If the request gets a fault, the returned numbers choose the fault.
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
