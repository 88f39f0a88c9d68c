// SPDX-License-Identifier: Apache-2.0

package bubble

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/mcsps/rds-autopilot/autopilot"
	"github.com/mcsps/rds-autopilot/k8s/api/autopilot/v1alpha1"
	simcloud "github.com/mcsps/rds-autopilot/test/sim/cloud"
)

// database is one database with everything that the oracle knows of it.
type database struct {
	w     *swarm
	name  string
	plan  databasePlan
	id    string
	first simcloud.Instance // from which the default caps are computed
	burst float64

	fullFor   time.Duration // how long it has been read-only
	limitSeen time.Duration // how long the service could measure that it is read-only

	mu       sync.Mutex
	sample   []sample   // newest last
	policies []policyAt // newest last
	specGB   int        // the size in the Rds; zero without an Rds
	growths  []growthMade
	resizes  []time.Time // requests of another flavor
	resizing string      // the flavor that the service has requested and the cloud does not have yet

	readOnlyFor time.Duration // in which it was read-only and might have grown
	reported    map[string]bool
}

// sample is the state of a database at a time.
type sample struct {
	at          time.Time
	sizeGB      int
	usedGB      float64
	cpu, memory float64 // percent
	flavor      string
	readOnly    bool
	// seemsReadOnly means that the database is read-only, or was and the service has no measurement that shows it writable.
	seemsReadOnly bool
}

// policyAt is a policy and the time from which it was in force.
type policyAt struct {
	at   time.Time
	spec v1alpha1.Spec
}

func (p policyAt) isOn() bool   { return p.spec.Mode != v1alpha1.ModeOff }
func (p policyAt) isAuto() bool { return p.spec.Mode == v1alpha1.ModeAuto }

func (w *swarm) addDatabase(p databasePlan) {
	p.instance.Name = p.name
	in, err := w.sim.AddInstance(p.instance)
	w.must(err)
	d := &database{w: w, name: p.name, plan: p, first: in, id: in.ID, reported: map[string]bool{}}
	w.databases = append(w.databases, d) // before its first write, which admit judges
	spec := withoutNulls(p.policy)
	if spec["apply"] = "Operator"; p.alone {
		spec["apply"], spec["instanceID"] = "Cloud", d.id
	}
	w.createAutopilot(swarmNamespace, d.name, text(spec))
	if !p.alone {
		w.createRds(swarmNamespace, p.name, rdsSpec(in, true), in.ID)
	}
	w.logf(d.name, "%s, version %s, %d GB, %.1f GB used, alone: %t, policy %s", in.Flavor, in.Version, in.VolumeGB, in.Workload.UsedGB, p.alone, text(p.policy))
}

func withoutNulls(m map[string]any) map[string]any {
	out := maps.Clone(m)
	for k, v := range out {
		switch v := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			out[k] = withoutNulls(v)
		}
	}
	return out
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (d *database) instance() simcloud.Instance {
	in, _ := d.w.sim.Instance(d.id)
	return in
}

// patchPolicy changes the policy as people do.
func (d *database) patchPolicy(policy map[string]any) {
	d.w.logf(d.name, "the policy is %s", text(policy))
	d.w.patch(d.w.raps(swarmNamespace), d.name, text(map[string]any{"spec": policy}))
}

// policyChanged stores the policy from now on. The caller holds the lock.
func (d *database) policyChanged(from v1alpha1.Spec) {
	spec := autopilot.DefaultSpec()
	d.w.must(json.Unmarshal([]byte(text(from)), &spec))
	if n := len(d.policies); n > 0 && reflect.DeepEqual(d.policies[n-1].spec, spec) {
		return
	}
	d.policies = append(d.policies, policyAt{time.Now(), spec})
	if !d.policy().isOn() { // what was seen of a former time is forgotten
		d.limitSeen = 0
	}
}

// policy returns the policy in force. The caller holds the lock.
func (d *database) policy() policyAt { return d.policies[len(d.policies)-1] }

// recentPolicies returns the policies that a round may still use. The caller holds the lock.
func (d *database) recentPolicies() []policyAt {
	i := len(d.policies) - 1
	for i > 0 && time.Since(d.policies[i].at) < policyLag {
		i--
	}
	return d.policies[i:]
}

// isSettled reports whether the present policy has been in force for long. The caller holds the lock.
func (d *database) isSettled() bool { return time.Since(d.policy().at) > settleTime }

// since returns the samples of that span. The caller holds the lock.
func (d *database) since(span time.Duration) []sample {
	i := len(d.sample)
	for i > 0 && time.Since(d.sample[i-1].at) <= span {
		i--
	}
	return d.sample[i:]
}

// People clean up a read-only database, first too little and then enough. Otherwise it would stay read-only at its cap, which
// would cost time and find no further faults.
const (
	partlyCleanedAfter = 5 * time.Hour
	cleanedAfter       = 8 * time.Hour
)

// advance applies the load of a tick and takes a sample.
func (d *database) advance() {
	in := d.instance()
	load := d.plan.load.next(d.w.at(), in, d.first, &d.burst)
	if d.fullFor += tick; !in.ReadOnly {
		d.fullFor = 0
	}
	switch {
	case d.fullFor == partlyCleanedAfter:
		load.UsedGB *= 0.93
	case d.fullFor > cleanedAfter:
		load.UsedGB *= 0.6
	}
	d.w.must(d.w.sim.SetWorkload(in.ID, load))
	in = d.instance()
	now := sample{time.Now(), in.VolumeGB, in.Workload.UsedGB, min(100, 100*load.CPUDemand/float64(in.VCPUs)), min(100, 100*load.MemoryDemandGB/float64(in.MemoryGB)), in.Flavor, in.ReadOnly, in.ReadOnly}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case !in.ReadOnly || !d.policy().isOn():
		d.limitSeen = 0
	case d.isSettled() && now.usedGB >= readOnlyAt(now.sizeGB):
		d.limitSeen += tick
	}
	if n := len(d.sample); n > 0 && d.sample[n-1].seemsReadOnly { // a sweep may miss a short time in which it is writable
		isFull := func(t sample) bool { return t.readOnly || t.usedGB > writableAt(t.sizeGB) }
		now.seemsReadOnly = isFull(now) || slices.ContainsFunc(d.since(d.w.slowest()), isFull)
	}
	if n := len(d.sample); n > 0 && d.sample[n-1].readOnly != now.readOnly {
		d.w.logf(d.name, "read-only: %t, %.1f of %d GB used", now.readOnly, now.usedGB, now.sizeGB)
	}
	d.sample = append(d.sample, now)
	if most := int(9 * day / tick); len(d.sample) > 2*most { // a deferred change may be a week old
		d.sample = slices.Clone(d.sample[most:])
	}
	if d.resizing == in.Flavor {
		d.resizing = ""
	}
	if n := len(d.growths); n > 0 && d.growths[n-1].toGB > in.VolumeGB && d.specGB >= d.growths[n-1].toGB { // a full database may wait for hours
		d.growths[n-1].at = time.Now()
	}
}
